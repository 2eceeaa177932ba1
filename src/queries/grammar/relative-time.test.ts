import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { useService } from '../../../test/support/service.ts'
import { useSharedShop } from '../../../test/support/shop.ts'
import { isDate } from '../../values/formats.ts'
import { anniversaryDays, timeFrom } from './relative-time.ts'

const dayMs = 86_400_000
const rome = 'Europe/Rome'
const at = (time: string, timeZone = 'UTC') => ({ nowMs: Date.parse(time), timeZone })

describe('a relative time', () => {
  it.each([
    // The clocks of Rome go back on 2026-10-25. The time of day 30 days ago is the same by the local clock.
    [{ $ago: 'P30D' }, at('2026-11-10T09:00:00Z', rome), '2026-10-11', '2026-10-11T08:00:00.000Z'],
    [{ $ago: 'PT720H' }, at('2026-11-10T09:00:00Z', rome), '2026-10-11', '2026-10-11T09:00:00.000Z'],
    [{ $ago: 'P1M' }, at('2026-03-31T12:00:00Z'), '2026-02-28', '2026-02-28T12:00:00.000Z'],
    [{ $from_now: 'P1Y' }, at('2028-02-29T12:00:00Z'), '2029-02-28', '2029-02-28T12:00:00.000Z'],
    [{ $from_now: 'P1W2DT36H' }, at('2026-12-20T12:00:00Z'), '2026-12-31', '2026-12-31T00:00:00.000Z'],
    [{ $today: 'start' }, at('2026-11-28T23:30:00Z', rome), '2026-11-29', '2026-11-28T23:00:00.000Z'],
    [{ $today: 'start' }, at('2026-11-28T02:00:00Z', 'America/New_York'), '2026-11-27', '2026-11-27T05:00:00.000Z'],
    // At midnight, the clocks of Cairo went forward to one o'clock.
    [{ $today: 'start' }, at('2026-04-24T12:00:00Z', 'Africa/Cairo'), '2026-04-24', '2026-04-23T22:00:00.000Z'],
  ])('%j at %j is the date %s and the time %s', (relative, clock, date, time) => {
    expect([timeFrom(relative, 'date', clock), timeFrom(relative, 'datetime', clock)]).toEqual([date, time])
  })

  it.each([
    [{ $ago: '30 days' }, ['$ago']],
    [{ $ago: '-P1D' }, ['$ago']],
    [{ $ago: 'P' }, ['$ago']],
    [{ $ago: 'PT' }, ['$ago']],
    [{ $ago: 'P1.5D' }, ['$ago']],
    [{ $ago: 30 }, ['$ago']],
    [{ $ago: 'P9999Y' }, ['$ago']],
    [{ $from_now: 'P99999Y' }, ['$from_now']],
    [{ $today: 'end' }, ['$today']],
    [{ $ago: 'P1D', $today: 'start' }, []],
  ])('refuses %j at %j', (relative, path) => {
    expect(timeFrom(relative, 'datetime', at('2026-11-28T12:00:00Z'))).toMatchObject({ path })
  })
})

describe('an anniversary', () => {
  /** The next anniversary of a date, in days from today. */
  function daysUntil(date: string, today: string): number {
    const [month, day] = date.slice(5).split('-').map(Number) as [number, number]
    const year = Number(today.slice(0, 4))
    const falls = [year, year + 1].map(each => Date.UTC(each, month - 1, day))
    return (falls.find(fall => fall >= Date.parse(today))! - Date.parse(today)) / dayMs
  }

  it('is on a day from today to so many days later, 29 February on 1 March of other years', () => {
    const days = fc
      .date({ min: new Date('1900-01-01T00:00:00Z'), max: new Date('2099-12-31T00:00:00Z'), noInvalidDate: true })
      .map(time => time.toISOString().slice(0, 10))
    fc.assert(
      fc.property(fc.oneof(days, fc.constant('2000-02-29')), days, fc.nat({ max: 365 }), (date, today, within_days) => {
        const found = anniversaryDays({ within_days }, at(`${today}T12:00:00Z`)) as string[]
        expect(found.includes(date.slice(5))).toBe(daysUntil(date, today) <= within_days)
        expect(found.every(day => isDate(`2000-${day}`))).toBe(true)
      }),
    )
  })

  it.each([
    [7, []],
    [{}, ['within_days']],
    [{ within_days: -1 }, ['within_days']],
    [{ within_days: 366 }, ['within_days']],
    [{ within_days: 1.5 }, ['within_days']],
    [{ within_days: 7, in: 'days' }, ['in']],
  ])('refuses %j', (operand, path) => {
    expect(anniversaryDays(operand, at('2026-11-28T12:00:00Z'))).toMatchObject({ path })
  })
})

