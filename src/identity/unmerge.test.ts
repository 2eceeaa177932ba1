import fc from 'fast-check'
import { expect, it } from 'vitest'
import { someRuns } from '../../test/support/runs.ts'
import { type Organization, useService } from '../../test/support/service.ts'
import { createShop } from '../../test/support/shop.ts'

const service = useService()

// Two organizations have the same writes. One of them merges two people before the last writes and unmerges them after.
// It must end in the state of the other, which never merged any people.

type Body = Record<string, unknown>
type Write = { name: string; body: Body; method: 'PATCH' | 'PUT' }

const people = ['ada', 'bob', 'cleo', 'dan']
const answer = fc.record(
  {
    consent_type_id: fc.constantFrom(1, 2),
    channel: fc.constantFrom('email', 'sms'),
    state: fc.boolean(),
    collected_at: fc.constantFrom('2020-01-01T00:00:00Z', '2020-01-02T00:00:00Z', '2020-01-03T00:00:00Z'),
    method: fc.constantFrom('double_opt_in', 'paper'),
  },
  { requiredKeys: ['consent_type_id', 'channel', 'state'] },
)
const consents = fc.uniqueArray(answer, {
  selector: ({ consent_type_id, channel }) => `${consent_type_id} ${channel}`,
  minLength: 1,
  maxLength: 3,
})
type Values = { words: string[]; numbers: number[]; targets: string[]; flags: boolean[] }

const bodyOf = ({ words, numbers, targets, flags }: Values): fc.Arbitrary<Body> => {
  const target = fc.constantFrom(...targets)
  const text = fc.constantFrom(null, ...words)
  return fc.record(
    {
      first_name: text,
      email: fc.constantFrom(null, ...words.map(word => `${word}@example.org`)),
      language: text,
      push_notification_consent: fc.constantFrom(null, ...flags),
      consents,
      attribute_values: fc.record(
        {
          score: fc.constantFrom(null, ...numbers),
          note: fc.constantFrom<unknown>(null, ...words.map(word => ({ a: [word] }))),
          referrer: fc.option(target),
          friends: fc.uniqueArray(target, { maxLength: 4 }),
          employer: text,
        },
        { requiredKeys: [] },
      ),
    },
    { requiredKeys: [] },
  )
}
const setup = fc.tuple(
  ...people.map(() => bodyOf({ words: ['en', 'it'], numbers: [1, 2], targets: people, flags: [false, true] })),
)
// The last writes have other values than the first ones, because a write of the same value changes nothing. They name
// no merged person, because such a write would change the survivor.
const later: fc.Arbitrary<Write> = fc.record({
  name: fc.constantFrom('ada', 'ada', 'cleo', 'dan'),
  body: bodyOf({ words: ['de', 'fr'], numbers: [3, 4], targets: ['eve', 'fay'], flags: [] }),
  method: fc.constantFrom('PATCH', 'PATCH', 'PATCH', 'PUT'),
})
/**
 * Whether the last writes clear a link of the survivor that the merge has ended. Such a write changes nothing, so the
 * unmerge ignores it.
 */
const clearsEndedLink = (setup: Body[], later: Write[]) =>
  ['referrer', 'friends'].some(key => {
    const targets = [valuesOf(setup[0]!)[key]].flat()
    if (!targets.every(target => target === 'bob')) return false
    return later.some(({ name, body, method }) => {
      const value = valuesOf(body)[key]
      return name === 'ada' && (value === undefined ? method === 'PUT' : [value].flat().every(each => each === null))
    })
  })
const valuesOf = ({ attribute_values }: Body) => (attribute_values ?? {}) as Body

/**
 * Whether the survivor answers by email and the other has an email or an answer by email. Such an answer also counts
 * for the address that both had. It needs no confirmation if the other had confirmed, and an unmerge does not change
 * it.
 */
