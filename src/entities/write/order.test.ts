import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { someRuns } from '../../../test/support/runs.ts'
import { useService } from '../../../test/support/service.ts'
import { createShop, type Shop } from '../../../test/support/shop.ts'
import { write } from '../../../test/support/writes.ts'
import { contextOf } from '../../db/context.ts'
import { currentDefinitions } from '../../organizations/definitions.ts'
import { type EntityBody, type Outcome, unkeyed, type Write } from '../write-request.ts'
import { indexed } from './plan.ts'
import { writeArray } from './request-coalescing.ts'
import { runSet } from './run.ts'

const service = useService()
/** The random histories of a run. */
const histories = Number(process.env.KITH_TEST_HISTORIES ?? someRuns(50).numRuns)
const limits = { entityKeys: 1_000, entityBytes: 524_288, placeholders: 100, links: 1_000 }

/** People who exist, one with an alias, one who was deleted, and the name of one who was erased. */
const names = ['ada', 'bob', 'old', 'gone', 'erased', 'new', 'other']

/** A write without the internal identifiers that differ between organizations. */
type Step = Omit<Partial<Write>, 'address' | 'body'> & {
  operation: Write['operation']
  /** A name, or the place of a person of {@link Start} whose internal identifier the write has. */
  to: string | number
  body: EntityBody
}

type Start = { shop: Shop; ids: string[] }

/** An organization in which the same has happened as in every other one of this function. */
async function start(): Promise<Start> {
  const shop = await createShop(
    service,
    'referrer',
    'friends',
    'employer',
    { key: 'code', owner: 'people', type: 'text', indexed: true, unique: true },
    { key: 'city', owner: 'people', type: 'text', indexed: true },
  )
  const ids: string[] = []
  for (const external_id of ['ada', 'bob', 'old', 'gone', 'erased']) {
    const email = `${external_id}@example.com`
    ids.push((await shop.ok('POST', '/v1/people', { external_id, email })).id)
  }
  await shop.ok('PATCH', '/v1/people/bob', { attribute_values: { friends: ['gone', 'ada'], code: 'b' } })
  await shop.ok('POST', '/v1/people/ada/merge', { from: 'old' })
  await shop.ok('DELETE', '/v1/people/gone')
  await shop.ok('POST', '/v1/people/erased/erase', { reason: 'asked' })
  await currentDefinitions(contextOf(service.db, shop.id))
  return { shop, ids }
}

const writesOf = (steps: readonly Step[], { ids }: Start): Write[] =>
  steps.map(({ operation, to, body, ...rest }, index) => ({
    ...write(operation, ''),
    address: typeof to === 'number' ? { id: ids[to]! } : { external_id: to },
    body: operation === 'create' && typeof to === 'string' ? { external_id: to, ...body } : body,
    request_id: `step ${index}`,
    mayRead: true,
    ...rest,
  }))

const optional = <T>(values: fc.Arbitrary<T>) => fc.option(values, { freq: 2, nil: undefined })
const anyName = fc.constantFrom(...names)
const answer = fc.record({
  consent_type_id: fc.constant(1),
  channel: fc.constantFrom('email' as const, 'sms' as const),
  state: fc.boolean(),
  collected_at: fc.constantFrom('2020-01-01T00:00:00.000Z', '2020-02-01T00:00:00.000Z'),
})
const body = fc
  .record({
    first_name: optional(fc.constantFrom('x', 'y', null)),
    email: optional(fc.constantFrom('ada@example.com', 'x@example.com', 'y@example.com', null)),
    consents: optional(fc.uniqueArray(answer, { selector: ({ channel }) => channel, maxLength: 2 })),
    attribute_values: optional(
      fc.record({
        city: optional(fc.constantFrom('Rome', 'Pisa', null)),
        code: optional(fc.constantFrom('a', 'b', null)),
        referrer: optional(fc.oneof(anyName, fc.constantFrom(null, 'placeholder'))),
        friends: optional(fc.uniqueArray(fc.oneof(anyName, fc.constant('placeholder')), { maxLength: 3 })),
        employer: optional(fc.constantFrom('acme', null)),
      }),
    ),
  })
  .map(values => JSON.parse(JSON.stringify(values)) as EntityBody)

