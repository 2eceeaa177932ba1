import { hash, randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { momentBetween } from '../../test/support/moments.ts'
import { someRuns } from '../../test/support/runs.ts'
import { useService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'
import { names } from '../../test/support/writes.ts'

const service = useService()
// Type 1 is the default of both channels, 2 has both and the default state true, 3 is mandatory on email, and 4 is
// archived.
const organization = useShop(
  service,
  { key: 'surveys', channels: [{ channel: 'email' }, { channel: 'sms' }], default_state: true },
  { key: 'contract', channels: [{ channel: 'email' }], mandatory: true },
  { key: 'old', channels: [{ channel: 'email' }, { channel: 'sms' }] },
)
const { send, ok } = organization
beforeEach(async () => {
  await archive(4)
})

const declare = (body: object) => ok('POST', '/v1/schema/consent-types', body)
const archive = (id: number) => ok('PATCH', `/v1/schema/consent-types/${id}`, { state: 'archived' })

const email = 'ada@example.com'
const entry = (consent_type_id: number, channel: string, state: boolean) => ({ consent_type_id, channel, state })
const create = async (external_id: string, body: object = {}): Promise<string> =>
  (await ok('POST', '/v1/people', { external_id, ...body })).id
const answer = (external_id: string, ...consents: object[]) => ok('PATCH', `/v1/people/${external_id}`, { consents })

const sha256 = (text: string) => hash('sha256', text)

const ask = (consent_type_id: number, channel = 'email', address = 'ada') =>
  ok('POST', `/v1/people/${address}/contactable`, { consent_type_id, channel })
const askMany = (external_ids: string[], consent_type_id = 1, channel = 'email') =>
  ok('POST', '/v1/people/contactable', { external_ids, consent_type_id, channel })
const rulesOf = ({ reasons }: { reasons: { rule: string }[] }) => reasons.map(({ rule }) => rule)
const head = async () =>
  (
    await service.sql<{ sequence: number }>('select sequence from change_heads where organization_id = $1', [
      organization.id,
    ])
  )[0]!.sequence

describe('whether a person may be written to', () => {
  it('follows the answer, with its number, times and evidence', async () => {
    const evidence = { collected_at: '2025-06-01T10:00:00.000Z', method: 'paper', reference: 'form 7' }
    const id = await create('ada', { email, consents: [{ ...entry(1, 'email', true), ...evidence }] })
    const { items } = await ok('GET', '/v1/people/ada/consents/history')
    expect(items[0]).toMatchObject(evidence)
    const decision = { allowed: true, reasons: [{ rule: 'answer', ...items[0] }], sequence: await head() }
    expect(await ask(1)).toEqual(decision)
    expect(await ask(1, 'email', `internal/${id}`)).toEqual(decision)
    await answer('ada', entry(1, 'email', false))
    expect(await ask(1)).toMatchObject({
      allowed: false,
      reasons: [{ rule: 'answer', state: false, version: 2, sequence: await head(), method: null }],
    })
  })

  it('follows the default of the consent type without an answer', async () => {
    await create('ada', { email })
    const sequence = await head()
    expect(await ask(1)).toEqual({ allowed: false, reasons: [{ rule: 'default', state: false }], sequence })
    expect(await ask(2)).toEqual({ allowed: true, reasons: [{ rule: 'default', state: true }], sequence })
  })

  it('needs no answer for a mandatory consent type, and needs an address for it', async () => {
    await create('ada')
    expect(await ask(3)).toMatchObject({ allowed: false, reasons: [{ rule: 'no_address' }] })
    await ok('PATCH', '/v1/people/ada', { email })
    expect(await ask(3)).toMatchObject({ allowed: true, reasons: [{ rule: 'mandatory' }] })
  })

  it('needs an email address, or a mobile number for sms', async () => {
    await create('ada', { email, mobile_prefix: '+39' })
    expect(rulesOf(await ask(2, 'email'))).toEqual(['default'])
    expect(rulesOf(await ask(2, 'sms'))).toEqual(['no_address'])
    await ok('PATCH', '/v1/people/ada', { email: null, mobile_number: '+39 333 1234567' })
    expect(rulesOf(await ask(2, 'email'))).toEqual(['no_address'])
    expect(rulesOf(await ask(2, 'sms'))).toEqual(['default'])
  })

  it('is refused for an archived consent type, even with a grant', async () => {
    await create('ada', { email, consents: [entry(2, 'email', true)] })
    await archive(2)
    expect(await ask(2)).toMatchObject({ allowed: false, reasons: [{ rule: 'archived' }] })
    await archive(3)
    expect(rulesOf(await ask(3))).toEqual(['archived'])
  })

  it('names every rule that forbids it, in order', async () => {
    await create('ada', { consents: [entry(2, 'email', false)] })
    await archive(2)
    expect(rulesOf(await ask(2))).toEqual(['no_address', 'archived', 'answer'])
    expect(rulesOf(await ask(4))).toEqual(['no_address', 'archived', 'default'])
  })

  it('is refused while a grant waits for its confirmation', async () => {
    await ok('PATCH', '/v1/schema/consent-types/2', { channels: [{ channel: 'email', double_opt_in: true }] })
    await create('ada', { email, consents: [entry(2, 'email', true)] })
    expect(await ask(2)).toMatchObject({ allowed: false, reasons: [{ rule: 'answer', state: true, pending: true }] })
    await answer('ada', { ...entry(2, 'email', true), method: 'double_opt_in' })
    expect(await ask(2)).toMatchObject({ allowed: true, reasons: [{ rule: 'answer', pending: false, version: 2 }] })
  })

  it('does not follow a superseded answer', async () => {
    await create('ada', { email, consents: [entry(1, 'email', false)] })
    await answer('ada', { ...entry(1, 'email', true), collected_at: '2020-01-01T00:00:00Z' })
    expect(await ask(1)).toMatchObject({ allowed: false, reasons: [{ rule: 'answer', state: false, version: 1 }] })
  })

  it('follows the answer to the consent type and on the channel that was asked for', async () => {
    await create('ada', {
      email,
      mobile_number: '+393331234567',
      consents: [entry(1, 'email', true), entry(2, 'sms', false)],
    })
    const decisions = [await ask(1, 'email'), await ask(1, 'sms'), await ask(2, 'email'), await ask(2, 'sms')]
    expect(decisions.map(({ allowed }) => allowed)).toEqual([true, false, true, false])
    expect(decisions.map(decision => rulesOf(decision)[0])).toEqual(['answer', 'default', 'default', 'answer'])
  })

  it('is refused for a deleted person, by the internal identifier and by the last name, until a restore', async () => {
    const id = await create('ada', { email, consents: [entry(1, 'email', true)] })
    await ok('DELETE', '/v1/people/ada')
    const sequence = await head()
    const decision = { allowed: false, reasons: [{ rule: 'deleted', sequence, at: expect.any(String) }], sequence }
    expect(await ask(1, 'email', `internal/${id}`)).toEqual(decision)
    expect(await ask(1)).toEqual(decision)
    await ok('POST', `/v1/people/internal/${id}/restore`)
    expect(await ask(1)).toMatchObject({ allowed: true, reasons: [{ rule: 'answer', version: 1 }] })
  })

  it('is told about a placeholder, which has no address', async () => {
    await ok('POST', '/v1/schema/attributes', { owner: 'people', key: 'referrer', type: 'person' })
    await create('ada', { email, attribute_values: { referrer: 'bob' } })
    expect(rulesOf(await ask(1, 'email', 'bob'))).toEqual(['no_address', 'default'])
  })
})

describe('a decision about many people', () => {
  it('has an item for each name in the order of the request, from one statement', async () => {
    await create('ada', { email, consents: [entry(1, 'email', true)] })
    await create('bob', { consents: [entry(1, 'email', false)] })
    await create('gone', { email })
    await ok('DELETE', '/v1/people/gone')
    const share = service.db.shareOf(organization.id, 'pages')
    const query = vi.spyOn(share, 'query')
    const { items, sequence } = await askMany([' bob ', 'nobody', 'ada', 'gone', 'bob'])
    expect(query).toHaveBeenCalledTimes(1)
    query.mockRestore()
    expect(items.map((item: { external_id: string }) => item.external_id)).toEqual([
      'bob',
      'nobody',
      'ada',
      'gone',
      'bob',
    ])
    expect(items.map((item: { allowed: boolean }) => item.allowed)).toEqual([false, false, true, false, false])
    expect(items.map(rulesOf)).toEqual([
      ['no_address', 'answer'],
      ['not_found'],
      ['answer'],
      ['deleted'],
      ['no_address', 'answer'],
    ])
    expect(sequence).toBe(await head())
    for (const { external_id, ...decision } of items.filter(
      (item: object) => !rulesOf(item as never).includes('not_found'),
    ))
      expect({ ...decision, sequence }).toEqual(await ask(1, 'email', external_id))
  })

  it('tells of each person what a decision about that one does, to the byte', async () => {
    for (const text of ['Yes, "news".', 'Yes.'])
      await ok('POST', '/v1/schema/consent-types/1/texts', { language: 'en', text })
    const evidence = { method: 'web_form', source: 'https://example.com/?a="b"\\', ip: '192.0.2.7', reference: 'ü\n7' }
    const granted = { ...entry(1, 'email', true), ...evidence }
    await create('ada', {
      email: 'a@example.com',
      consents: [{ ...granted, text_version: 2, collected_at: '2025-06-01T10:00:00Z' }],
    })
    await create('bob', {
      email: 'b@example.com',
      consents: [{ ...granted, text_version: 1 }, entry(2, 'email', true)],
    })
    const cydId = await create('cyd', { email: 'c@example.com', consents: [granted] })
    await ok('DELETE', '/v1/people/cyd')
    await ok('POST', `/v1/people/internal/${cydId}/restore`)
    await create('dan', { email })
    await answer('bob', { ...entry(1, 'email', false), text_version: 2 })
    await answer('bob', { ...entry(1, 'email', true), text_version: 1, collected_at: '2020-01-01T00:00:00Z' })
    await answer('dan', entry(2, 'email', false), entry(1, 'sms', true))
    await create('eve', { consents: [granted] })
    await ok('DELETE', '/v1/people/eve')
    const people = ['ada', 'bob', 'cyd', 'dan', 'eve']
    for (const type of [1, 2, 3, 4]) {
      const { items, sequence } = await askMany(people, type)
      for (const [index, { external_id, ...decision }] of items.entries()) {
        expect(external_id).toBe(people[index])
        expect(JSON.stringify({ ...decision, sequence })).toBe(JSON.stringify(await ask(type, 'email', external_id)))
      }
    }
    const [ada, bob, cyd] = (await askMany(people)).items.map(({ reasons }: { reasons: object[] }) => reasons[0])
    expect(ada).toMatchObject({ ...evidence, text_version: 2, text_sha256: sha256('Yes.') })
    expect(bob).toMatchObject({ state: false, version: 2, text_version: 2, text_sha256: sha256('Yes.') })
    expect(cyd).toMatchObject({ text_version: null, text_sha256: null })
  })

  it('takes 1,000 names and no more', async () => {
    await create('p7', { email, consents: [entry(1, 'email', true)] })
    const people = names('p', 1_000)
    const { items } = await askMany(people)
    expect(items.map((item: { external_id: string }) => item.external_id)).toEqual(people)
    expect(items.filter((item: { allowed: boolean }) => item.allowed)).toMatchObject([{ external_id: 'p7' }])
    for (const external_ids of [names('p', 1_001), []]) {
      const { status, body } = await send('POST', '/v1/people/contactable', {
        external_ids,
        consent_type_id: 1,
        channel: 'email',
      })
      expect([status, body.details?.map(({ path }) => path)]).toEqual([400, ['/external_ids']])
    }
  })
})

describe('a request for a decision', () => {
  it.each([
    [{ channel: 'email' }, '/consent_type_id'],
    [{ consent_type_id: 1 }, '/channel'],
    [{ consent_type_id: 99, channel: 'email' }, '/consent_type_id'],
    [{ consent_type_id: 3, channel: 'sms' }, '/channel'],
    [{ consent_type_id: 1, channel: 'push' }, '/channel'],
    [{ consent_type_id: 0, channel: 'email' }, '/consent_type_id'],
    [{ consent_type_id: 1, channel: 'email', when: 'now' }, '/when'],
  ])('gets 400 for %j', async (body, path) => {
    await create('ada', { email })
    for (const [address, more] of [
      ['ada/contactable', {}],
      ['contactable', { external_ids: ['ada'] }],
    ]) {
      const reply = await send('POST', `/v1/people/${address}`, { ...body, ...(more as object) })
      expect([reply.status, reply.body.error, reply.body.details?.map(detail => detail.path)]).toEqual([
        400,
        'invalid_parameter',
        [path],
      ])
      expect(reply.body.message).toMatch(/^[A-Z].*\.$/)
    }
  })

  it.each([
    ['2026-01-01T00:00:00', '/at'],
    ['yesterday', '/at'],
    ['2999-01-01T00:00:00Z', '/at'],
  ])('gets 400 for the time %s', async (at, path) => {
    await create('ada', { email })
    const reply = await send('POST', '/v1/people/ada/contactable', { consent_type_id: 1, channel: 'email', at })
    expect([reply.status, reply.body.details?.map(detail => detail.path)]).toEqual([400, [path]])
  })

  it('has a sentence as the message of a refused value, like other requests', async () => {
    const purpose = { consent_type_id: 99, channel: 'email' }
    const requests: [string, object][] = [
      ['/v1/people/ada/contactable', purpose],
      ['/v1/consents/statistics', { ...purpose, interval: 'day' }],
      ['/v1/people/bulk', { change: { op: 'delete' } }],
      ['/v1/people/search', { text: 'a '.repeat(20) }],
      ['/v1/people/upsert', { external_id: 'ada', match: ['email', 'email'] }],
      ['/v1/people/batch', { operations: [{ op: 'create' }], atomic: true }],
    ]
    await create('ada')
    for (const [path, body] of requests) {
      const { status, body: refused } = await send('POST', path, body)
      expect([path, status, refused.message]).toEqual([path, 400, expect.stringMatching(/^[A-Z].*\.$/)])
    }
  })

  it('names the wrong external identifier, and takes no time for many people', async () => {
    const many = { external_ids: ['ada', 'a\u0007b'], consent_type_id: 1, channel: 'email' }
    const pathsFor = async (body: object) =>
      (await send('POST', '/v1/people/contactable', body)).body.details?.map(({ path }) => path)
    expect(await pathsFor(many)).toEqual(['/external_ids/1'])
    expect(await pathsFor({ ...many, external_ids: ['ada'], at: '2026-01-01T00:00:00Z' })).toEqual(['/at'])
  })

  it('is not found for a person who never existed', async () => {
    const body = { consent_type_id: 1, channel: 'email' }
    for (const more of [{}, { at: new Date().toISOString() }])
      for (const address of ['nobody', `internal/${randomUUID()}`]) {
        const reply = await send('POST', `/v1/people/${address}/contactable`, { ...body, ...more })
        expect([reply.status, reply.body.error]).toEqual([404, 'not_found'])
      }
    const { items } = await ok('POST', '/v1/people/contactable', { ...body, external_ids: ['ada'] })
    expect(items).toEqual([{ external_id: 'ada', allowed: false, reasons: [{ rule: 'not_found' }] }])
  })

  it('needs the scope consents:read, and ignores an Idempotency-Key', async () => {
    await create('ada', { email })
    const body = { consent_type_id: 1, channel: 'email' }
    const sender = async (scope: string) => service.sender(await service.tokenFor(organization.key, scope))
    const reader = await sender('consents:read')
    const keyed = () => reader('POST', '/v1/people/ada/contactable', body, { 'Idempotency-Key': 'k' })
    expect((await keyed()).body.data.allowed).toBe(false)
    await answer('ada', entry(1, 'email', true))
    expect((await keyed()).body.data.allowed).toBe(true)
    const other = await sender('people:read people:write changes:read')
    for (const [address, more] of [
      ['ada/contactable', {}],
      ['contactable', { external_ids: ['ada'] }],
    ])
      expect((await other('POST', `/v1/people/${address}`, { ...body, ...(more as object) })).status).toBe(403)
  })

  it('reaches a person named contactable or internal like any other', async () => {
    for (const name of ['contactable', 'internal']) {
      const person = await ok('POST', '/v1/people', { external_id: name, email })
      expect((await ok('GET', `/v1/people/${name}`)).id).toBe(person.id)
      expect(rulesOf(await ask(2, 'email', name))).toEqual(['default'])
    }
  })
})

type Asked = { status: number; allowed?: boolean; reasons?: { rule: string }[]; sequence?: number; paths?: string[] }

/** Asks about a person on both channels for each consent type. */
async function askAll(id: string, at?: string): Promise<Asked[]> {
  const purposes = [1, 2, 3, 4].flatMap(consent_type_id =>
    ['email', 'sms'].map(channel => ({ consent_type_id, channel, at })),
  )
  const replies = await Promise.all(
    purposes.map(purpose => send('POST', `/v1/people/internal/${id}/contactable`, purpose)),
  )
  return replies.map(({ status, body }) => ({
    status,
    ...body.data,
    ...(body.details && { paths: body.details.map(({ path }) => path) }),
  }))
}

type Read = { consent_type_id: number; channel: string; state: boolean; source: string }

/**
 * Compares decisions with the effective consents that a read of the person shows. The read shows none to archived
 * consent types.
 */
async function compareWithRead(id: string, decisions: Asked[]) {
  const { status, body } = await send('GET', `/v1/people/internal/${id}`)
  if (status === 404)
    expect(decisions.map(({ reasons }) => reasons?.[0]?.rule ?? 'deleted')).toEqual(decisions.map(() => 'deleted'))
  else
    for (const { consent_type_id, channel, state, source } of body.data.consents as Read[]) {
      const { allowed, reasons } = decisions[2 * (consent_type_id - 1) + (channel === 'sms' ? 1 : 0)]!
      const hasAddress = body.data[channel === 'sms' ? 'mobile_number' : 'email'] !== null
      expect(allowed).toBe(hasAddress && state)
      if (hasAddress) expect(reasons!.map(({ rule }) => rule)).toEqual([source])
    }
}

type Step =
  | { do: 'patch'; person: number; body: object }
  | { do: 'delete' | 'restore' | 'create'; person: number }
  | { do: 'type'; id: number; patch: object }

const person = fc.nat(1)
const flag = fc.boolean()
const given = fc.record(
  {
    state: flag,
    collected_at: fc.constantFrom('2020-01-01T00:00:00.000Z', '2024-01-01T00:00:00.000Z'),
    method: fc.constantFrom('web_form', 'double_opt_in'),
  },
  { requiredKeys: ['state'] },
)
const body = fc.oneof(
  fc.record(
    { email: fc.constantFrom(null, email), mobile_number: fc.constantFrom(null, '+393331234567') },
    { requiredKeys: [] },
  ),
  fc.record({ email_consent: flag, sms_consent: flag }, { requiredKeys: [] }),
  fc
    .uniqueArray(fc.constantFrom(...[1, 2, 4].flatMap(id => [entry(id, 'email', true), entry(id, 'sms', true)])), {
      minLength: 1,
      maxLength: 3,
    })
    .chain(entries => given.map(rest => ({ consents: entries.map(each => ({ ...each, ...rest })) }))),
)
const channels = fc.constantFrom(['email'], ['sms'], ['email', 'sms']).map(list => list.map(channel => ({ channel })))
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('patch' as const), person, body }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('delete' as const), person }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('restore' as const, 'create' as const), person }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('type' as const),
      id: fc.integer({ min: 2, max: 4 }),
      patch: fc.record(
        { state: fc.constantFrom('active', 'archived'), default_state: flag, mandatory: flag, channels },
        { requiredKeys: [] },
      ),
    }),
  },
)

