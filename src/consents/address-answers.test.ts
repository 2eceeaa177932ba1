import fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import { follow } from '../../test/support/followers.ts'
import { importLines, linesFrom } from '../../test/support/lines.ts'
import { someRuns } from '../../test/support/runs.ts'
import { followSegments, readSegmentPeople } from '../../test/support/segments.ts'
import { useOwnService } from '../../test/support/service.ts'
import { createShop, type Shop } from '../../test/support/shop.ts'
import { contextOf } from '../db/context.ts'
import { computePhoneKeys } from '../entities/indexes/phone-keys.ts'
import { addressAnswersFollower } from '../entities/write/store/earlier-answers.ts'
import { type AddressAnswer, storeAddressAnswers } from './address-answers.ts'
import { compareAnswers, type NumberedAnswer } from './answers.ts'

const service = useOwnService()
let shop: Shop
beforeEach(async () => {
  shop = await createShop(service)
  // Type 2 needs no answer.
  await ok('POST', '/v1/schema/consent-types', {
    key: 'surveys',
    channels: [{ channel: 'email' }, { channel: 'sms' }],
    default_state: true,
  })
})

async function ok(method: string, path: string, body?: unknown, headers?: Record<string, string>) {
  const reply = await shop.send(method, path, body, headers)
  if (reply.status >= 300) throw new Error(`${method} ${path} returned ${reply.status}: ${JSON.stringify(reply.body)}`)
  return reply.body.data
}

const email = 'info@example.com'
const other = { email: 'other@example.com' }
const recreate = { Prefer: 'erased=recreate' }
const entry = (state: boolean, more: object = {}) => ({ consent_type_id: 1, channel: 'email', state, ...more })
const create = (external_id: string, body: object = {}, headers?: Record<string, string>) =>
  ok('POST', '/v1/people', { external_id, email, ...body }, headers)
const answer = (external_id: string, ...consents: object[]) => ok('PATCH', `/v1/people/${external_id}`, { consents })
const ask = (external_id: string, consent_type_id = 1, channel = 'email') =>
  ok('POST', `/v1/people/${external_id}/contactable`, { consent_type_id, channel })
const rules = async (external_id: string, consent_type_id = 1, channel = 'email') =>
  (await ask(external_id, consent_type_id, channel)).reasons.map(({ rule }: { rule: string }) => rule)
const load = (lines: object[]) => importLines(shop, '/v1/people/import', linesFrom(lines))
const erase = (external_id: string) => ok('POST', `/v1/people/${external_id}/erase`, { reason: 'r', records: 'keep' })
const readRows = () =>
  service.sql<{ address: string; person_id: string | null; state: boolean }>(
    `select channel, address, consent_type_id, state, answered_at::text, text_version, method_rank,
       sequence, person_id from address_answers where organization_id = $1 order by 1, 2, 3`,
    [shop.id],
  )
const filtered = async (consent_type_id = 1, channel = 'email'): Promise<string[]> => {
  const filter = { contactable: { consent_type_id, channel } }
  const { items } = await ok('POST', '/v1/people/filter?size=100', { filter })
  return items.map(({ external_id }: { external_id: string }) => external_id).sort()
}