const address = fc.oneof({ weight: 4, arbitrary: anyName }, { weight: 1, arbitrary: fc.nat({ max: 3 }) })
const options = fc
  .record({
    represent: optional(fc.constantFrom(true, 'whole' as const)),
    references: optional(fc.constantFrom('strict' as const)),
    erased: optional(fc.constantFrom('recreate' as const)),
    create_only: optional(fc.constant(true)),
    if_match: fc.option(fc.constantFrom([1], [2], [3]), { freq: 6, nil: undefined }),
  })
  .map(({ create_only, if_match, ...given }) => ({
    given: JSON.parse(JSON.stringify(given)) as Partial<Write>,
    create_only,
    if_match,
  }))

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc
      .tuple(fc.constantFrom('patch' as const, 'put' as const), address, body, options)
      .map(([operation, to, values, { given, if_match }]) => ({
        ...given,
        ...(if_match && { if_match }),
        operation,
        to,
        body: values,
      })),
  },
  {
    weight: 4,
    arbitrary: fc
      .tuple(fc.constantFrom('create' as const, 'upsert' as const, 'import' as const), anyName, body, options)
      .map(([operation, to, values, { given, create_only }]) => ({
        ...given,
        ...(operation === 'import' && create_only && { create_only }),
        operation,
        to,
        body: { external_id: to, ...values },
      })),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(
        fc.constantFrom('upsert' as const, 'import' as const),
        anyName,
        body,
        fc.constantFrom(['email'], ['external_id', 'email'], ['email', 'external_id']),
      )
      .map(([operation, to, values, match]) => ({
        ...{ operation, to, match: match as Write['match'] & object },
        body: { email: 'x@example.com', ...values, external_id: to },
      })),
  },
  { weight: 2, arbitrary: address.map(to => ({ operation: 'delete' as const, to, body: {} })) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(address, fc.oneof(anyName, fc.constant(null)), body)
      .map(([to, external_id, values]) => ({ operation: 'patch' as const, to, body: { ...values, external_id } })),
  },
  { weight: 1, arbitrary: fc.nat({ max: 3 }).map(to => ({ operation: 'restore' as const, to, body: {} })) },
)

/** All that the organization stores, with places instead of internal identifiers, and without times of the clock. */
async function readAll({ shop }: Start): Promise<string> {
  const tables: [string, string][] = [
    ['changes', 'sequence, subject, entity_id, operation, version, before, after, actor, request_id, links'],
    [
      'entities',
      'id, external_id, active, version, first_name, email, email_consent, sms_consent, answers, attributes, email_key',
    ],
    ['links', 'source_id, attribute_id, target_id, position'],
    ['aliases', 'external_id, person_id'],
    [
      'consent_history',
      'person_id, version, consent_type_id, channel, previous_state, state, collected_at, superseded, pending',
    ],
    ['terms', 'index_id, value, entity_id'],
  ]
  const all: Record<string, unknown[]> = {}
  for (const [table, columns] of tables)
    all[table] = await service.sql(
      `select ${columns} from ${table} where organization_id = $1 and ${table === 'changes' ? "subject = 'entity'" : 'true'}
      ${table === 'changes' ? 'order by sequence' : ''}`,
      [shop.id],
    )
  const places = new Map<string, string>()
  const placeOf = (id: string) => {
    if (!places.has(id)) places.set(id, `person ${places.size}`)
    return places.get(id)!
  }
  const text = (value: unknown) =>
    JSON.stringify(value)
      .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, id => placeOf(id))
      .replace(/"20[3-9]\d-[^"]*"|"202[^0]-[^"]*"/g, '"now"')
  return Object.entries(all)
    .map(([table, rows]) => {
      const texts = rows.map(text)
      return `${table}\n${(table === 'changes' ? texts : texts.toSorted()).join('\n')}`
    })
    .join('\n\n')
}

