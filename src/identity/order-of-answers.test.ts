import fc from 'fast-check'
import { expect, it } from 'vitest'
import { importLines, linesFrom } from '../../test/support/lines.ts'
import { useService } from '../../test/support/service.ts'
import { createShop, type Shop } from '../../test/support/shop.ts'
import { compareAnswers, type NumberedAnswer } from '../consents/answers.ts'
import { methods } from '../consents/schema.ts'

// One order decides which of two answers to a question is in force, however they arrive.

const service = useService()
const runs = Number(process.env.KITH_ANSWER_ORDER_RUNS ?? 12)

const times = [1, 2].map(day => `2026-01-0${day}T00:00:00.000Z`)
const evidence = fc.record(
  {
    method: fc.constantFrom('web_form' as const, 'double_opt_in' as const, 'phone' as const),
    text_version: fc.nat({ max: 1 }).map(n => n + 1),
  },
  { requiredKeys: [] },
)

it('is a total order, in which only the number of the change decides between answers that are equal otherwise', () => {
  const answer: fc.Arbitrary<NumberedAnswer> = fc
    .tuple(fc.constantFrom('grant', 'refusal', 'pending'), fc.constantFrom(...times), evidence, fc.nat({ max: 3 }))
    .map(([kind, answered_at, rest, sequence]) => ({
      ...{ state: kind === 'grant', answered_at, ...rest, sequence },
      ...(kind === 'pending' && { pending: true as const }),
    }))
  fc.assert(
    fc.property(answer, answer, answer, (a, b, c) => {
      expect(Math.sign(compareAnswers(a, b))).toBe(-Math.sign(compareAnswers(b, a)) + 0)
      if (compareAnswers(a, b) >= 0 && compareAnswers(b, c) >= 0) expect(compareAnswers(a, c)).toBeGreaterThanOrEqual(0)
      expect(compareAnswers(a, b) === 0).toBe(JSON.stringify(sorted(a)) === JSON.stringify(sorted(b)))
    }),
    { numRuns: 5_000 },
  )
})

const sorted = (answer: object) => Object.entries(answer).sort(([a], [b]) => (a < b ? -1 : 1))

const people = ['ada', 'bob', 'cleo'] as const
type Name = (typeof people)[number]
const name = fc.constantFrom(...people)
const entry = fc
  .tuple(fc.constantFrom('email', 'sms'), fc.boolean(), fc.option(fc.constantFrom(...times), { freq: 6 }), evidence)
  .map(([channel, state, collected_at, rest]) => ({
    ...{ consent_type_id: 1, channel, state, ...rest },
    ...(collected_at && { collected_at }),
  }))
const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom('patch' as const, 'upsert' as const, 'batch' as const, 'import' as const),
      who: name,
      entry,
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('merge' as const), nth: fc.nat({ max: 5 }) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('unmerge' as const), nth: fc.nat({ max: 5 }) }) },
)
type Step = { do: string; who?: Name; entry?: object; pair?: [Name, Name] }

type HistoryItem = {
  sequence: number
  channel: string
  state: boolean
  pending: boolean
  at: string
  collected_at: string | null
  undated?: true
  method: (typeof methods)[number] | null
  text_version: number | null
  merged_person_id?: string
}

/** The promise as an order: the last of these answers is in force. */
const byOrder = (a: HistoryItem, b: HistoryItem) => {
  const strengthOf = ({ state, pending }: HistoryItem) => (pending ? 'waits' : state ? 'granted' : 'refused')
  const ranks = ['waits', 'granted', 'refused']
  // An undated answer of an import comes before all others, because the time at which it was given is unknown.
  const timeOf = ({ undated, collected_at, at }: HistoryItem) => (undated ? 0 : Date.parse(collected_at ?? at))
  const methodOf = ({ method }: HistoryItem) => (method ? methods.indexOf(method) : methods.length)
  return (
    timeOf(a) - timeOf(b) ||
    ranks.indexOf(strengthOf(a)) - ranks.indexOf(strengthOf(b)) ||
    (a.text_version ?? 0) - (b.text_version ?? 0) ||
    methodOf(b) - methodOf(a) ||
    a.sequence - b.sequence
  )
}

