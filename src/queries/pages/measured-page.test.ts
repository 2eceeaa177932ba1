import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { someRuns } from '../../../test/support/runs.ts'
import { useService } from '../../../test/support/service.ts'
import { useSharedShop } from '../../../test/support/shop.ts'

const service = useService()
const shop = useSharedShop(
  service,
  'city',
  'buyer',
  { key: 'total', owner: 'orders', type: 'number' },
  { key: 'paid_at', owner: 'orders', type: 'datetime' },
  { key: 'sent_on', owner: 'orders', type: 'date' },
  { key: 'note', owner: 'orders', type: 'text' },
)

type Order = { buyer: string; total?: number; paid_at?: string; sent_on?: string }
type Person = { external_id: string; id: string; attribute_values: { city: string | null } }

// The orders cover equal measures, missing ones, and numbers that a double cannot represent.
const orders: Order[] = [
  { buyer: 'p0', total: 0.1, paid_at: '2026-01-02T00:00:00+01:00', sent_on: '2026-01-03' },
  { buyer: 'p0', total: 0.2, paid_at: '2026-01-01T23:00:00.0000005Z' },
  { buyer: 'p1', total: 0.3, sent_on: '2026-01-02' },
  { buyer: 'p2', total: -5 },
  { buyer: 'p2', total: 12, paid_at: '2026-01-01T23:00:00Z', sent_on: '2026-01-04' },
  { buyer: 'p3' },
  { buyer: 'p3', total: 0.3, sent_on: '2026-01-03' },
  { buyer: 'p6', total: 100 },
  { buyer: 'p6', total: 1 },
  { buyer: 'p6' },
]

let people: Person[]
beforeAll(async () => {
  for (let n = 0; n < 9; n += 1) {
    const attribute_values = { city: n % 2 === 0 ? 'Rome' : 'Oslo' }
    await shop.ok('POST', '/v1/people', { external_id: `p${n}`, attribute_values })
  }
  for (const [n, attribute_values] of orders.entries())
    await shop.ok('POST', '/v1/stacks/orders', { external_id: `o${n}`, attribute_values })
  people = (await shop.ok('POST', '/v1/people/list', { sorting_type: 'asc' })).items
})

const field = 'incoming.orders.buyer'
const attributeOf = (key: string) => `attribute_values.${key}`

/** The measures, and their values for some orders as sortable numbers. Undefined without orders. */
const measures: [object, (chosen: Order[]) => number | undefined][] = [
  [{ op: 'count' }, chosen => chosen.length],
  [{ op: 'sum', field: attributeOf('total') }, chosen => sumOf(totals(chosen))],
  [{ op: 'avg', field: attributeOf('total') }, chosen => divide(sumOf(totals(chosen)), totals(chosen).length)],
  [{ op: 'min', field: attributeOf('total') }, chosen => least(totals(chosen))],
  [{ op: 'max', field: attributeOf('total') }, chosen => negative(least(totals(chosen).map(total => -total)))],
  [{ op: 'min', field: attributeOf('sent_on') }, chosen => least(chosen.flatMap(({ sent_on }) => timeOf(sent_on)))],
  [{ op: 'min', field: attributeOf('paid_at') }, chosen => least(chosen.flatMap(({ paid_at }) => timeOf(paid_at)))],
]
const tenths = (total: number) => Math.round(total * 10)
const totals = (chosen: Order[]) => chosen.flatMap(({ total }) => (total === undefined ? [] : tenths(total)))
const sumOf = (values: number[]) => (values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0))
const divide = (sum: number | undefined, by: number) => sum && sum / by
const negative = (value: number | undefined) => (value === undefined ? undefined : -value)
const least = (values: number[]) => (values.length === 0 ? undefined : Math.min(...values))
/** Returns a time with all its digits, because half a microsecond counts. */
const timeOf = (text: string | undefined) =>
  text === undefined ? [] : [Date.parse(text) + (text.includes('0000005') ? 0.0005 : 0)]

const selections: [object | undefined, (order: Order) => boolean][] = [
  [undefined, () => true],
  [{ [attributeOf('total')]: { $gt: 0 } }, ({ total = 0 }) => total > 0],
  [{ [attributeOf('total')]: 77 }, () => false],
]
const filters: [object | undefined, (person: Person) => boolean][] = [
  [undefined, () => true],
  // An index finds the matches of Rome.
  [{ [attributeOf('city')]: 'Rome' }, ({ attribute_values }) => attribute_values.city === 'Rome'],
  [{ [attributeOf('city')]: { $neq: 'Rome' } }, ({ attribute_values }) => attribute_values.city !== 'Rome'],
  [{ [field]: { $count: { $gte: 1 } } }, ({ external_id }) => orders.some(({ buyer }) => buyer === external_id)],
]

async function namesOfAllPages(body: object, size: number): Promise<string[]> {
  const names: string[] = []
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = await shop.ok('POST', '/v1/people/filter', { ...body, cursor_configuration: { size, cursor } })
    names.push(...page.items.map(({ external_id }: Person) => external_id))
    cursor = page.next_cursor
  }
  return names
}

