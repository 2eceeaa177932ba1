import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { importLines, linesFrom } from '../../../../test/support/lines.ts'
import { someRuns } from '../../../../test/support/runs.ts'
import { useService } from '../../../../test/support/service.ts'
import { createShop, type Definition, type Shop, useShop } from '../../../../test/support/shop.ts'
import { expectSortTerms } from '../../../../test/support/sort-terms.ts'
import { recordStatements, resultOf, write, writeAll } from '../../../../test/support/writes.ts'
import { profileFlags, profileTexts } from '../../../values/profile-fields.ts'
import { backfillIndexes } from '../../indexes/index-backfill.ts'

const service = useService()

const fields = {
  people: [
    ...[...profileTexts, ...profileFlags, 'external_id', 'created_at', 'updated_at'],
    ...['attribute_values.city', 'attribute_values.score', 'attribute_values.joined', 'attribute_values.flag'],
  ],
  companies: ['external_id', 'created_at', 'updated_at', 'attribute_values.size'],
}

const definitions: Definition[] = [
  ...(['referrer', 'friends', 'employer', 'city', 'score'] as const),
  { owner: 'people', key: 'joined', type: 'datetime', indexed: true },
  { owner: 'people', key: 'flag', type: 'boolean', indexed: true },
  { owner: 'companies', key: 'size', type: 'number', indexed: true },
]

async function sortByAll({ send }: Pick<Shop, 'send'>) {
  for (const field of fields.people)
    expect(await send('POST', '/v1/people/list', { sort: { field } }), field).toMatchObject({ status: 200 })
  for (const field of fields.companies)
    expect(await send('POST', '/v1/stacks/companies/list', { sort: { field } })).toMatchObject({ status: 200 })
}

const shop = useShop(service, ...definitions)

const names = ['ada', 'bob', 'eve', 'Äda', 'zoe 9']
const name = fc.constantFrom(...names)
const path = (external_id: string) => `/v1/people/${encodeURIComponent(external_id)}`
const orNull = <T>(values: fc.Arbitrary<T>) => fc.option(values, { freq: 4 })

const body = fc.record(
  {
    first_name: orNull(fc.constantFrom('Ada', 'ada', 'Ådå', 'x'.repeat(100))),
    last_name: orNull(fc.constantFrom('Love', 'love', 'Löve')),
    date_of_birth: orNull(fc.constantFrom('1990-01-01', '2001-02-03')),
    language: orNull(fc.constantFrom('en', 'it')),
    email_consent: fc.boolean(),
    push_notification_consent: orNull(fc.boolean()),
    attribute_values: fc.record(
      {
        city: orNull(fc.constantFrom('Rome', 'rome', 'Oslo')),
        score: orNull(fc.constantFrom(-1.5, 0, 7)),
        joined: orNull(fc.constantFrom('2020-01-01T00:00:00Z', '2020-01-01T01:00:00+01:00')),
        flag: orNull(fc.boolean()),
        referrer: orNull(name),
        friends: fc.subarray([...names, 'born']),
        employer: orNull(fc.constantFrom('acme', 'other')),
      },
      { requiredKeys: [], noNullPrototype: true },
    ),
  },
  { requiredKeys: [], noNullPrototype: true },
)