describe('a filter with relative times', () => {
  const service = useService()
  const shop = useSharedShop(
    service,
    'buyer',
    { key: 'paid_at', owner: 'orders', type: 'datetime', indexed: true },
    { key: 'due', owner: 'people', type: 'date', indexed: true },
    { key: 'visits', owner: 'people', type: 'datetime', cardinality: 'many' },
    { key: 'holidays', owner: 'people', type: 'date', cardinality: 'many' },
  )
  const dateIn = (days: number) => new Date(Date.now() + days * dayMs).toISOString().slice(0, 10)
  const timeIn = (days: number) => new Date(Date.now() + days * dayMs).toISOString()
  const born = (days: number) => `1996${dateIn(days).slice(4)}`

  beforeAll(async () => {
    const people = {
      ada: { date_of_birth: born(3), attribute_values: { due: dateIn(0), visits: [timeIn(-100), timeIn(-1)] } },
      bob: { date_of_birth: born(60), attribute_values: { due: dateIn(-40), holidays: [dateIn(200), dateIn(2)] } },
      cleo: { attribute_values: { due: dateIn(5), visits: [timeIn(-100)] } },
    }
    for (const [external_id, body] of Object.entries(people))
      await shop.ok('POST', '/v1/people', { external_id, ...body })
    for (const [external_id, buyer, days] of [
      ['o1', 'ada', -2],
      ['o2', 'ada', -20],
      ['o3', 'bob', -400],
    ] as const)
      await shop.ok('POST', '/v1/stacks/orders', { external_id, attribute_values: { buyer, paid_at: timeIn(days) } })
  })

  const filter = (filter: object, rest = {}) =>
    shop.ok('POST', '/v1/people/filter', { filter, sort_direction: 'asc', ...rest })
  const names = async (condition: object) =>
    (await filter(condition)).items.map(({ external_id }: { external_id: string }) => external_id)

  it('compares dates, times, arrays of them and fields of linked records with the present', async () => {
    expect(await names({ 'attribute_values.due': { $lt: { $today: 'start' } } })).toEqual(['bob'])
    expect(await names({ 'attribute_values.due': { $today: 'start' } })).toEqual(['ada'])
    expect(await names({ 'attribute_values.due': { $in: [{ $from_now: 'P5D' }, dateIn(-40)] } })).toEqual([
      'bob',
      'cleo',
    ])
    expect(await names({ created_at: { $gte: { $ago: 'PT1H' }, $lt: { $from_now: 'PT1H' } } })).toHaveLength(3)
    expect(await names({ 'attribute_values.visits': { $gte: { $ago: 'P7D' } } })).toEqual(['ada'])
    const recent = { 'attribute_values.paid_at': { $gte: { $ago: 'P30D' } } }
    expect(await names({ 'incoming.orders.buyer': { $count: { $gte: 2 }, $where: recent } })).toEqual(['ada'])
    expect(
      await names({ 'incoming.orders.buyer': { $max: { 'attribute_values.paid_at': { $lt: { $ago: 'P1Y' } } } } }),
    ).toEqual(['bob'])
    expect(await names({ $not: { 'incoming.orders.buyer': { $some: recent } } })).toEqual(['bob', 'cleo'])
  })

  it.each([
    ['visits', { $today: 'start' }, '', '$eq'],
    ['visits', { $eq: { $ago: 'P1D' } }, '/$eq', '$eq'],
    ['visits', { $neq: { $ago: 'P1D' } }, '/$neq', '$neq'],
    ['visits', { $in: ['2026-01-01T00:00:00Z', { $ago: 'P1D' }] }, '/$in/1', '$in'],
    ['visits', { $nin: [{ $ago: 'P1D' }] }, '/$nin/0', '$nin'],
  ])(
    'is refused in an equality of a datetime, whose texts are compared: %s %j',
    async (key, operand, path, operator) => {
      const { status, body } = await shop.send('POST', '/v1/people/filter', {
        filter: { [`attribute_values.${key}`]: operand },
      })
      const message = `is a relative time, but ${operator} compares a datetime as it was written: use $gte and $lt`
      expect([status, body.details]).toEqual([400, [{ path: `/filter/attribute_values.${key}${path}`, message }]])
    },
  )

  it('equals a moment where moments are compared: in fields of every entity and in measures of linked ones', async () => {
    expect(await names({ created_at: { $neq: { $ago: 'P1D' } } })).toHaveLength(3)
    const never = { 'incoming.orders.buyer': { $max: { 'attribute_values.paid_at': { $ago: 'P1D' } } } }
    expect(await names(never)).toEqual([])
    expect(await names({ $not: never })).toHaveLength(3)
  })

  it('finds birthdays, and anniversaries of dates in an attribute', async () => {
    const birthday = { date_of_birth: { $anniversary: { within_days: 7 } } }
    expect(await names(birthday)).toEqual(['ada'])
    expect(await names({ $not: birthday })).toEqual(['bob', 'cleo'])
    expect(await names({ date_of_birth: { $anniversary: { within_days: 2 } } })).toEqual([])
    expect(await names({ 'attribute_values.holidays': { $anniversary: { within_days: 7 } } })).toEqual(['bob'])
  })

  it('says of which time it asked, in pages, counts and aggregates, and only then', async () => {
    const before = Date.now()
    const page = await filter({ created_at: { $gte: { $ago: 'P1D' } } }, { count: true })
    expect(page.count).toBe(3)
    expect(Date.parse(page.evaluated_at)).toBeGreaterThanOrEqual(before)
    expect(Date.parse(page.evaluated_at)).toBeLessThanOrEqual(Date.now())
    expect(Object.keys(await filter({ created_at: { $gte: '2026-01-01T00:00:00Z' } }))).not.toContain('evaluated_at')
    const aggregate = await shop.ok('POST', '/v1/stacks/orders/aggregate', {
      filter: { 'attribute_values.paid_at': { $gte: { $ago: 'P30D' } } },
    })
    expect(aggregate).toMatchObject({ groups: [{ measures: [2] }], evaluated_at: expect.stringMatching(/Z$/) })
  })

  it('has the days of the time zone of the organization', async () => {
    // These zones are always on different days.
    const zones = ['Pacific/Kiritimati', 'Pacific/Pago_Pago']
    const found: string[][] = []
    for (const time_zone of zones) {
      await shop.ok('PATCH', '/v1/schema/settings', { time_zone })
      const today = new Intl.DateTimeFormat('en-CA', { timeZone: time_zone }).format()
      await shop.ok('PATCH', '/v1/people/cleo', { attribute_values: { due: today } })
      found.push(await names({ external_id: 'cleo', 'attribute_values.due': { $today: 'start' } }))
    }
    await shop.ok('PATCH', '/v1/schema/settings', { time_zone: 'Europe/Berlin' })
    expect(await shop.ok('GET', '/v1/schema/settings')).toMatchObject({ time_zone: 'Europe/Berlin' })
    await shop.ok('PATCH', '/v1/schema/settings', { time_zone: null })
    expect(found).toEqual([['cleo'], ['cleo']])
    const refused = await shop.send('PATCH', '/v1/schema/settings', { time_zone: 'Rome' })
    expect([refused.status, refused.body.details]).toEqual([
      400,
      [{ path: '/time_zone', message: 'must be UTC or an IANA time zone with its region, such as Europe/Berlin' }],
    ])
  })

  it.each([
    [{ first_name: { $gte: { $ago: 'P1D' } } }, '/filter/first_name/$gte', 'no date or time'],
    [
      { 'attribute_values.unknown': { $eq: { $ago: 'P1D' } } },
      '/filter/attribute_values.unknown/$eq',
      'declare its key',
    ],
    [{ 'attribute_values.due': { $in: [{ $ago: 'tomorrow' }] } }, '/filter/attribute_values.due/$in/0/$ago', 'P30D'],
    [{ 'attribute_values.due': { $today: 'noon' } }, '/filter/attribute_values.due/$today', '"start"'],
    [{ created_at: { $anniversary: { within_days: 7 } } }, '/filter/created_at/$anniversary', 'only to dates'],
    [{ date_of_birth: { $anniversary: { days: 7 } } }, '/filter/date_of_birth/$anniversary/days', 'within_days'],
  ])('refuses %j at %s', async (filter, path, message) => {
    const { status, body } = await shop.send('POST', '/v1/people/filter', { filter })
    expect([status, body.details?.map((detail: { path: string }) => detail.path)]).toEqual([400, [path]])
    expect(body.details?.[0]?.message).toContain(message)
  })
})