describe('a page in the order of a measure of those who link here', () => {
  it('has everybody of the filter once, in that order, whatever the size of the pages', async () => {
    const request = fc.record({
      measure: fc.constantFrom(...measures),
      selection: fc.constantFrom(...selections),
      filter: fc.constantFrom(...filters),
      direction: fc.constantFrom('asc' as const, 'desc' as const),
      size: fc.integer({ min: 1, max: 10 }),
    })
    const property = fc.asyncProperty(request, async ({ measure, selection, filter, direction, size }) => {
      const [[measured, measureOf], [where, isMeasured], [condition, matches]] = [measure, selection, filter]
      const value = ({ external_id }: Person) =>
        measureOf(orders.filter(order => order.buyer === external_id && isMeasured(order)))
      const sign = direction === 'asc' ? 1 : -1
      const expected = people.filter(matches).sort((one, other) => {
        const [first, second] = [value(one), value(other)]
        const byId = one.id < other.id ? -sign : sign
        if (first === undefined || second === undefined)
          return Number(first === undefined) - Number(second === undefined) || byId
        return sign * (first - second) || byId
      })
      const body = { filter: condition, sort: { field, measure: measured, where, direction } }
      expect(await namesOfAllPages(body, size)).toEqual(expected.map(({ external_id }) => external_id))
    })
    await fc.assert(property, someRuns(60))
  })

  it('counts the matches, names the moment of relative times, and shows what is asked for', async () => {
    const where = { created_at: { $gte: { $ago: 'P1D' } } }
    const sort = { field, measure: { op: 'count' }, where, direction: 'desc' }
    const body = { sort, count: true, fields: ['external_id'], cursor_configuration: { size: 1 } }
    const page = await shop.ok('POST', '/v1/people/filter', body)
    expect(page).toMatchObject({ items: [{ external_id: 'p6' }], count: 9, evaluated_at: expect.any(String) })
    expect(Object.keys(page.items[0])).toEqual(['external_id'])
    const list = await shop.ok('POST', '/v1/people/list', { sort, cursor_configuration: { size: 1 } })
    expect(list.items).toMatchObject([{ external_id: 'p6' }])
    const inQuery = `sort[field]=${field}&sort[measure][op]=sum&sort[measure][field]=attribute_values.total&sort[direction]=desc`
    expect((await shop.ok('POST', `/v1/people/list?${inQuery}`)).items[0]).toMatchObject({ external_id: 'p6' })
  })

  it('is refused with the path of what is wrong', async () => {
    const total = attributeOf('total')
    const cases: [object, string, string][] = [
      [{ field }, '/sort/field', 'needs `measure`, such as {"op": "count"}'],
      [{ field: 'first_name', where: {} }, '/sort/where', 'selects what `measure` measures, which is absent'],
      [{ field, measure: { op: 'sum' } }, '/sort/measure/field', 'is required: sum measures'],
      [{ field, measure: { op: 'count', field: total } }, '/sort/measure/field', 'is not taken by count'],
      [{ field, measure: { op: 'min', field: attributeOf('note') } }, '/sort/measure/field', 'is a text'],
      [{ field, measure: { op: 'sum', field: attributeOf('ttl') } }, '/sort/measure/field', 'is not declared'],
      [{ field: 'incoming.orders.byer', measure: { op: 'count' } }, '/sort/field', 'orders has no relationship "byer"'],
      [{ field: 'first_name', measure: { op: 'count' } }, '/sort/field', 'has no measure: only incoming.'],
      [{ field, measure: { op: 'count' }, where: { tota: 1 } }, '/sort/where/tota', 'is not a field of a record'],
    ]
    for (const [sort, path, message] of cases) {
      const { status, body } = await shop.send('POST', '/v1/people/filter', { sort })
      expect([status, body.details]).toEqual([400, [{ path, message: expect.stringContaining(message) }]])
    }
  })

  it('goes on only at a cursor of its own order, and refuses one that was made up', async () => {
    const read = (sort: object, cursor?: string) =>
      shop.send('POST', '/v1/people/filter', { sort, cursor_configuration: { size: 1, cursor } })
    const sum = { field, measure: { op: 'sum', field: attributeOf('total') } }
    const { next_cursor } = (await read(sum)).body.data
    for (const other of [
      { ...sum, where: { state: 'active' } },
      { ...sum, direction: 'desc' },
      { field, measure: { op: 'count' } },
    ])
      expect((await read(other, next_cursor)).body.details).toMatchObject([
        { message: expect.stringContaining('order') },
      ])
    const parts = JSON.parse(Buffer.from(next_cursor, 'base64url').toString())
    for (const term of ['=NaN', '=1e9', '1', `=${'9'.repeat(2_000)}`, "='", '=2026-01-01']) {
      const forged = Buffer.from(JSON.stringify(parts.with(2, term))).toString('base64url')
      expect((await read(sum, forged)).body.details).toMatchObject([{ path: '/cursor_configuration/cursor' }])
    }
  })

  it('needs the scope that reads those who are measured', async () => {
    const send = service.sender(await service.tokenFor(shop.key, 'people:read'))
    const sort = { field, measure: { op: 'count' } }
    const { status, body } = await send('POST', '/v1/people/list', { sort })
    expect([status, body.error]).toEqual([403, 'forbidden'])
  })
})