describe('a refusal of a mailbox', () => {
  it('forbids to write to another person with it, with its time and who gave it, until a later grant', async () => {
    await create('ada', { consents: [entry(true)] })
    const { id, version } = await create('bob', { email: 'INFO@example.com', consents: [entry(false)] })
    const decision = await ask('ada')
    expect(decision.allowed).toBe(false)
    expect(decision.reasons).toEqual([
      expect.objectContaining({ rule: 'address_answer', state: false, person_id: id, answered_at: expect.any(String) }),
    ])
    expect(version).toBe(1)
    expect(await rules('bob')).toEqual(['answer'])
    expect(await filtered()).toEqual([])
    await answer('bob', entry(true))
    expect(await ask('ada')).toMatchObject({ allowed: true, reasons: [{ rule: 'answer' }] })
    expect(await filtered()).toEqual(['ada', 'bob'])
  })

  it('is shown where it bites', async () => {
    await create('ada', { consents: [entry(true)] })
    const { id } = await create('bob', { consents: [entry(false)] })
    const consents = await ok('GET', '/v1/people/ada/consents')
    expect(consents.items).toEqual([
      expect.objectContaining({ consent_type_id: 1, channel: 'email', state: true, address_refused: true }),
      expect.not.objectContaining({ address_refused: true }),
      expect.not.objectContaining({ address_refused: true }),
      expect.not.objectContaining({ address_refused: true }),
    ])
    const own = await ok('GET', `/v1/people/internal/${id}/consents`)
    expect(own.items[0]).toMatchObject({ state: false, source: 'answer' })
    expect(own.items.every((item: object) => !('address_refused' in item))).toBe(true)
    expect((await shop.send('GET', '/v1/people/nobody/consents')).status).toBe(404)
  })

  it('stands when its person is deleted and the next import brings the person back', async () => {
    await create('ada', { consents: [entry(false), { ...entry(false), consent_type_id: 2 }] })
    await ok('DELETE', '/v1/people/ada')
    await load([{ external_id: 'ada', email, email_consent: true }])
    expect(await rules('ada')).toEqual(['address_answer'])
    expect(await rules('ada', 2)).toEqual(['address_answer'])
  })

  it('stands for a new person without an answer, after a merge, an unmerge and a restore', async () => {
    await create('ada', { consents: [{ ...entry(false), consent_type_id: 2 }] })
    await create('bob', { email: 'bob@example.com' })
    expect(await rules('bob', 2)).toEqual(['default'])
    await ok('PATCH', '/v1/people/bob', { email })
    expect(await rules('bob', 2)).toEqual(['address_answer'])
    await ok('POST', '/v1/people/bob/merge', { from: 'ada' })
    expect((await ask('bob', 2)).allowed).toBe(false)
    await ok('POST', '/v1/people/bob/unmerge', { from: 'ada' })
    expect(await rules('bob', 2)).toEqual(['address_answer'])
    const { id } = await ok('GET', '/v1/people/bob')
    await ok('DELETE', '/v1/people/ada')
    await ok('DELETE', '/v1/people/bob')
    await ok('POST', `/v1/people/internal/${id}/restore`)
    expect(await rules('bob', 2)).toEqual(['address_answer'])
  })

  it('counts by when it was collected, and a grant that waits for its confirmation lifts nothing', async () => {
    await ok('PATCH', '/v1/schema/consent-types/2', { channels: [{ channel: 'email', double_opt_in: true }] })
    await create('ada', { consents: [entry(false, { consent_type_id: 2, collected_at: '2026-02-01T00:00:00Z' })] })
    await create('bob', {
      consents: [entry(true, { consent_type_id: 2, collected_at: '2026-01-01T00:00:00Z', method: 'double_opt_in' })],
    })
    expect(await rules('bob', 2)).toEqual(['address_answer'])
    await create('cleo', { consents: [entry(true, { consent_type_id: 2 })] })
    expect(await rules('bob', 2)).toEqual(['address_answer'])
    await answer('cleo', entry(true, { consent_type_id: 2, method: 'double_opt_in' }))
    expect(await rules('bob', 2)).toEqual(['answer'])
  })

  it('is one of the phone number on sms', async () => {
    const phone = { mobile_prefix: '+41', mobile_number: '79 123 45 67' }
    await create('ada', { ...phone, consents: [{ consent_type_id: 2, channel: 'sms', state: false }] })
    await create('bob', { email: 'bob@example.com', mobile_number: '+41791234567' })
    expect(await rules('bob', 2, 'sms')).toEqual(['address_answer'])
    expect(await rules('bob', 2, 'email')).toEqual(['default'])
    expect(await filtered(2, 'sms')).toEqual([])
  })

  it('stays under the hash alone after an erasure, and forbids again when somebody gets the address', async () => {
    await create('ada', { consents: [{ ...entry(false), consent_type_id: 2 }] })
    await create('bob', { email: 'bob@example.com', consents: [{ ...entry(false), consent_type_id: 2 }] })
    await create('cleo', { email: 'bob@example.com' })
    await erase('ada')
    await erase('bob')
    // Cleo has the address, too.
    expect((await readRows()).map(({ address, person_id }) => [address, person_id]).sort()).toEqual([
      ['bob@example.com', null],
      [expect.stringMatching(/^erased:[\da-f]{64}$/), null],
    ])
    expect(await rules('cleo', 2)).toEqual(['address_answer'])
    await create('ada', {}, { Prefer: 'erased=recreate' })
    expect(await rules('ada', 2)).toEqual(['address_answer'])
    expect((await ask('ada', 2)).reasons[0]).toMatchObject({ person_id: null })
  })

  let bob: string
  it.each<[string, () => Promise<unknown>, () => Promise<unknown>]>([
    ['a create', async () => {}, () => create('bob', {}, recreate)],
    ['a change', () => create('bob', other), () => ok('PATCH', '/v1/people/bob', { email }, recreate)],
    ['an upsert', async () => {}, () => ok('POST', '/v1/people/upsert', { external_id: 'bob', email }, recreate)],
    ['a replacement', () => create('bob', other), () => ok('PUT', '/v1/people/bob', { email }, recreate)],
    [
      'a batch',
      async () => {},
      () =>
        ok(
          'POST',
          '/v1/people/batch',
          { operations: [{ op: 'create', body: { external_id: 'bob', email } }] },
          recreate,
        ),
    ],
    [
      'an import',
      async () => {},
      () => importLines(shop, '/v1/people/import', linesFrom([{ external_id: 'bob', email }]), recreate),
    ],
    [
      'a restore',
      async () => {
        bob = (await create('bob')).id
        await ok('DELETE', '/v1/people/bob')
      },
      () => ok('POST', `/v1/people/internal/${bob}/restore`, undefined, recreate),
    ],
    [
      'an unmerge',
      async () => {
        await create('bob')
        await create('cleo', other)
        await ok('POST', '/v1/people/cleo/merge', { from: 'bob' })
      },
      () => ok('POST', '/v1/people/cleo/unmerge', { from: 'bob' }, recreate),
    ],
  ])(
    'forbids again at once, as the suppression does, when %s gives the erased address to somebody',
    async (_, before, give) => {
      await create('ada', { consents: [{ ...entry(false), consent_type_id: 2 }] })
      await ok('POST', '/v1/deliverability', { events: [{ channel: 'email', address: email, type: 'hard_bounce' }] })
      await before()
      await erase('ada')
      expect((await readRows()).map(({ address }) => address)).toEqual([expect.stringMatching(/^erased:/)])
      await give()
      expect(await rules('bob', 2)).toEqual(['suppressed', 'address_answer'])
    },
  )

  it('forbids again when another country makes a number that of an erased person', async () => {
    const consents = [{ consent_type_id: 2, channel: 'sms', state: false }]
    await create('ada', { mobile_number: '+41791234567', consents })
    await create('bob', { email: 'bob@example.com', mobile_number: '079 123 45 67' })
    await ok('POST', '/v1/deliverability', { events: [{ channel: 'sms', external_id: 'ada', type: 'complaint' }] })
    await erase('ada')
    await ok('PATCH', '/v1/schema/settings', { default_country: 'CH' })
    await computePhoneKeys(contextOf(service.db, shop.id))
    expect(await rules('bob', 2, 'sms')).toEqual(['suppressed', 'address_answer'])
  })

  it('forbids when a mail provider tells of an unsubscription after the erasure', async () => {
    await create('ada')
    await erase('ada')
    const event = { channel: 'email', address: email, type: 'unsubscribe', consent_type_id: 2 }
    await ok('POST', '/v1/deliverability', { events: [event] })
    expect((await readRows()).map(({ address }) => address)).toEqual([expect.stringMatching(/^erased:/)])
    await create('bob', {}, recreate)
    expect(await rules('bob', 2)).toEqual(['address_answer'])
  })

  it('moves the people who share the mailbox out of a segment and in again, and is in the statistics', async () => {
    await ok('POST', '/v1/segments', {
      key: 'newsletter',
      name: 'Newsletter',
      filter: { contactable: { consent_type_id: 1, channel: 'email' } },
    })
    const { id } = await create('ada', { consents: [entry(true)] })
    await followSegments(service)
    const members = () => readSegmentPeople(shop, 'newsletter')
    const counted = async () =>
      (await ok('POST', '/v1/consents/statistics', { consent_type_id: 1, channel: 'email', interval: 'day' })).items[0]
        .contactable
    expect([await members(), await counted()]).toEqual([[id], 1])
    const { id: bob } = await create('bob', { consents: [entry(false)] })
    // The answer belongs to the address that Bob had then, not to the current one.
    await ok('PATCH', '/v1/people/bob', { email: 'bob@example.com' })
    await followSegments(service)
    expect([await members(), await counted()]).toEqual([[], 0])
    await ok('PATCH', '/v1/people/bob', { email })
    await answer('bob', entry(true))
    await followSegments(service)
    expect([await members(), await counted()]).toEqual([[id, bob].sort(), 2])
  })
})

