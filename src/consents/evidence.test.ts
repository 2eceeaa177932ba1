import fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import { writable } from '../../client/index.ts'
import { exportAll, importLines, linesFrom } from '../../test/support/lines.ts'
import { someRuns } from '../../test/support/runs.ts'
import { useService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'

const service = useService()

// Type 1 has three texts. Type 2 has double opt-in on email, and type 3 is mandatory.
const types = '/v1/schema/consent-types'
const organization = useShop(
  service,
  { key: 'letters', channels: [{ channel: 'email', double_opt_in: true }, { channel: 'sms' }] },
  { key: 'contract', channels: [{ channel: 'email' }], mandatory: true },
)
const { send } = organization
beforeEach(async () => {
  for (const text of ['one', 'two', 'three']) await send('POST', `${types}/1/texts`, { language: 'en', text })
  await send('POST', '/v1/people', { external_id: 'ada' })
})

type Entry = { consent_type_id: number; channel: string; state: boolean; [evidence: string]: unknown }
const entry = (state: boolean, rest: object = {}): Entry => ({ consent_type_id: 1, channel: 'email', state, ...rest })
const person = async (external_id = 'ada') => (await send('GET', `/v1/people/${external_id}`)).body.data
const patch = (body: object) => send('PATCH', '/v1/people/ada', body)
const answersOf = async (external_id = 'ada') =>
  (await person(external_id)).consents.filter(({ source }: { source: string }) => source === 'answer')

type Answered = Entry & {
  person_id: string
  version: number
  at: string
  collected_at: string | null
  evidence: object | null
  superseded: boolean
  pending: boolean
}
const history = () =>
  service.sql<Answered>(
    'select * from consent_history where organization_id = $1 order by version, consent_type_id, channel',
    [organization.id],
  )
const importAnswers = (...lines: [string, Entry[]][]) =>
  importLines(
    organization,
    '/v1/people/import',
    linesFrom(lines.map(([external_id, consents]) => ({ external_id, consents }))),
  )

const early = '2020-01-01T00:00:00.000Z'
const late = '2021-01-01T00:00:00.000Z'
const full = {
  collected_at: '2020-05-01T14:30:00+02:00',
  method: 'web_form',
  source: 'https://shop.example/newsletter <b>',
  ip: '2001:DB8::7',
  user_agent: 'Browser/1.0',
  text_version: 2,
  reference: 'form-17',
}
const stored = { ...full, ip: '2001:db8::7', collected_at: undefined }

describe('the evidence of an answer', () => {
  it.each<[string, () => Promise<unknown>]>([
    ['a PATCH', () => patch({ consents: [entry(true, full)] })],
    ['a PUT', () => send('PUT', '/v1/people/ada', { consents: [entry(true, full)] })],
    ['an upsert', () => send('POST', '/v1/people/upsert', { external_id: 'ada', consents: [entry(true, full)] })],
    [
      'a keyed PATCH',
      () => send('PATCH', '/v1/people/ada', { consents: [entry(true, full)] }, { 'Idempotency-Key': 'k' }),
    ],
    ['a query string', () => send('PATCH', `/v1/people/ada?${queryOf(entry(true, full))}`)],
    ['an import', () => importAnswers(['ada', [entry(true, full)]])],
    ...[false, true].map((atomic): [string, () => Promise<unknown>] => [
      `a batch with atomic ${atomic}`,
      () =>
        send('POST', '/v1/people/batch', {
          atomic,
          operations: [{ op: 'patch', external_id: 'ada', body: { consents: [entry(true, full)] } }],
        }),
    ]),
  ])('is stored beside the time, the actor and the request of the service by %s', async (_name, write) => {
    await write()
    const { evidence, collected_at, at, ...row } = (await history())[0]!
    expect(evidence).toEqual(JSON.parse(JSON.stringify(stored)))
    expect(collected_at).toBe('2020-05-01T12:30:00.000Z')
    expect(at).toBe((await person()).updated_at)
    expect(row).toMatchObject({ state: true, superseded: false, pending: false, actor: 'tests' })
    expect(await answersOf()).toEqual([
      {
        ...entry(true),
        source: 'answer',
        answered_at: '2020-05-01T12:30:00.000Z',
        method: 'web_form',
        text_version: 2,
      },
    ])
  })

  const queryOf = (given: Entry) =>
    Object.entries(given)
      .map(([key, value]) => `consents[0][${key}]=${encodeURIComponent(String(value))}`)
      .join('&')

  it('may be stored with a create', async () => {
    await send('POST', '/v1/people', { external_id: 'bob', consents: [entry(false, full)] })
    expect(await answersOf('bob')).toMatchObject([{ state: false, answered_at: '2020-05-01T12:30:00.000Z' }])
  })

  it('is absent if it is not given', async () => {
    await patch({ email_consent: false })
    const rows = await history()
    expect(rows.map(({ evidence, collected_at }) => [evidence, collected_at])).toEqual([
      [null, null],
      [null, null],
    ])
  })

  const soon = (ms: number) => new Date(Date.now() + ms).toISOString()
  it.each<[string, () => object, string]>([
    ['a time in the future', () => ({ collected_at: soon(3_600_000) }), 'collected_at'],
    ['a time before 1990', () => ({ collected_at: '1989-12-31T23:59:59Z' }), 'collected_at'],
    ['a time without a zone', () => ({ collected_at: '2020-01-01T00:00:00' }), 'collected_at'],
    ['an unknown method', () => ({ method: 'telepathy' }), 'method'],
    ['an unknown text', () => ({ text_version: 4 }), 'text_version'],
    ['a text of version 0', () => ({ text_version: 0 }), 'text_version'],
    ['no address', () => ({ ip: '192.0.2' }), 'ip'],
    ['an address with a zone', () => ({ ip: 'fe80::1%eth0' }), 'ip'],
    ['a source of 2 KiB and one byte', () => ({ source: `${'é'.repeat(1_024)}x` }), 'source'],
    ['a user agent of 2 KiB and one byte', () => ({ user_agent: 'x'.repeat(2_049) }), 'user_agent'],
    ['a reference of 256 characters', () => ({ reference: 'x'.repeat(256) }), 'reference'],
    ['an unknown key', () => ({ proof: 'yes' }), 'proof'],
  ])('is refused with %s, on every path, and nothing is stored', async (_name, evidence, field) => {
    const before = await person()
    const consents = [entry(false), { ...entry(true, evidence()), channel: 'sms' }]
    const body = { first_name: 'A', consents }
    const path = `/consents/1/${field}`
    for (const [method, url, more] of [
      ['PATCH', '/v1/people/ada', {}],
      ['PUT', '/v1/people/ada', {}],
      ['POST', '/v1/people', { external_id: 'bob' }],
      ['POST', '/v1/people/upsert', { external_id: 'ada' }],
    ] as const) {
      const reply = await send(method, url, { ...body, ...more })
      expect([reply.status, reply.body.error, reply.body.details?.map(each => each.path)]).toEqual([
        400,
        'invalid_parameter',
        [path],
      ])
      expect(reply.body.details![0]!.message).not.toBe('')
    }
    const { refused } = await importAnswers(['ada', consents])
    expect(refused.map(line => line.details.map(each => each.path))).toEqual([[path]])
    const operations = [{ op: 'patch', external_id: 'ada', body }]
    const { items } = (await send('POST', '/v1/people/batch', { operations })).body.data
    expect(items[0].details.map((each: { path: string }) => each.path)).toEqual([`/operations/0/body${path}`])
    expect(await person()).toEqual(before)
    expect(await history()).toEqual([])
  })

  it('is refused on a mandatory type, as any answer to it is', async () => {
    const reply = await patch({ consents: [{ ...entry(true, full), consent_type_id: 3 }] })
    expect([reply.status, reply.body.details?.map(each => each.path)]).toEqual([400, ['/consents/0/consent_type_id']])
  })

  it('may be a minute ahead, and a later write without a time stands all the same', async () => {
    expect((await patch({ consents: [entry(false, { collected_at: soon(30_000) })] })).status).toBe(200)
    await patch({ consents: [entry(true)] })
    expect(await answersOf()).toMatchObject([{ state: true }])
    await patch({ email_consent: false })
    expect(await person()).toMatchObject({ email_consent: false })
  })
})

describe('a time with up to nine digits of a second', () => {
  const at = '2020-05-01T14:30:00.123456789+02:00'
  const kept = '2020-05-01T12:30:00.123456Z'

  it('is kept to the microsecond in reads, the history, filters and contact decisions', async () => {
    await patch({ email: 'ada@example.org', consents: [entry(true, { collected_at: at })] })
    expect(await answersOf()).toMatchObject([{ answered_at: kept }])
    const { body } = await send('GET', '/v1/people/ada/consents/history')
    expect(body.data.items).toMatchObject([{ collected_at: kept }])
    const asOf = await send('GET', '/v1/people/ada?version=2')
    expect(asOf.body.data.consents).toContainEqual(expect.objectContaining({ answered_at: kept }))
    const found = async (operand: object) => {
      const filter = { consents: { $some: { answered_at: operand } } }
      return (await send('POST', '/v1/people/filter', { filter })).body.data.items.length
    }
    expect([await found({ $eq: kept }), await found({ $gt: kept }), await found({ $lt: at })]).toEqual([1, 0, 1])
    const decision = await send('POST', '/v1/people/ada/contactable', { consent_type_id: 1, channel: 'email' })
    expect(decision.body.data.reasons).toMatchObject([{ collected_at: kept }])
  })

  it('is refused with ten, also as the moment of a read', async () => {
    const ten = '2020-05-01T14:30:00.1234567890Z'
    const reply = await patch({ consents: [entry(true, { collected_at: ten })] })
    expect([reply.status, reply.body.details?.map(({ path }: { path: string }) => path)]).toEqual([
      400,
      ['/consents/0/collected_at'],
    ])
    expect((await send('GET', `/v1/people/ada?at=${ten}`)).status).toBe(400)
  })

  it('orders answers within a millisecond', async () => {
    await patch({ consents: [entry(false, { collected_at: '2020-01-01T00:00:00.0000029Z' })] })
    await patch({ consents: [entry(true, { collected_at: '2020-01-01T00:00:00.000001Z' })] })
    await patch({ consents: [entry(true, { collected_at: '2020-01-01T00:00:00Z' })] })
    expect(await answersOf()).toMatchObject([{ state: false, answered_at: '2020-01-01T00:00:00.000002Z' }])
    expect((await history()).map(({ superseded }) => superseded)).toEqual([false, true, true])
  })

  it('repeats an answer of an import, which then adds nothing', async () => {
    const line: [string, Entry[]] = ['ada', [entry(true, { collected_at: at, method: 'import' })]]
    await importAnswers(line)
    await importAnswers(line)
    expect(await history()).toHaveLength(1)
  })

  it('is taken as the moment of a read, too', async () => {
    const { body } = await send('GET', `/v1/people/ada?at=${new Date().toISOString().replace('Z', '123456Z')}`)
    expect(body.data.as_of.at).toMatch(/\.\d{3}123Z$/)
  })
})

describe('an answer that was collected before the one that stands', () => {
  it('goes to the history, moves the version, and changes no state and no flag', async () => {
    await patch({ consents: [entry(false, { collected_at: late, method: 'phone' })] })
    const before = await person()
    await patch({ consents: [entry(true, { collected_at: early, method: 'paper' })] })
    const { version, updated_at, ...after } = await person()
    expect({ ...after, version: version - 1, updated_at: before.updated_at }).toEqual(before)
    expect(await history()).toMatchObject([
      { version: 2, state: false, previous_state: null, superseded: false },
      { version: 3, state: true, previous_state: false, superseded: true, evidence: { method: 'paper' } },
    ])
  })

  it('loses at an equal time if it is a grant, and wins if it is a refusal', async () => {
    await patch({
      consents: [entry(false, { collected_at: early }), { ...entry(true, { collected_at: early }), channel: 'sms' }],
    })
    await patch({
      consents: [entry(true, { collected_at: early }), { ...entry(false, { collected_at: early }), channel: 'sms' }],
    })
    expect((await answersOf()).map(({ state }: Entry) => state)).toEqual([false, false])
    expect((await history()).map(({ superseded }) => superseded)).toEqual([false, false, true, false])
  })

  it('is told plainly by the change log', async () => {
    await patch({ consents: [entry(false, { collected_at: late })] })
    await patch({ consents: [entry(true, { collected_at: early })] })
    const { items } = (await send('GET', '/v1/people/ada/history?limit=2')).body.data
    const question = { consent_type_id: 1, channel: 'email' }
    expect(items.map(({ before, after }: { before: object; after: object }) => [before, after])).toEqual([
      [
        { consents: [{ ...question, state: false }] },
        { consents: [{ ...question, state: false, superseded: { state: true, answered_at: early } }] },
      ],
      [
        { consents: [{ ...question, state: null }], email_consent: null },
        { consents: [{ ...question, state: false, answered_at: late }], email_consent: false },
      ],
    ])
  })

  it('changes no past state and no restored one', async () => {
    await patch({ consents: [entry(true, { collected_at: late, method: 'web_form', text_version: 3 })] })
    await patch({ consents: [{ ...entry(true), consent_type_id: 2 }] })
    const before = await person()
    await patch({ consents: [entry(false, { collected_at: early })] })
    for (const version of [before.version, before.version + 1]) {
      const { as_of, ...past } = (await send('GET', `/v1/people/ada?version=${version}`)).body.data
      expect(past.consents).toEqual(before.consents)
      expect(as_of.version).toBe(version)
    }
    await send('DELETE', '/v1/people/ada')
    const { consents } = (await send('POST', `/v1/people/internal/${before.id}/restore`)).body.data
    expect(consents).toEqual(before.consents)
    await patch({ consents: [entry(false, { collected_at: early })] })
    expect((await person()).consents).toEqual(before.consents)
  })
})

describe('an import', () => {
  it('of the same answers stores nothing twice, superseded ones included', async () => {
    const lines: [string, Entry[]][] = [
      [
        'ada',
        [entry(true, { collected_at: late, source: 'a' }), { ...entry(true, { method: 'paper' }), channel: 'sms' }],
      ],
      ['bob', [entry(true, { collected_at: late }), { ...entry(false), channel: 'sms' }]],
      ['ada', [entry(false, { collected_at: early, source: 'b' })]],
      ['bob', [entry(true, { collected_at: early, ip: '192.0.2.7' })]],
      ['ada', [{ ...entry(true, full), consent_type_id: 2, text_version: undefined }]],
    ]
    expect((await importAnswers(...lines)).counts).toMatchObject({ created: 1, updated: 4, failed: 0 })
    const before = [await history(), await person('ada'), await person('bob')]
    expect((await importAnswers(...lines)).counts).toMatchObject({ unchanged: 5, updated: 0, failed: 0 })
    expect([await history(), await person('ada'), await person('bob')]).toEqual(before)
  })

  it('adds an answer that differs from the stored ones in any evidence', async () => {
    const given = { collected_at: early, method: 'import', source: 'file' }
    await importAnswers(['ada', [entry(true, given)]])
    for (const other of [{ source: 'other' }, { reference: 'r' }, { method: 'paper' }, { ip: '192.0.2.7' }])
      expect((await importAnswers(['ada', [entry(true, { ...given, ...other })]])).counts).toMatchObject({ updated: 1 })
    expect(await history()).toHaveLength(5)
  })

  it('of an answer at a later time moves the time of an equal one', async () => {
    await importAnswers(['ada', [entry(true, { collected_at: early })]])
    await importAnswers(['ada', [entry(true, { collected_at: late })]])
    expect(await answersOf()).toMatchObject([{ state: true, answered_at: late }])
  })

  it('of an export restores times, methods and texts', async () => {
    await patch({ consents: [entry(true, full), { ...entry(false, { collected_at: early }), channel: 'sms' }] })
    const [exported] = await exportAll(organization, '/v1/people/export')
    const { external_id: _, ...copy } = writable(exported as never)
    await send('POST', '/v1/people', { ...copy, external_id: 'copy' })
    expect((await person('copy')).consents).toEqual((await person()).consents)
  })
})

const doubleOptIn = (state: boolean, rest: object = {}) => ({ ...entry(state, rest), consent_type_id: 2 })

describe('a channel with double opt-in', () => {
  it('keeps a grant pending until a confirmation, and shows it', async () => {
    await patch({ consents: [doubleOptIn(true, { method: 'web_form', text_version: undefined })] })
    const { email_consent } = await person()
    expect([email_consent, await answersOf()]).toMatchObject([
      false,
      [{ state: false, pending: true, method: 'web_form' }],
    ])
    await patch({ consents: [doubleOptIn(true, { method: 'double_opt_in' })] })
    const [confirmed] = await answersOf()
    expect(confirmed).toMatchObject({ state: true, method: 'double_opt_in' })
    expect(confirmed).not.toHaveProperty('pending')
    expect(await person()).toMatchObject({ email_consent: true })
    expect(await history()).toMatchObject([
      { state: true, previous_state: null, pending: true },
      { state: true, previous_state: false, pending: false },
    ])
    const { items } = (await send('GET', '/v1/people/ada/history?limit=2')).body.data
    expect(items[0]).toMatchObject({
      before: { consents: [{ state: false, pending: true }] },
      after: { consents: [{ state: true }] },
    })
    expect(items[1].after.consents).toEqual([{ consent_type_id: 2, channel: 'email', state: false, pending: true }])
  })

  it('keeps the flag true pending if its purpose is the default, and an imported grant', async () => {
    await send('PATCH', `${types}/2`, {
      channels: [{ channel: 'email', is_default: true, double_opt_in: true }, { channel: 'sms' }],
    })
    await patch({ email_consent: true })
    expect(await answersOf()).toMatchObject([{ consent_type_id: 2, state: false, pending: true }])
    await importAnswers(['bob', [doubleOptIn(true, { method: 'import', collected_at: early })]])
    await importAnswers(['eve', [doubleOptIn(true, { method: 'double_opt_in', collected_at: early })]])
    expect(await answersOf('bob')).toMatchObject([{ state: false, pending: true }])
    expect(await answersOf('eve')).toMatchObject([{ state: true, answered_at: early }])
  })

  it('shows what was pending in past and restored states', async () => {
    await patch({ consents: [doubleOptIn(true)] })
    const before = await person()
    await patch({ consents: [doubleOptIn(false)] })
    expect((await send('GET', '/v1/people/ada?version=2')).body.data.consents).toEqual(before.consents)
    await patch({ consents: [doubleOptIn(true)] })
    const pending = (await person()).consents
    await send('DELETE', '/v1/people/ada')
    expect((await send('POST', `/v1/people/internal/${before.id}/restore`)).body.data.consents).toEqual(pending)
  })

  it('is a setting of the type, false by default', async () => {
    const read = (await send('GET', `${types}/2`)).body.data.channels
    expect(read).toEqual([
      { channel: 'email', is_default: false, double_opt_in: true },
      { channel: 'sms', is_default: false, double_opt_in: false },
    ])
    await send('PATCH', `${types}/2`, { channels: [{ channel: 'email' }] })
    expect((await send('GET', `${types}/2`)).body.data.channels).toEqual([
      { channel: 'email', is_default: false, double_opt_in: false },
    ])
  })
})

it('answers with times end in the state of a model, in any order and by any path', async () => {
  const times = [early, '2020-01-01T00:00:00.001Z', '2020-01-01T00:00:00.001001Z', late, '2021-06-01T00:00:00.000Z']
  const answer = fc.record({
    consent_type_id: fc.constantFrom(1, 2),
    channel: fc.constantFrom('email', 'sms'),
    state: fc.boolean(),
    collected_at: fc.constantFrom(...times),
    method: fc.constantFrom('double_opt_in', 'import'),
  })
  const by = fc.constantFrom('patch', 'import', 'batch')
  const strengthOf = ({ state, consent_type_id, channel, method }: Entry) =>
    !state ? 2 : consent_type_id === 2 && channel === 'email' && method !== 'double_opt_in' ? 0 : 1
  const run = async (writes: [Entry, string][]) => {
    const external_id = crypto.randomUUID()
    await send('POST', '/v1/people', { external_id })
    for (const [given, path] of writes) {
      const body = { consents: [given] }
      if (path === 'patch') await send('PATCH', `/v1/people/${external_id}`, body)
      if (path === 'import') await importAnswers([external_id, [given]])
      const operations = [{ op: 'patch', external_id, body }]
      if (path === 'batch') await send('POST', '/v1/people/batch', { operations })
    }
    // The earlier a method is in the list of methods, the higher it ranks.
    const methodRank = ({ method }: Entry) => (method === 'double_opt_in' ? 1 : 0)
    const rank = (given: Entry) =>
      `${times.indexOf(given.collected_at as string)} ${strengthOf(given)} ${methodRank(given)}`
    const sorted = writes.map(([given]) => given).toSorted((a, b) => (rank(a) < rank(b) ? -1 : 1))
    const standing = new Map(sorted.map(given => [`${given.consent_type_id}:${given.channel}`, given]))
    const shown = (await answersOf(external_id)).map(({ source, ...read }: Entry) => read)
    const expected = [...standing.values()].map(given => ({
      ...{ consent_type_id: given.consent_type_id, channel: given.channel, method: given.method },
      ...{ state: strengthOf(given) === 1, answered_at: given.collected_at },
      ...(strengthOf(given) === 0 && { pending: true }),
    }))
    const order = (a: Entry, b: Entry) => a.consent_type_id - b.consent_type_id || (a.channel < b.channel ? -1 : 1)
    expect(shown).toEqual(expected.toSorted(order as never))
    const grantsOf = (channel: string) => shown.some((each: Entry) => each.channel === channel && each.state)
    const answered = (channel: string) => shown.some((each: Entry) => each.channel === channel)
    const { email_consent, sms_consent } = await person(external_id)
    expect([email_consent, sms_consent]).toEqual(
      ['email', 'sms'].map(channel => (answered(channel) ? grantsOf(channel) : null)),
    )
  }
  const writes = fc.array(fc.tuple(answer, by), { minLength: 2, maxLength: 6 })
  await fc.assert(fc.asyncProperty(writes as fc.Arbitrary<[Entry, string][]>, run), someRuns(20))
})