/** What a client learns of an outcome, besides identifiers and times. */
function toldOf(outcome: Outcome): unknown {
  if ('refusal' in outcome) return outcome.refusal
  if ('error' in outcome) return `${outcome.error}`
  const { id: _, sequence: __, representation, ...done } = outcome.done
  const json = representation?.json && (JSON.parse(representation.json) as Record<string, unknown>)
  if (json) for (const key of ['id', 'created_at', 'updated_at']) delete json[key]
  return { ...done, json }
}

/** Outcomes name people by internal identifiers where these have no name. */
const told = (outcomes: Outcome[]) =>
  JSON.stringify(outcomes.map(toldOf), null, 1)
    .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'id')
    .replace(/"20[3-9]\d-[^"]*"|"202[^0]-[^"]*"/g, '"now"')

async function runOneByOne(steps: Step[], at: Start): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  for (const each of writesOf(steps, at))
    outcomes.push(...(await writeArray(contextOf(service.db, at.shop.id), [each], { limits })).map(unkeyed))
  return outcomes
}

/** Writes the steps in sets of these sizes, in turn. */
async function runInSets(steps: Step[], sizes: number[], at: Start): Promise<Outcome[]> {
  const writes = writesOf(steps, at)
  const outcomes: Outcome[] = []
  for (let [first, turn] = [0, 0]; first < writes.length; turn += 1) {
    const set = writes.slice(first, first + sizes[turn % sizes.length]!)
    const ran = await runSet(contextOf(service.db, at.shop.id), indexed(set), { limits })
    outcomes.push(...set.map((_, index) => unkeyed(ran.get(index)!)))
    first += set.length
  }
  return outcomes
}

/** The refusal names who has the value, who was renamed before. */
const refusedByRenamed: Step[] = [
  { operation: 'patch', to: 'bob', body: { external_id: null } },
  { operation: 'patch', to: 'ada', body: { attribute_values: { code: 'b' } } },
]

describe('writes of an organization', () => {
  it('have the same outcomes, state, log and answers one by one and in sets of any size', async () => {
    const steps = fc.array(step, { minLength: 2, maxLength: 30 })
    const sizes = fc.array(fc.constantFrom(1, 2, 5, 40), { minLength: 1, maxLength: 3 })
    await fc.assert(
      fc.asyncProperty(steps, sizes, async (steps, sizes) => {
        const [one, other] = [await start(), await start()]
        const expected = await runOneByOne(steps, one)
        const found = await runInSets(steps, sizes, other)
        expect(told(found)).toBe(told(expected))
        expect(await readAll(other)).toBe(await readAll(one))
      }),
      { numRuns: histories, examples: [[refusedByRenamed, [40]]] },
    )
    // A history has up to sixty transactions, and the machine may be busy.
  }, 300_000)

  it('of eight clients at once have the state and the log that the writes of the log have one by one', async () => {
    const clients = fc.array(fc.array(step, { minLength: 1, maxLength: 6 }), { minLength: 8, maxLength: 8 })
    await fc.assert(
      fc.asyncProperty(clients, async clients => {
        const [one, other] = [await start(), await start()]
        const steps = clients.flat()
        const writes = writesOf(steps, one)
        const send = async (client: number) => {
          const first = clients.slice(0, client).flat().length
          for (const each of writes.slice(first, first + clients[client]!.length))
            await writeArray(contextOf(service.db, one.shop.id), [each], { limits })
        }
        await Promise.all(clients.map((_, client) => send(client)))
        const logged = await service.sql<{ request_id: string }>(
          `select request_id from changes where organization_id = $1 and request_id like 'step %' order by sequence`,
          [one.shop.id],
        )
        const order = [...new Set(logged.map(({ request_id }) => Number(request_id.slice('step '.length))))]
        const again = writesOf(steps, other)
        for (const index of order) await writeArray(contextOf(service.db, other.shop.id), [again[index]!], { limits })
        expect(await readAll(other)).toBe(await readAll(one))
      }),
      { numRuns: Math.ceil(histories / 2) },
    )
  })
})