it('the answers of addresses from before an upgrade follow from the history', async () => {
  await create('ada', { mobile_number: '+41791234567', consents: [entry(true), { ...entry(false), channel: 'sms' }] })
  await answer('ada', entry(false, { collected_at: '2026-01-01T00:00:00.123456Z', method: 'paper' }))
  await ok('PATCH', '/v1/people/ada', {
    email: 'ada@bücher.example',
    consents: [entry(true, { text_version: undefined })],
  })
  await ok('PATCH', '/v1/people/ada', { email: 'later@example.com', mobile_number: '+41791234568' })
  await create('bob', { email: 'bob@example.com', consents: [entry(false)] })
  await ok('DELETE', '/v1/people/bob')
  await create('cleo', { email: 'cleo@example.com', consents: [entry(true), { ...entry(false), channel: 'sms' }] })
  await ok('POST', '/v1/people/ada/merge', { from: 'cleo' })
  await load([{ external_id: 'dora', email: 'dora@example.com', email_consent: true }])
  const before = await readRows()
  expect(before).toHaveLength(6)
  await service.sql('delete from address_answers where organization_id = $1', [shop.id])
  await service.sql(`insert into followers (organization_id, name) values ($1, 'address_answers')`, [shop.id])
  await follow(service.db, [addressAnswersFollower()])
  expect(await readRows()).toEqual(before)
  expect(
    await service.sql(`select from followers where organization_id = $1 and name = 'address_answers'`, [shop.id]),
  ).toEqual([])
})

