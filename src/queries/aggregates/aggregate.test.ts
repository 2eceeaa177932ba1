import { beforeAll, describe, expect, it } from 'vitest'
import { insertPeople } from '../../../test/support/many-people.ts'
import { type Reply, useOwnService } from '../../../test/support/service.ts'
import { useSharedShop } from '../../../test/support/shop.ts'
import { backfillIndexes } from '../../entities/indexes/index-backfill.ts'

const service = useOwnService()
const shop = useSharedShop(service, 'orders')
beforeAll(async () => {
  const { ok } = shop
  // These values are older than the declaration, and have other types.
  await ok('POST', '/v1/stacks/orders', {
    external_id: 'early',
    attribute_values: { total: '12', paid_at: 'yesterday', country: 7, due: 'soon' },
  })
  for (const attribute of [
    { key: 'total', type: 'number', indexed: true },
    { key: 'paid_at', type: 'datetime' },
    { key: 'due', type: 'date' },
    { key: 'country', type: 'text', indexed: true },
    { key: 'buyer', type: 'person' },
    { key: 'gifted', type: 'boolean' },
    { key: 'lines', type: 'json' },
    { key: 'tags', type: 'text', cardinality: 'many' },
  ])
    await ok('POST', '/v1/schema/attributes', { owner: 'orders', ...attribute })
  const orders = [
    { total: 0.1, country: 'IT', paid_at: '2026-03-31T23:30:00Z', due: '2026-03-29', buyer: 'ada', gifted: true },
    { total: 0.2, country: 'IT', paid_at: '2026-04-01T00:30:00+02:00', due: '2026-04-01', buyer: 'ada' },
    { total: 1, country: 'DE', paid_at: '2026-01-01T00:00:00.000000001Z', buyer: 'bob', gifted: false },
    { total: 1, country: 'DE', paid_at: '2025-12-31T23:59:59.999999999Z', buyer: 'bob' },
    { total: 2 },
  ]
  for (const [index, attribute_values] of orders.entries())
    await ok('POST', '/v1/stacks/orders', { external_id: `o${index}`, attribute_values })
  for (const [index, date_of_birth] of ['2001-05-06', '2001-05-07', null].entries())
    await ok('POST', '/v1/people', { external_id: `p${index}`, date_of_birth, first_name: index ? 'Émile' : 'Zoe' })
  await backfillIndexes(service.db)
})

const aggregate = (body: object, stack = 'stacks/orders', headers = {}) =>
  shop.send('POST', `/v1/${stack}/aggregate`, body, headers)
const field = (key: string) => `attribute_values.${key}`

async function groupsOf(body: object, stack?: string): Promise<unknown[][]> {
  const reply = await aggregate(body, stack)
  if (reply.status !== 200) throw new Error(JSON.stringify(reply.body))
  return reply.body.data.groups.map(({ by, measures }: { by: unknown[]; measures: unknown[] }) => [...by, ...measures])
}