const answersForOther = ([, bob]: Body[], later: Write[]) =>
  (Boolean(bob!.email) || answersByEmail(bob!)) &&
  later.some(({ name, body }) => name === 'ada' && answersByEmail(body))
const answersByEmail = ({ consents = [] }: Body) => (consents as Body[]).some(({ channel }) => channel === 'email')

const history = fc
  .record({ setup, later: fc.array(later, { maxLength: 5 }), byAlias: fc.boolean() })
  .filter(({ setup, later }) => !clearsEndedLink(setup, later) && !answersForOther(setup, later))
type History = typeof history extends fc.Arbitrary<infer T> ? T : never

async function begin({ setup }: History): Promise<Organization> {
  const shop = await createShop(service, 'referrer', 'friends', 'employer', 'score', {
    key: 'second',
    channels: [{ channel: 'email', double_opt_in: true }, { channel: 'sms' }],
    default_state: true,
  })
  const upsert = (external_id: string, body: object) => shop.ok('POST', '/v1/people/upsert', { external_id, ...body })
  for (const [index, external_id] of people.entries()) await upsert(external_id, setup[index]!)
  // The first person may be a placeholder before.
  for (const external_id of people) await upsert(external_id, { mobile_number: '+4915112345678' })
  await shop.send('POST', '/v1/people', { external_id: 'bob' })
  return shop
}

async function writeLater({ send }: Organization, { later }: History, nameOf: (name: string) => string) {
  for (const { name, body, method } of later) {
    const reply = await send(method, `/v1/people/${nameOf(name)}`, body)
    expect(reply.status, JSON.stringify([body, reply.body])).toBe(200)
  }
}

/** Replaces times of the clock, which differ between the two organizations. */
const timeless = (_: string, value: unknown) =>
  typeof value === 'string' && /^\d{4}-\d\d-\d\dT/.test(value) && !value.startsWith('2020') ? 'now' : value

// biome-ignore lint/suspicious/noExplicitAny: any response
const comparable = (value: any) => JSON.parse(JSON.stringify(value, timeless))

/** All reads that show these people, by name. */
async function readAll({ send }: Organization) {
  const data = async (method: string, path: string, body?: unknown) => {
    const reply = await send(method, path, body)
    expect(reply.status, JSON.stringify([path, reply.body])).toBe(200)
    return reply.body.data
  }
  const reads = await Promise.all(people.map(external_id => data('GET', `/v1/people/${external_id}`)))
  const filters = [
    { 'attribute_values.score': 1 },
    { 'attribute_values.referrer': 'bob' },
    { 'attribute_values.friends': { $some: { external_id: 'ada' } } },
    { consents: { $some: { consent_type_id: 1, channel: 'email', state: true } } },
    { consents: { $some: { method: 'paper' } } },
    { email: 'en@example.org' },
    { email_consent: false },
  ]
  const found = await Promise.all(
    filters.map(async filter => {
      const { items } = await data('POST', '/v1/people/filter', { filter })
      return items.map((item: { external_id: string }) => item.external_id).sort()
    }),
  )
  const questions = [1, 2].flatMap(consent_type_id =>
    ['email', 'sms'].map(channel => ({ external_ids: people, consent_type_id, channel })),
  )
  const contactable = await Promise.all(
    questions.map(async question => {
      const { items } = await data('POST', '/v1/people/contactable', question)
      return items.map(
        ({
          allowed,
          reasons,
        }: {
          allowed: boolean
          reasons: { rule: string; method?: string; collected_at?: string }[]
        }) => [allowed, reasons.map(({ rule, method }) => [rule, method])],
      )
    }),
  )
  return {
    people: reads.map(({ id, version, created_at, updated_at, ...person }) => comparable(person)),
    found,
    contactable,
  }
}

const histories = Number(process.env.KITH_MERGE_HISTORIES ?? someRuns(6).numRuns)