const times = ['2026-01-01T00:00:00.000Z', '2026-01-02T00:00:00.000001Z']
const numbered: fc.Arbitrary<NumberedAnswer & { sequence: number }> = fc
  .record({
    state: fc.boolean(),
    answered_at: fc.constantFrom(...times),
    evidence: fc.record(
      {
        method: fc.constantFrom('web_form' as const, 'phone' as const, 'other' as const),
        text_version: fc.constantFrom(1, 2),
        undated: fc.constant(true as const),
      },
      { requiredKeys: [] },
    ),
    sequence: fc.integer({ min: 1, max: 1_000 }),
  })
  .map(({ evidence, ...rest }) => ({ ...rest, ...evidence }))

it('PostgreSQL and the rules agree which of the answers of an address stands', async () => {
  const answers = fc.uniqueArray(numbered, { minLength: 1, maxLength: 8, selector: ({ sequence }) => sequence })
  let number = 0
  await fc.assert(
    fc.asyncProperty(answers, fc.integer({ min: 1, max: 8 }), async (given, perStatement) => {
      number += 1
      const address = `${number}@example.com`
      const ofAddress = given.map(
        (answer): AddressAnswer => ({
          consent_type_id: 1,
          channel: 'email',
          address,
          person_id: crypto.randomUUID(),
          answer,
        }),
      )
      await service.db.transaction(async tx => {
        for (let first = 0; first < ofAddress.length; first += perStatement)
          await storeAddressAnswers(tx, shop.id, ofAddress.slice(first, first + perStatement))
      })
      const [row] = await service.sql<{ sequence: number }>(
        'select sequence from address_answers where organization_id = $1 and address = $2',
        [shop.id, address],
      )
      expect(row!.sequence).toBe(given.toSorted(compareAnswers).at(-1)!.sequence)
    }),
    someRuns(300),
  )
}, 30_000)