async function run(shop: Shop, { do: way, who, entry, pair }: Step): Promise<boolean> {
  const body = { consents: [entry] }
  const ways: Record<string, () => Promise<{ status: number }>> = {
    patch: () => shop.send('PATCH', `/v1/people/${who}`, body),
    upsert: () => shop.send('POST', '/v1/people/upsert', { external_id: who, ...body }),
    batch: () =>
      shop.send('POST', '/v1/people/batch', {
        operations: [{ op: 'patch', external_id: who, body }],
      }),
    import: async () => {
      const { counts } = await importLines(shop, '/v1/people/import', linesFrom([{ external_id: who, ...body }]))
      return { status: counts.failed === 0 ? 200 : 400 }
    },
    merge: () => shop.send('POST', `/v1/people/${pair![0]}/merge`, { from: pair![1] }),
    unmerge: () => shop.send('POST', `/v1/people/${pair![0]}/unmerge`, { from: pair![1] }),
  }
  return (await ways[way]!()).status === 200
}

it('keeps the answer that stands first in that order, after any writes, imports, merges and unmerges', {
  timeout: 240_000,
}, async () => {
  const type = {
    key: 'news',
    channels: [{ channel: 'email', double_opt_in: true }, { channel: 'sms' }],
  } as const
  const seen = { steps: 0, merges: 0, unmerges: 0, checked: 0 }
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 6, maxLength: 14 }), async steps => {
      const shop = await createShop(service)
      await shop.ok('POST', '/v1/schema/consent-types', { name: 'News', ...type })
      for (const text of ['One', 'Two'])
        await shop.ok('POST', '/v1/schema/consent-types/1/texts', { language: 'en', text })
      const ids = new Map<Name, string>()
      for (const external_id of people) {
        const addresses = { email: `${external_id}@example.org`, mobile_number: '+4915112345678' }
        ids.set(external_id, (await shop.ok('POST', '/v1/people', { external_id, ...addresses })).id)
      }
      const mergedInto = new Map<Name, Name>()
      const groupOf = (one: Name): Name[] => [
        one,
        ...people.filter(other => mergedInto.get(other) === one).flatMap(groupOf),
      ]
      for (const next of steps) {
        // The name of a merged person leads to the survivor. So only these pairs name two people, or a merge to undo.
        const standing = [...mergedInto].filter(([, into]) => !mergedInto.has(into))
        const pairs: [Name, Name][] =
          next.do === 'merge'
            ? people.flatMap(into => people.filter(from => from !== into).map((from): [Name, Name] => [into, from]))
            : standing.map(([from, into]) => [into, from])
        const possible = pairs.filter(
          ([into, from]) => !mergedInto.has(into) && (next.do === 'unmerge' || !mergedInto.has(from)),
        )
        const pair = 'nth' in next ? possible[next.nth % possible.length] : undefined
        if ('nth' in next && !pair) continue
        const isDone = await run(shop, { ...next, pair } as Step)
        if (pair) expect(isDone).toBe(true)
        if (isDone && next.do === 'merge') mergedInto.set(pair![1], pair![0])
        if (isDone && next.do === 'unmerge') mergedInto.delete(pair![1])
        // An address keeps the refusals of merged people (consents/address-answers.test.ts). This test checks the order
        // of one person.
        await service.sql('delete from address_answers where organization_id = $1', [shop.id])
        seen.steps += 1
        if (isDone && next.do === 'merge') seen.merges += 1
        if (isDone && next.do === 'unmerge') seen.unmerges += 1
        for (const one of people.filter(person => !mergedInto.has(person))) {
          const given: HistoryItem[] = []
          for (const other of groupOf(one)) {
            const { items } = await shop.ok('GET', `/v1/people/internal/${ids.get(other)}/consents/history`)
            given.push(...items.filter((item: HistoryItem) => item.merged_person_id === undefined))
          }
          for (const channel of ['email', 'sms']) {
            const last = given
              .filter(item => item.channel === channel)
              .toSorted(byOrder)
              .at(-1)
            const asked = { consent_type_id: 1, channel }
            const { reasons } = await shop.ok('POST', `/v1/people/${one}/contactable`, asked)
            const standing = reasons.find(({ rule }: { rule: string }) => rule === 'answer')
            expect([one, channel, standing?.sequence]).toEqual([one, channel, last?.sequence])
            seen.checked += 1
          }
        }
      }
    }),
    { numRuns: runs },
  )
  console.log(`order of answers: ${JSON.stringify(seen)}`)
})