/** Returns the text of the groups as sent, because JSON.parse would round their numbers. */
async function textOf(body: object): Promise<string> {
  const response = await fetch(`${service.address}/v1/stacks/orders/aggregate`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${shop.token}`, 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  })
  return /"groups":(.*),"skipped"/.exec(await response.text())![1]!
}

describe('an aggregate', () => {
  it('counts all entities without a body, and names the last change that it includes', async () => {
    const { body } = await shop.send('POST', '/v1/stacks/orders/aggregate')
    const { head } = (await shop.send('GET', '/v1/changes?limit=1')).body.data
    expect(body.data).toEqual({ groups: [{ by: [], measures: [6] }], skipped: [], sequence: head })
  })

  it('adds decimal numbers exactly, prints all of their digits, and averages with 16 or more', async () => {
    const measures = ['sum', 'avg', 'min', 'max', 'count'].map(op => ({ op, field: field('total') }))
    const filter = { [field('country')]: 'IT' }
    expect(await textOf({ filter, measures })).toBe('[{"by":[],"measures":[0.3,0.15,0.1,0.2,2]}]')
    for (const [index, total] of [9007199254740991, 9007199254740991, 0.123456789].entries())
      await shop.send('POST', '/v1/stacks/orders', {
        external_id: `large${index}`,
        attribute_values: { total, country: 'large' },
      })
    expect(await textOf({ filter: { [field('country')]: 'large' }, measures: measures.slice(0, 2) })).toBe(
      '[{"by":[],"measures":[18014398509481982.123456789,6004799503160660.70781893]}]',
    )
    for (const index of [0, 1, 2]) await shop.send('DELETE', `/v1/stacks/orders/large${index}`)
  })

  it('counts distinct values and interpolates percentiles, exactly', async () => {
    const ops = ['count_distinct', 'median'].map(op => ({ op, field: field('total') }))
    const percentiles = [0, 0.25, 0.9, 1].map(p => ({ op: 'percentile', field: field('total'), p }))
    const { groups, skipped } = (await aggregate({ measures: [...ops, ...percentiles] })).body.data
    // The text '12' counts as a separate value, not as a number.
    expect(groups).toEqual([{ by: [], measures: [5, 1, 0.1, 0.2, 1.6, 2] }])
    expect(skipped.map(({ path }: { path: string }) => path)).toEqual([1, 2, 3, 4, 5].map(n => `/measures/${n}`))
    expect(await textOf({ group_by: [field('country')], measures: [...ops, percentiles[2]] })).toBe(
      '[{"by":[7],"measures":[1,null,null]},{"by":["DE"],"measures":[1,1,1]},' +
        '{"by":["IT"],"measures":[2,0.15,0.19]},{"by":[null],"measures":[1,2,2]}]',
    )
    const distinct = ['state', 'created_at', field('buyer'), field('gifted'), field('any')]
    const counts = distinct.map(each => ({ op: 'count_distinct', field: each }))
    const [counted] = (await aggregate({ measures: counts, filter: { [field('total')]: { $gte: 0 } } })).body.data
      .groups
    expect(counted.measures).toEqual([1, expect.any(Number), 2, 2, 0])
  })

  it('keeps the groups whose measures pass tests, sorts them, and cuts them', async () => {
    const measures = [{ op: 'count' }, { op: 'sum', field: field('total') }, { op: 'max', field: field('due') }]
    const ask = (selection: object) => groupsOf({ group_by: [field('country')], measures, ...selection })
    const [seven, de, it, none] = [
      [7, 1, null, null],
      ['DE', 2, 2, null],
      ['IT', 2, 0.3, '2026-04-01'],
      [null, 1, 2, null],
    ]
    expect(await ask({ sort: [{ measure: 1, direction: 'desc' }] })).toEqual([de, none, it, seven])
    expect(await ask({ sort: [{ measure: 0 }, { group: 0, direction: 'desc' }] })).toEqual([seven, none, it, de])
    expect(await ask({ sort: [{ measure: 2 }], limit: 2 })).toEqual([it, seven])
    expect(await ask({ limit: 1 })).toEqual([seven])
    expect(await ask({ having: [{ measure: 0, $gte: 2 }] })).toEqual([de, it])
    expect(
      await ask({
        having: [
          { measure: 1, $gte: 0.3, $lt: 2 },
          { measure: 2, $starts_with: '2026-' },
        ],
      }),
    ).toEqual([it])
    expect(await ask({ having: [{ measure: 2, $exists: false }], sort: [{ group: 0, direction: 'desc' }] })).toEqual([
      de,
      seven,
      none,
    ])
    expect(await groupsOf({ having: [{ measure: 0, $gt: 6 }] })).toEqual([])
  })

  it('reports the values of another type in the groups that it leaves out', async () => {
    const measures = [{ op: 'sum', field: field('total') }]
    const { data } = (await aggregate({ group_by: [field('country')], measures, having: [{ measure: 0, $gt: 1 }] }))
      .body
    expect(data.skipped).toEqual([{ path: '/measures/0', values: 1 }])
  })

  it('tests and sorts by times as by instants', async () => {
    const first = { op: 'min', field: field('paid_at') }
    const body = { filter: { [field('buyer')]: { $exists: true } }, group_by: [field('buyer')], measures: [first] }
    const bob = ['bob', '2025-12-31T23:59:59.999999999Z']
    expect(await groupsOf({ ...body, having: [{ measure: 0, $lt: '2026-01-01T01:00:00+01:00' }] })).toEqual([bob])
    expect(await groupsOf({ ...body, sort: [{ measure: 0 }], limit: 1 })).toEqual([bob])
  })

  it('tests the measure of a group against a time counted from now, and says from when', async () => {
    const body = { group_by: [field('buyer')], measures: [{ op: 'max', field: field('paid_at') }] }
    const ask = async (having: object) => (await aggregate({ ...body, having: [{ measure: 0, ...having }] })).body.data
    const past = await ask({ $lt: { $ago: 'P1D' } })
    const future = await ask({ $gte: { $ago: 'P1D' } })
    expect([past.groups.length > 0, future.groups]).toEqual([true, []])
    expect(Date.parse(past.evaluated_at)).toBeLessThanOrEqual(Date.now())
    expect(await ask({ $exists: true })).not.toHaveProperty('evaluated_at')
  })

  it('groups by two fields in the order of their values, nulls last, and reports values of another type', async () => {
    const { data } = (
      await aggregate({
        group_by: [field('country'), field('gifted')],
        measures: [{ op: 'count' }, { op: 'sum', field: field('total') }],
      })
    ).body
    expect(data.groups).toEqual([
      { by: [7, null], measures: [1, null] },
      { by: ['DE', false], measures: [1, 1] },
      { by: ['DE', null], measures: [1, 1] },
      { by: ['IT', true], measures: [1, 0.1] },
      { by: ['IT', null], measures: [1, 0.2] },
      { by: [null, null], measures: [1, 2] },
    ])
    expect(data.skipped).toEqual([{ path: '/measures/1', values: 1 }])
  })

  it('begins days in the time zone of the request, and takes no instant for its neighbour', async () => {
    const by = (by: string, time_zone?: string) =>
      groupsOf({ group_by: [{ field: field('paid_at'), by, ...(time_zone && { time_zone }) }] })
    expect(await by('month')).toEqual([
      ['2025-12-01', 1],
      ['2026-01-01', 1],
      ['2026-03-01', 2],
      [null, 2],
    ])
    expect(await by('month', 'Europe/Berlin')).toEqual([
      ['2026-01-01', 2],
      ['2026-04-01', 2],
      [null, 2],
    ])
    expect(await by('year', 'America/New_York')).toEqual([
      ['2025-01-01', 2],
      ['2026-01-01', 2],
      [null, 2],
    ])
    expect(await by('quarter')).toEqual([
      ['2025-10-01', 1],
      ['2026-01-01', 3],
      [null, 2],
    ])
  })

  it('begins weeks on Monday, and counts what is no date among the nulls and as skipped', async () => {
    const { data } = (await aggregate({ group_by: [{ field: field('due'), by: 'week' }] })).body
    expect(data.groups.map(({ by }: { by: unknown[] }) => by[0])).toEqual(['2026-03-23', '2026-03-30', null])
    expect(data.skipped).toEqual([{ path: '/group_by/0', values: 1 }])
  })

  it('finds the first and the last text, date and time of each group', async () => {
    const measures = ['paid_at', 'due', 'country'].flatMap(key => ['min', 'max'].map(op => ({ op, field: field(key) })))
    expect(await groupsOf({ group_by: [field('buyer')], measures })).toEqual([
      ['ada', '2026-03-31T22:30:00Z', '2026-03-31T23:30:00Z', '2026-03-29', '2026-04-01', 'IT', 'IT'],
      ['bob', '2025-12-31T23:59:59.999999999Z', '2026-01-01T00:00:00.000000001Z', null, null, 'DE', 'DE'],
      [null, null, null, null, null, null, null],
    ])
  })

  it('groups people by their fields and by the time of their creation', async () => {
    const { created_at } = (await shop.send('GET', '/v1/people/p0')).body.data
    expect(
      await groupsOf({ group_by: ['state', 'first_name'], filter: { date_of_birth: { $exists: true } } }, 'people'),
    ).toEqual([
      ['active', 'Zoe', 1],
      ['active', 'Émile', 1],
    ])
    expect(await groupsOf({ group_by: [{ field: 'date_of_birth', by: 'month' }] }, 'people')).toEqual([
      ['2001-05-01', 2],
      [null, 3],
    ])
    expect(
      await groupsOf(
        { group_by: ['created_at'], filter: { external_id: 'p0' }, measures: [{ op: 'max', field: 'created_at' }] },
        'people',
      ),
    ).toEqual([[created_at, created_at]])
  })

  it('has no groups if nothing passes the filter, and one row without fields to group by', async () => {
    const filter = { external_id: 'nobody' }
    expect(await groupsOf({ filter, group_by: ['state'] })).toEqual([])
    const measures = [{ op: 'count' }, { op: 'sum', field: field('total') }]
    expect(await groupsOf({ filter, measures })).toEqual([[0, null]])
  })

  it('reads its own writes and uses an index that finds few entities', async () => {
    await shop.send('PATCH', '/v1/stacks/orders/o4', { attribute_values: { country: 'FR' } })
    const measures = [{ op: 'count' }, { op: 'max', field: field('total') }]
    expect(
      await groupsOf({ filter: { [field('country')]: { $in: ['FR', 'DE'] } }, group_by: [field('country')], measures }),
    ).toEqual([
      ['DE', 2, 1],
      ['FR', 1, 2],
    ])
    await shop.send('PATCH', '/v1/stacks/orders/o4', { attribute_values: { country: null } })
    expect(await groupsOf({ filter: { [field('country')]: 'FR' }, group_by: ['state'] })).toEqual([])
  })

  it('is accepted as a query', async () => {
    const query = `group_by[0]=${field('country')}&group_by[1][field]=created_at&group_by[1][by]=year&measures[0][op]=sum&measures[0][field]=${field('total')}&having[0][measure]=0&having[0][$gt]=1&sort[0][group]=0&limit=5&filter[${field('total')}][$gte]=1`
    const { status, body } = await shop.send('POST', `/v1/stacks/orders/aggregate?${query}`)
    expect(status).toBe(200)
    expect(
      body.data.groups.map(({ by, measures }: { by: unknown[]; measures: unknown[] }) => [by[0], ...measures]),
    ).toEqual([
      ['DE', 2],
      [null, 2],
    ])
  })

  it('warns of a key that is not declared and that nobody carries, and refuses it under handling=strict', async () => {
    const body = { group_by: [field('contry')], measures: [{ op: 'count', field: field('totl') }] }
    const { data } = (await aggregate(body)).body
    expect(data.groups).toEqual([{ by: [null], measures: [0] }])
    expect(data.warnings.map(({ path }: { path: string }) => path)).toEqual(['/group_by/0', '/measures/0/field'])
    const strict = await aggregate(body, undefined, { Prefer: 'handling=strict' })
    expect([strict.status, strict.body.details!.map(({ path }) => path)]).toEqual([
      400,
      ['/group_by/0', '/measures/0/field'],
    ])
  })
})

describe('the refusal of an aggregate', () => {
  const refusals: [string, object, string][] = [
    ['an unknown field', { group_by: ['colour'] }, '/group_by/0'],
    ['a json attribute', { group_by: [field('lines')] }, '/group_by/0'],
    ['an attribute with many values', { group_by: ['state', field('tags')] }, '/group_by/1'],
    ['a span of a text', { group_by: [{ field: field('country'), by: 'day' }] }, '/group_by/0/field'],
    ['a span of an undeclared key', { group_by: [{ field: field('any'), by: 'day' }] }, '/group_by/0/field'],
    ['an unknown span', { group_by: [{ field: 'created_at', by: 'hour' }] }, '/group_by/0/by'],
    ['a span without its length', { group_by: [{ field: 'created_at' }] }, '/group_by/0/by'],
    ['an unknown member', { group_by: [{ field: 'created_at', by: 'day', zone: 'UTC' }] }, '/group_by/0/zone'],
    [
      'an unknown time zone',
      { group_by: [{ field: 'created_at', by: 'day', time_zone: 'Mars/Base' }] },
      '/group_by/0/time_zone',
    ],
    ['an abbreviation', { group_by: [{ field: 'created_at', by: 'day', time_zone: 'CET' }] }, '/group_by/0/time_zone'],
    ['an offset', { group_by: [{ field: 'created_at', by: 'day', time_zone: '+02:00' }] }, '/group_by/0/time_zone'],
    [
      'a time zone of a date',
      { group_by: [{ field: field('due'), by: 'day', time_zone: 'UTC' }] },
      '/group_by/0/time_zone',
    ],
    ['three fields', { group_by: ['state', 'state', 'state'] }, '/group_by'],
    ['no measures', { measures: [] }, '/measures'],
    ['eleven measures', { measures: Array(11).fill({ op: 'count' }) }, '/measures'],
    ['an unknown measure', { measures: [{ op: 'mode', field: field('total') }] }, '/measures/0/op'],
    ['distinct values without a field', { measures: [{ op: 'count_distinct' }] }, '/measures/0/field'],
    [
      'distinct values of many',
      { measures: [{ op: 'count' }, { op: 'count_distinct', field: field('tags') }] },
      '/measures/1/field',
    ],
    ['distinct json', { measures: [{ op: 'count_distinct', field: field('lines') }] }, '/measures/0/field'],
    ['a median of texts', { measures: [{ op: 'median', field: field('country') }] }, '/measures/0/field'],
    ['a percentile of dates', { measures: [{ op: 'percentile', field: field('due'), p: 0.5 }] }, '/measures/0/field'],
    ['a percentile without its part', { measures: [{ op: 'percentile', field: field('total') }] }, '/measures/0/p'],
    ['a percentile above 1', { measures: [{ op: 'percentile', field: field('total'), p: 95 }] }, '/measures/0/p'],
    ['a part of a sum', { measures: [{ op: 'sum', field: field('total'), p: 0.5 }] }, '/measures/0/p'],
    ['a sum without a field', { measures: [{ op: 'sum' }] }, '/measures/0/field'],
    ['a sum of texts', { measures: [{ op: 'count' }, { op: 'sum', field: field('country') }] }, '/measures/1/field'],
    ['an average of dates', { measures: [{ op: 'avg', field: field('due') }] }, '/measures/0/field'],
    ['a minimum of booleans', { measures: [{ op: 'min', field: field('gifted') }] }, '/measures/0/field'],
    ['a minimum of a relationship', { measures: [{ op: 'min', field: field('buyer') }] }, '/measures/0/field'],
    ['a sum of an undeclared key', { measures: [{ op: 'sum', field: field('any') }] }, '/measures/0/field'],
    ['a maximum of many values', { measures: [{ op: 'max', field: field('tags') }] }, '/measures/0/field'],
    ['an order without a place', { sort: [{ direction: 'desc' }] }, '/sort/0'],
    ['an order of two places', { group_by: ['state'], sort: [{ group: 0, measure: 0 }] }, '/sort/0'],
    ['an order by no measure', { measures: [{ op: 'count' }], sort: [{ measure: 1 }] }, '/sort/0/measure'],
    ['an order by no group', { sort: [{ measure: 0 }, { group: 0 }] }, '/sort/1/group'],
    ['an unknown direction', { sort: [{ measure: 0, direction: 'up' }] }, '/sort/0/direction'],
    ['no order', { sort: [] }, '/sort'],
    ['a limit of nothing', { limit: 0 }, '/limit'],
    ['a limit of too many', { limit: 10_001 }, '/limit'],
    ['a test of no measure', { having: [{ measure: 1, $gt: 1 }] }, '/having/0/measure'],
    ['a test without an operator', { having: [{ measure: 0 }] }, '/having/0'],
    ['a test with an unknown operator', { having: [{ measure: 0, $above: 1 }] }, '/having/0/$above'],
    ['a test of a number by a text', { having: [{ measure: 0, $gt: '1' }] }, '/having/0/$gt'],
    ['a search in a number', { having: [{ measure: 0, $contains: '1' }] }, '/having/0/$contains'],
    ['a test of a number by null', { having: [{ measure: 0, $gt: null }] }, '/having/0/$gt'],
    ['a list with a text', { having: [{ measure: 0, $in: [1, 'x'] }] }, '/having/0/$in/1'],
    [
      'a test of a date by a time',
      { measures: [{ op: 'max', field: field('due') }], having: [{ measure: 0, $eq: '2026-01-01T00:00:00Z' }] },
      '/having/0/$eq',
    ],
    ['a fault of the filter', { filter: { nobody: 1 } }, '/filter/nobody'],
  ]
  it('spares an undeclared key with a dot that is no path across a relationship', async () => {
    const { status, body } = await aggregate({ group_by: [field('shipping.country')] })
    expect([status, body.data.warnings.length]).toEqual([200, 1])
  })

  it.each(refusals)('names the path of %s', async (_, body, path) => {
    const { status, body: refused } = await aggregate(body)
    expect([status, refused.error, refused.details?.map(detail => detail.path)]).toEqual([
      400,
      'invalid_parameter',
      [path],
    ])
  })

  it.each<[string, object, string]>([
    ['a group', { group_by: [7] }, '/group_by/0'],
    ['a measure', { measures: ['count'] }, '/measures/0'],
  ])('names the path of %s of another type', async (_, body, path) => {
    const { status, body: refused } = await aggregate(body)
    expect([status, refused.error, refused.details?.map(detail => detail.path)]).toEqual([400, 'invalid_json', [path]])
  })

  it('names the scope of a kind of entity that the filter reads', async () => {
    const onlyRecords = service.sender(await service.tokenFor(shop.key, 'records:read'))
    const filter = { [field('buyer')]: { $some: { external_id: 'ada' } } }
    expect((await aggregate({ filter })).body.data.groups).toEqual([{ by: [], measures: [2] }])
    const refused = await onlyRecords('POST', '/v1/stacks/orders/aggregate', { filter })
    expect(refused).toMatchObject({ status: 403, body: { error: 'forbidden' } })
    expect((await onlyRecords('POST', '/v1/stacks/orders/aggregate', {})).status).toBe(200)
  })
})

describe('an aggregate with many groups', () => {
  const ask = (body: object) => many.send('POST', '/v1/people/aggregate', body)
  const refusedPaths = ({ status, body }: Reply) => [status, body.details?.map(({ path }) => path)]
  const many = useSharedShop(service)
  beforeAll(async () => {
    await insertPeople(service.sql, many.id, 10_000, { attributes: `jsonb_build_object('key', n, 'few', n % 7)` })
  })

  it('answers 10,000 and refuses one more', async () => {
    expect((await ask({ group_by: [field('key')] })).body.data.groups).toHaveLength(10_000)
    await many.send('POST', '/v1/people', { attribute_values: { key: 'one more' } })
    expect(refusedPaths(await ask({ group_by: [field('key')] }))).toEqual([400, ['/group_by']])
    expect((await ask({ group_by: [field('few')] })).body.data.groups).toHaveLength(8)
    expect(refusedPaths(await ask({ group_by: [field('key')], sort: [{ measure: 0 }] }))).toEqual([400, ['/group_by']])
    const all = [{ measure: 0, $gte: 1 }]
    expect(refusedPaths(await ask({ group_by: [field('key')], having: all }))).toEqual([400, ['/group_by']])
  })

  it('cuts any number of groups', async () => {
    const last = { group_by: [field('key')], sort: [{ group: 0, direction: 'desc' }], limit: 1 }
    expect((await ask(last)).body.data.groups).toEqual([{ by: ['one more'], measures: [1] }])
    const none = { group_by: [field('key')], having: [{ measure: 0, $gt: 1 }] }
    expect((await ask(none)).body.data.groups).toEqual([])
  })

  it('refuses those that only the later entities make', async () => {
    const attributes = `jsonb_build_object('few', 1, 'late', n)`
    await insertPeople(service.sql, many.id, 30_000, { first: 20_001, attributes })
    expect(refusedPaths(await ask({ group_by: [field('late')] }))).toEqual([400, ['/group_by']])
    expect(await ask({ group_by: [field('few')] })).toMatchObject({ status: 200 })
  })

  it('refuses values of more than 8 MiB', async () => {
    await service.sql(
      `update entities set attributes = ('{"long": "' || external_id || repeat('x', 10000) || '"}')::jsonb
       where organization_id = $1 and external_id = any ($2)`,
      [many.id, Array.from({ length: 1_000 }, (_, index) => `p${index + 1}`)],
    )
    expect(refusedPaths(await ask({ group_by: [field('long')] }))).toEqual([400, ['/group_by']])
  })
})