type Step = (shop: Shop) => Promise<unknown>
const idOf = async ({ send }: Shop, external_id: string) => (await send('GET', path(external_id))).body.data?.id
/** An organization runs at most two imports at a time, so the imports of a round run one after another. */
let lastImport: Promise<unknown> = Promise.resolve()
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.tuple(name, body).map(
      ([external_id, values]): Step =>
        ({ send }) =>
          send('POST', '/v1/people/upsert', { external_id, ...values }),
    ),
  },
  {
    weight: 3,
    arbitrary: fc.tuple(name, body).map(
      ([to, values]): Step =>
        ({ send }) =>
          send('PATCH', path(to), values),
    ),
  },
  fc.tuple(name, body).map(
    ([to, values]): Step =>
      ({ send }) =>
        send('PUT', path(to), values),
  ),
  fc.tuple(name, name).map(
    ([from, to]): Step =>
      ({ send }) =>
        send('PATCH', path(from), { external_id: to }),
  ),
  body.map(
    (values): Step =>
      ({ send }) =>
        send('POST', '/v1/people', values),
  ),
  name.map(
    (who): Step =>
      async ({ send }) => {
        const id = await idOf({ send } as Shop, who)
        await send('DELETE', path(who))
        return send('POST', `/v1/people/internal/${id}/restore`)
      },
  ),
  name.map(
    (who): Step =>
      ({ send }) =>
        send('DELETE', path(who)),
  ),
  fc.tuple(name, name).map(
    ([who, from]): Step =>
      ({ send }) =>
        send('POST', `${path(who)}/merge`, { from }),
  ),
  fc.tuple(name, name).map(
    ([who, from]): Step =>
      async current => {
        const from_id = await idOf(current, from)
        await current.send('POST', `${path(who)}/merge`, { from })
        return current.send('POST', `${path(who)}/unmerge`, { from_id })
      },
  ),
  name.map(
    (who): Step =>
      ({ send }) =>
        send('POST', `${path(who)}/erase`, { reason: 'asked' }),
  ),
  fc.tuple(fc.boolean(), fc.array(fc.tuple(name, body), { maxLength: 4 })).map(
    ([atomic, items]): Step =>
      ({ send }) =>
        send('POST', '/v1/people/batch', {
          atomic,
          operations: items.map(([external_id, values]) => ({ op: 'upsert', external_id, body: values })),
        }),
  ),
  fc.array(fc.tuple(name, body), { minLength: 1, maxLength: 6 }).map(
    (lines): Step =>
      current =>
        (lastImport = lastImport.then(() =>
          importLines(
            current,
            '/v1/people/import',
            linesFrom(lines.map(([external_id, values]) => ({ external_id, ...values }))),
          ),
        )),
  ),
  fc.tuple(fc.constantFrom('acme', 'other'), orNull(fc.integer())).map(
    ([external_id, size]): Step =>
      ({ send }) =>
        send('POST', '/v1/stacks/companies/upsert', { external_id, attribute_values: { size } }),
  ),
)

describe('each sort index', () => {
  it('has exactly one term of each entity of its stack after any writes, one after the other or at once', async () => {
    const rounds = fc.array(fc.array(step, { minLength: 1, maxLength: 4 }), { minLength: 3, maxLength: 8 })
    await fc.assert(
      fc.asyncProperty(rounds, async steps => {
        const organization = await createShop(service, ...definitions)
        await sortByAll(organization)
        for (const round of steps) {
          await Promise.all(round.map(run => run(organization)))
          expect(await expectSortTerms(service, organization.id)).toBe(fields.people.length + fields.companies.length)
        }
      }),
      someRuns(12),
    )
  }, 120_000)

  it('has them also if it is built while writes run', async () => {
    const { send } = shop
    // The indexes of the other organizations of this file need not be filled.
    await service.sql('update sort_indexes set ready = true')
    await service.sql('update attributes set index_ready = true')
    const operations = Array.from({ length: 200 }, (_, index) => ({
      op: 'create',
      body: { external_id: `p${index}`, last_name: `Name ${index % 7}`, attribute_values: { score: index } },
    }))
    await send('POST', '/v1/people/batch', { operations })
    const writing = Promise.all(
      Array.from({ length: 60 }, (_, index) =>
        index % 5 === 0
          ? send('DELETE', `/v1/people/p${index * 3}`)
          : send('PATCH', `/v1/people/p${index * 3}`, {
              last_name: `Other ${index}`,
              attribute_values: { score: null },
            }),
      ),
    )
    // Two processes begin and fill the indexes at the same time.
    await Promise.all([sortByAll(shop), sortByAll(shop)])
    await Promise.all([backfillIndexes(service.db), backfillIndexes(service.db), writing])
    expect(await expectSortTerms(service, shop.id)).toBe(fields.people.length + fields.companies.length)
  })
})

it('an organization that never sorts runs no further statement, and one that does at most two', async () => {
  let runs = 0
  const statementsOf = async (organization: Shop) => {
    const { db, statements } = recordStatements(service.db)
    runs += 1
    const [outcome] = await writeAll(db, organization, [write('patch', 'ada', { first_name: `A${runs}` })])
    expect(resultOf(outcome)).toBe('updated')
    return statements
  }
  const { send } = shop
  await send('POST', '/v1/people', { external_id: 'ada' })
  const before = await statementsOf(shop)
  expect(before.filter(statement => /term/.test(statement))).toEqual([])
  for (const field of ['last_name', 'created_at', 'attribute_values.city'])
    await send('POST', '/v1/people/list', { sort: { field } })
  expect(await statementsOf(shop)).toEqual(before)
  for (const field of ['updated_at', 'first_name']) await send('POST', '/v1/people/list', { sort: { field } })
  const after = await statementsOf(shop)
  expect(after.filter(statement => !before.includes(statement))).toEqual([
    'delete_time_terms',
    'delete_index_keys',
    'insert_index_keys',
  ])
})