it('leaves what was written after the merge with the survivor, and everything else as if nobody had been merged', {
  timeout: 60_000 + histories * 10_000,
}, async () => {
  const seen = { histories: 0, writes: 0 }
  const property = fc.asyncProperty(history, async given => {
    const [merged, plain] = [await begin(given), await begin(given)]
    const reply = await merged.send('POST', '/v1/people/ada/merge', { from: 'bob' })
    expect(reply.status, JSON.stringify(reply.body)).toBe(200)
    await writeLater(merged, given, name => (given.byAlias && name === 'ada' ? 'bob' : name))
    await writeLater(plain, given, name => name)
    const undone = await merged.send('POST', '/v1/people/ada/unmerge', { from: 'bob' })
    expect(undone.status, JSON.stringify(undone.body)).toBe(200)
    expect(await readAll(merged)).toEqual(await readAll(plain))
    // The state that follows from the log equals the stored state.
    for (const external_id of people) {
      const { data } = (await merged.send('GET', `/v1/people/${external_id}`)).body
      const { as_of, ...past } = (await merged.send('GET', `/v1/people/${external_id}?version=${data.version}`)).body
        .data
      const { as_of: _, ...now } = (
        await merged.send('GET', `/v1/people/${external_id}?at=${new Date().toISOString()}`)
      ).body.data
      expect(now).toEqual(data)
      expect(past.external_id).toBe(external_id)
    }
    const counts = await service.sql<{ aliases: number; terms: number }>(
      `select (select count(*)::integer from aliases where organization_id = $1) as aliases,
         (select count(*)::integer from terms t where t.organization_id = $1 and not exists (
           select from entities e where e.organization_id = $1 and e.id = t.entity_id)) as terms`,
      [merged.id],
    )
    expect(counts).toEqual([{ aliases: 0, terms: 0 }])
    seen.histories += 1
    seen.writes += given.later.length
  })
  await fc.assert(property, { numRuns: histories, endOnFailure: histories > 6 })
  console.log(`unmerge: ${JSON.stringify(seen)}`)
})

/** Merges of pairs of people, by their indexes among the people who are not merged yet. */
const pairs = fc.array(fc.tuple(fc.nat(), fc.nat()), { minLength: 1, maxLength: people.length - 1 })

it('gives everything back once all merges are undone, in the reverse of their order or in any other', {
  timeout: 60_000 + histories * 10_000,
}, async () => {
  const run = fc.asyncProperty(
    fc.record({ setup, pairs, isReverse: fc.boolean(), next: fc.infiniteStream(fc.nat()) }),
    async given => {
      const shop = await begin({ setup: given.setup, later: [], byAlias: false })
      const send = async (into: string, action: string, from: string) => {
        const reply = await shop.send('POST', `/v1/people/${into}/${action}`, { from })
        expect(reply.status, JSON.stringify([into, action, from, reply.body])).toBe(200)
      }
      const alive = [...people]
      const done: { into: string; from: string; before: Awaited<ReturnType<typeof readAll>> }[] = []
      for (const [one, other] of given.pairs) {
        const [into] = alive.splice(one % alive.length, 1) as [string]
        const [from] = alive.splice(other % alive.length, 1) as [string]
        alive.push(into)
        done.push({ into, from, before: await readAll(shop) })
        await send(into, 'merge', from)
      }
      const first = done[0]!.before
      while (done.length > 0) {
        // A merge into a person who was merged later can be undone only after that later merge.
        const possible = done.filter(({ into }) => !done.some(({ from }) => from === into))
        const merge = given.isReverse ? done.at(-1)! : possible[given.next.next().value % possible.length]!
        done.splice(done.indexOf(merge), 1)
        await send(merge.into, 'unmerge', merge.from)
        if (given.isReverse) expect(await readAll(shop)).toEqual(merge.before)
      }
      expect(await readAll(shop)).toEqual(first)
    },
  )
  await fc.assert(run, { numRuns: histories })
})