/** Runs a step. A refusal is a possible result. */
async function run(step: Step, ids: string[]) {
  if (step.do === 'type') await send('PATCH', `/v1/schema/consent-types/${step.id}`, step.patch)
  else if (step.do === 'patch') await send('PATCH', `/v1/people/internal/${ids[step.person]}`, step.body)
  else if (step.do === 'delete') await send('DELETE', `/v1/people/internal/${ids[step.person]}`)
  else if (step.do === 'restore') await send('POST', `/v1/people/internal/${ids[step.person]}/restore`)
  else await send('POST', '/v1/people', { external_id: `p${step.person}`, email })
}

describe('a decision as at a past time', () => {
  it('equals the decision that was given then, whatever happened since', { timeout: 120_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 8, maxLength: 14 }), async steps => {
        await organization.renew(
          { key: 'a', channels: [{ channel: 'email' }, { channel: 'sms' }] },
          { key: 'b', channels: [{ channel: 'email' }, { channel: 'sms' }] },
          { key: 'c', channels: [{ channel: 'email', double_opt_in: true }, { channel: 'sms' }] },
        )
        const ids = [await create('p0', { email }), await create('p1', { consents: [entry(1, 'sms', true)] })]
        const moments: { at: string; decisions: Asked[][] }[] = []
        for (const each of steps) {
          await run(each, ids)
          // kith stores no past states of address answers.
          await service.sql('delete from address_answers where organization_id = $1', [organization.id])
          const decisions = await Promise.all(ids.map(id => askAll(id)))
          for (const [index, id] of ids.entries()) await compareWithRead(id, decisions[index]!)
          moments.push({ at: await momentBetween(), decisions })
        }
        for (const { at, decisions } of moments)
          expect(await Promise.all(ids.map(id => askAll(id, at)))).toEqual(decisions)
      }),
      someRuns(12),
    )
  })

  it('follows what kith knew then: an answer that was recorded later does not count, whenever it was collected', async () => {
    const id = await create('ada', { email })
    const at = await momentBetween()
    const sequence = await head()
    await answer('ada', { ...entry(1, 'email', true), collected_at: '2020-01-01T00:00:00Z' })
    const decision = { allowed: false, reasons: [{ rule: 'default', state: false }], sequence }
    for (const address of ['ada', `internal/${id}`])
      expect(
        await ok('POST', `/v1/people/${address}/contactable`, { consent_type_id: 1, channel: 'email', at }),
      ).toEqual(decision)
  })

  it('is not found before the person existed, and for a person whose values in the log were blanked', async () => {
    const early = await momentBetween()
    const id = await create('ada', { email })
    const at = await momentBetween()
    const askAt = (time: string) =>
      send('POST', `/v1/people/internal/${id}/contactable`, { consent_type_id: 2, channel: 'email', at: time })
    expect((await askAt(early)).body.error).toBe('not_found')
    expect((await askAt('1969-07-20T20:17:40Z')).status).toBe(404)
    expect((await askAt(at)).body.data.allowed).toBe(true)
    await service.sql('update changes set before = null, after = null where organization_id = $1 and entity_id = $2', [
      organization.id,
      id,
    ])
    expect((await askAt(at)).status).toBe(404)
    expect((await ask(2)).allowed).toBe(true)
  })

  it('gets 400 for a consent type that did not exist then, and for a channel that it did not have then', async () => {
    await create('ada', { email, mobile_number: '+393331234567' })
    const before = await momentBetween()
    await declare({ key: 'late', channels: [{ channel: 'email' }] })
    const between = await momentBetween()
    await ok('PATCH', '/v1/schema/consent-types/5', { channels: [{ channel: 'email' }, { channel: 'sms' }] })
    const askAt = async (at: string, channel: string) => {
      const reply = await send('POST', '/v1/people/ada/contactable', { consent_type_id: 5, channel, at })
      return [reply.status, reply.body.details?.map(({ path }) => path)]
    }
    expect(await askAt(before, 'email')).toEqual([400, ['/consent_type_id']])
    expect(await askAt(between, 'email')).toEqual([200, undefined])
    expect(await askAt(between, 'sms')).toEqual([400, ['/channel']])
    expect(await askAt(await momentBetween(), 'sms')).toEqual([200, undefined])
  })
})