const addresses = ['x@example.com', 'y@example.com']
const names = ['ada', 'bob', 'cleo']
const name = fc.constantFrom(...names)
const given = fc
  .record({
    consent_type_id: fc.constantFrom(1, 2),
    state: fc.boolean(),
    more: fc.record(
      { collected_at: fc.constantFrom(...times), method: fc.constantFrom('phone', 'paper') },
      { requiredKeys: [] },
    ),
  })
  .map(({ more, ...rest }) => ({ ...rest, channel: 'email', ...more }))
const consents = fc.uniqueArray(given, { maxLength: 2, selector: ({ consent_type_id }) => consent_type_id })
const address = fc.constantFrom(...addresses)
const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constantFrom('write' as const, 'import' as const), who: name, address, consents }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('move' as const), who: name, address }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constantFrom('hard_bounce' as const, 'complaint' as const, 'unsubscribe' as const),
      address,
      isDated: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constantFrom('delete' as const, 'restore' as const, 'erase' as const), who: name }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constantFrom('merge' as const, 'unmerge' as const), who: name, other: name }),
  },
)
type Step = typeof step extends fc.Arbitrary<infer Each> ? Each : never

/** A refusal from a mail provider that no person has, because no person had the address. */
type Told = { address: string; answered_at: string }

/** Takes a step if it is possible at this moment. */
async function take(step: Step, ids: Map<string, string>): Promise<Told | undefined> {
  if ('isDated' in step) {
    const { do: type, address, isDated } = step
    const held = await service.sql('select from entities where organization_id = $1 and email_key = $2', [
      shop.id,
      address,
    ])
    const answered_at = new Date().toISOString()
    // Only an unsubscription is dated back: the suppression by an old hard bounce would have ended.
    const at = isDated && type === 'unsubscribe' ? times[1]! : answered_at
    await ok('POST', '/v1/deliverability', { events: [{ channel: 'email', address, type, at }] })
    return held.length > 0 || type === 'hard_bounce' ? undefined : { address, answered_at: at }
  }
  const { who } = step
  if (step.do === 'write') {
    const body = { external_id: who, email: step.address, consents: step.consents }
    const { status, body: reply } = await shop.send('PUT', `/v1/people/${who}`, body, recreate)
    if (status < 300) ids.set(who, reply.data.id)
  } else if (step.do === 'import') {
    const line = { external_id: who, email: step.address, consents: step.consents }
    await importLines(shop, '/v1/people/import', linesFrom([line]), recreate)
  } else if (step.do === 'move') await shop.send('PATCH', `/v1/people/${who}`, { email: step.address }, recreate)
  else if (step.do === 'delete') await shop.send('DELETE', `/v1/people/${who}`)
  else if (step.do === 'restore')
    await shop.send('POST', `/v1/people/internal/${ids.get(who)}/restore`, undefined, recreate)
  else if (step.do === 'erase') await shop.send('POST', `/v1/people/${who}/erase`, { reason: 'r', records: 'keep' })
  else if ('other' in step) await shop.send('POST', `/v1/people/${who}/${step.do}`, { from: step.other }, recreate)
  return undefined
}

type Recorded = { sequence: number; person_id: string; consent_type_id: number; email: string } & Pick<
  NumberedAnswer,
  'state' | 'answered_at'
> & {
    undated: boolean
    method: NonNullable<NumberedAnswer['method']> | null
  }

/** The answers of the changes after a number, with the current address of each person. */
const readAnswersAfter = (sequence: number) =>
  service.sql<Recorded>(
    `select c.sequence, a.person_id, a.consent_type_id, a.state, a.undated, e.email, a.evidence->>'method' as method,
       to_char(coalesce(a.collected_at, a.at) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as answered_at
     from consent_history a
       join changes c on c.organization_id = $1 and c.entity_id = a.person_id and c.version = a.version
       join entities e on e.organization_id = $1 and e.stack_id = 0 and e.id = a.person_id
     where a.organization_id = $1 and c.sequence > $2`,
    [shop.id, sequence],
  )

const readHead = async () =>
  (
    await service.sql<{ sequence: number }>('select sequence from change_heads where organization_id = $1', [shop.id])
  )[0]!.sequence

const readStates = () =>
  service.sql<{ address: string; consent_type_id: number; state: boolean }>(
    `select v.address, w.consent_type_id, w.state from unnest($2::text[]) as v(address) join tombstone_keys k on k.organization_id = $1
       join address_answers w on w.organization_id = $1 and w.channel = 'email' and w.address in (v.address,
         'erased:' || encode(sha256(k.secret || sha256(k.secret || convert_to('email:' || v.address, 'UTF8'))), 'hex'))`,
    [shop.id, addresses],
  )

it('after any history, an address has the last answer that was given for it, and nobody becomes writable without a grant', async () => {
  const seen = { refused: 0, erased: 0, suppressed: 0, steps: 0 }
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 14 }), async steps => {
      shop = await createShop(service)
      await ok('POST', '/v1/schema/consent-types', {
        key: 'surveys',
        channels: [{ channel: 'email' }],
        default_state: true,
      })
      const ids = new Map<string, string>()
      const standing = new Map<string, NumberedAnswer>()
      const record = (address: string, consent_type_id: number, answer: NumberedAnswer) => {
        const other = standing.get(`${address} ${consent_type_id}`)
        if (!other || compareAnswers(answer, other) > 0) standing.set(`${address} ${consent_type_id}`, answer)
      }
      const suppressed = new Set<string>()
      for (const each of steps) {
        const before = await readHead()
        const told = await take(each, ids)
        const method = each.do === 'complaint' ? 'other' : 'unsubscribe_link'
        if (told)
          for (const consent_type_id of [1, 2])
            record(told.address, consent_type_id, { state: false, answered_at: told.answered_at, method, sequence: 0 })
        if (each.do === 'hard_bounce' || each.do === 'complaint') suppressed.add(each.address)
        for (const { email, consent_type_id, sequence, method, undated, ...answer } of await readAnswersAfter(before)) {
          const recorded: NumberedAnswer = {
            ...answer,
            sequence,
            ...(method && { method }),
            ...(undated && { undated }),
          }
          record(email, consent_type_id, recorded)
        }
        seen.steps += 1
        seen.suppressed += suppressed.size
        const states = (await readStates()).map(row => [`${row.address} ${row.consent_type_id}`, row.state])
        expect(Object.fromEntries(states)).toEqual(
          Object.fromEntries([...standing].map(([key, { state }]) => [key, state])),
        )
        for (const consent_type_id of [1, 2]) {
          const { items } = await ok('POST', '/v1/people/contactable', {
            external_ids: names,
            consent_type_id,
            channel: 'email',
          })
          const people = await service.sql<{ external_id: string; email: string; own: boolean | null }>(
            `select e.external_id, e.email, (e.answers->($2 || ':email')->>'state')::boolean as own from entities e
             where e.organization_id = $1 and e.stack_id = 0 and e.external_id is not null`,
            [shop.id, String(consent_type_id)],
          )
          const allowed = people
            .filter(
              ({ email, own }) =>
                (own ?? consent_type_id === 2) &&
                !suppressed.has(email) &&
                standing.get(`${email} ${consent_type_id}`)?.state !== false,
            )
            .map(({ external_id }) => external_id)
            .sort()
          seen.refused += people.length - allowed.length
          expect(await filtered(consent_type_id)).toEqual(allowed)
          const decided = items.filter((item: { allowed: boolean }) => item.allowed)
          const isPerson = (external_id: string) => people.some(person => person.external_id === external_id)
          expect(
            decided
              .map(({ external_id }: { external_id: string }) => external_id)
              .filter(isPerson)
              .sort(),
          ).toEqual(allowed)
          const { items: counted } = await ok('POST', '/v1/consents/statistics', {
            consent_type_id,
            channel: 'email',
            interval: 'day',
          })
          expect(counted[0].contactable).toBe(allowed.length)
        }
        if (each.do === 'erase') seen.erased += 1
      }
    }),
    someRuns(60),
  )
  expect(seen.refused).toBeGreaterThan(20)
  expect(seen.erased).toBeGreaterThan(0)
  expect(seen.suppressed).toBeGreaterThan(0)
}, 120_000)
