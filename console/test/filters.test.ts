import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { orderFilters, personFilters } from '../../test/support/filter-generators.ts'
import { createDataset } from '../../test/support/filter-world.ts'
import { useService } from '../../test/support/service.ts'
import { fieldTypesOf } from '../src/filters/field-types.ts'
import { isNearLimit, sizeOf } from '../src/filters/filter-size.ts'
import { type Filter, type FilterGroup, newGroup } from '../src/filters/filter-tree.ts'
import { readFilter } from '../src/filters/read-filter.ts'
import { changeOperator } from '../src/filters/relative-time.ts'
import { writeFilter } from '../src/filters/write-filter.ts'

const service = useService()

describe('the filter builder', () => {
  test('writes a filter that finds exactly what the filter before finds', async () => {
    const organization = await service.organization()
    await createDataset(organization, 7)
    const definitions = await organization.client.schema.get()
    const find = async (path: string, filter: unknown) => {
      const reply = await organization.send('POST', `${path}/filter`, { filter, fields: ['external_id', 'version'] })
      return reply.status === 200 ? reply.body.data.items : reply.status
    }
    for (const [owner, path, filters] of [
      ['people', '/v1/people', personFilters({ levels: 3, hops: 2 })],
      ['orders', '/v1/stacks/orders', orderFilters({ levels: 3, hops: 2 })],
    ] as const) {
      const types = fieldTypesOf(owner, definitions)
      const rewrite = (filter: unknown) => writeFilter(readFilter(filter as Filter, types), types)
      await fc.assert(
        fc.asyncProperty(filters, async filter => {
          const rewritten = rewrite(filter)
          expect(sizeOf(rewritten).conditions).toBeLessThanOrEqual(sizeOf(filter).conditions)
          expect(rewrite(rewritten)).toEqual(rewritten)
          expect(await find(path, rewritten)).toEqual(await find(path, filter))
        }),
        {
          numRuns: 60,
          examples:
            owner === 'people'
              ? []
              : [[{ $and: [{ 'attribute_values.buyer': { $eq: 'a' } }, { 'attribute_values.buyer': 'a' }] }]],
        },
      )
    }
  })

  const definitions = {
    attributes: [
      { owner: 'orders', key: 'buyer', type: 'person', target_stack: null, state: 'active' },
      { owner: 'orders', key: 'total', type: 'number', target_stack: null, state: 'active' },
      { owner: 'orders', key: 'placed_at', type: 'datetime', target_stack: null, state: 'active' },
      { owner: 'people', key: 'referrer', type: 'person', target_stack: null, state: 'active' },
    ] as const,
  }
  const people = fieldTypesOf('people', definitions)
  const read = (filter: Filter) => readFilter(filter, people)
  const kindsIn = (group: FilterGroup): string[] =>
    group.children.flatMap(node => [node.kind, ...('group' in node ? kindsIn(node.group) : [])])

  const since = { 'attribute_values.placed_at': { $gte: '2026-06-01T00:00:00Z' } }
  const total = 'attribute_values.total'
  test('writes two tests of a count once if they are the same in the builder', () => {
    const orders = fieldTypesOf('orders', definitions)
    const $where = { 'attribute_values.referrer': { $exists: false } }
    const filter = { 'incoming.orders.buyer': { $count: { $exists: false, $eq: null }, $where } }
    expect(writeFilter(readFilter(filter, people), people)).toEqual({
      'incoming.orders.buyer': { $count: { $exists: false }, $where },
    })
    expect(writeFilter(readFilter({ [total]: { $exists: false, $eq: null } }, orders), orders)).toEqual({
      [total]: { $exists: false },
    })
  })

  test.each([
    [{ $none: {} }, ['related']],
    [{ $every: { [total]: { $gte: 10 } } }, ['related', 'field']],
    [{ $count: 0 }, ['measured']],
    [{ $count: { $gte: 2, $lt: 5 }, $where: since }, ['measured', 'field', 'measured', 'field']],
    [
      { $count: { $gte: 2 }, $sum: { [total]: { $gte: 100 } }, $where: since },
      ['measured', 'field', 'measured', 'field'],
    ],
    [
      { $sum: { [total]: { $gte: 1, $exists: true } }, $some: { [total]: 3 } },
      ['measured', 'measured', 'related', 'field'],
    ],
    [{ $max: { 'attribute_values.placed_at': { $lt: '2026-01-01T00:00:00Z' } } }, ['measured']],
    [
      { $some: { 'attribute_values.buyer': { $some: { 'incoming.people.referrer': { $count: 1 } } } } },
      ['related', 'related', 'measured'],
    ],
    // No controls: a measure of a field that cannot be measured, an unknown operator, a selection of nothing.
    [{ $sum: { 'attribute_values.placed_at': 1 } }, ['raw']],
    [{ $median: { [total]: 1 } }, ['raw']],
    [{ $some: {}, $where: {} }, ['raw']],
  ])('reads and writes %j of those who link here', (operand, kinds) => {
    const filter = { first_name: 'Ada', 'incoming.orders.buyer': operand }
    expect(kindsIn(read(filter))).toEqual(['field', ...kinds])
    expect(writeFilter(read(filter), people)).toEqual(filter)
  })

  const paidAt = 'attribute_values.placed_at'
  const now = { $ago: 'PT0S' }
  const today = { $today: 'start' }
  test.each([
    [{ created_at: { $gte: { $ago: 'P30D' } } }, 'in_last', 'P30D'],
    [{ created_at: { $gte: { $ago: 'PT12H' } } }, 'in_last', 'PT12H'],
    [{ date_of_birth: { $gte: { $ago: 'P18Y' }, $lte: today } }, 'in_last', 'P18Y'],
    [{ date_of_birth: { $gte: today, $lte: { $from_now: 'P2W' } } }, 'in_next', 'P2W'],
    [{ created_at: { $gte: now, $lte: { $from_now: 'P1M' } } }, 'in_next', 'P1M'],
    [{ updated_at: { $lt: today } }, 'before_today', ''],
    [{ date_of_birth: { $anniversary: { within_days: 7 } } }, 'anniversary', '7'],
    [{ created_at: { $lt: { $ago: 'P90D' } } }, 'lt', '{"$ago":"P90D"}'],
    [{ date_of_birth: { $eq: today } }, 'eq', '{"$today":"start"}'],
    [{ date_of_birth: { $gte: { $ago: 'P18Y' } } }, 'gte', '{"$ago":"P18Y"}'],
  ])('reads and writes the times that are counted from today in %j', (filter, operator, operand) => {
    expect(read(filter).children).toMatchObject([{ kind: 'field', operator, operand }])
    expect(writeFilter(read(filter), people)).toEqual(filter)
  })

  test('reads a relative time without an operator as equality', () => {
    const group = read({ date_of_birth: today })
    expect(group.children).toMatchObject([{ kind: 'field', operator: 'eq', operand: '{"$today":"start"}' }])
    expect(writeFilter(group, people)).toEqual({ date_of_birth: { $eq: today } })
  })

  test.each([
    { created_at: { $gte: { $ago: 'P1Y2M' } } },
    { created_at: { $gte: { $today: 'end' } } },
    { created_at: { $gte: { $ago: 'P1D', $from_now: 'P1D' } } },
    { date_of_birth: { $anniversary: { within_days: -1 } } },
    { date_of_birth: { $anniversary: { within_days: 7, of: 'x' } } },
    { date_of_birth: { $gte: '{"$today":"start"}' } },
    { first_name: { $gte: { $ago: 'P30D' } } },
  ])('keeps %j, which it has no controls for', filter => {
    expect(kindsIn(read(filter))).toEqual(['raw'])
    expect(writeFilter(read(filter), people)).toEqual(filter)
  })

  test('measures those of a span of time, and the time of the latest', () => {
    const recent = { [paidAt]: { $gte: { $ago: 'P30D' }, $lte: now } }
    for (const operand of [
      { $count: { $gte: 2 }, $where: recent },
      { $max: recent },
      { $max: { [paidAt]: { $lt: today } } },
    ]) {
      const filter = { 'incoming.orders.buyer': operand }
      expect(kindsIn(read(filter))).not.toContain('raw')
      expect(writeFilter(read(filter), people)).toEqual(filter)
    }
  })

  test('keeps what was entered when the operator changes, as far as the new one takes it', () => {
    expect(changeOperator({ operator: 'gte', operand: '2026-01-01' }, 'in_last').operand).toBe('P30D')
    expect(changeOperator({ operator: 'in_last', operand: 'P2W' }, 'in_next').operand).toBe('P2W')
    expect(changeOperator({ operator: 'in_last', operand: 'P2W' }, 'gte').operand).toBe('')
    expect(changeOperator({ operator: 'lt', operand: '2026-01-01' }, 'gte').operand).toBe('2026-01-01')
    // A number that is being typed leaves the condition out.
    expect(
      writeFilter(
        newGroup('all', [{ id: 1, kind: 'field', field: 'created_at', operator: 'in_last', operand: 'PD' }]),
        people,
      ),
    ).toEqual({})
  })

  test('has controls for who may be written to', () => {
    const filter = { contactable: { consent_type_id: 2, channel: 'email' } }
    expect(kindsIn(read(filter))).toEqual(['contactable'])
    const twice = { $and: [filter, { contactable: { consent_type_id: 1, channel: 'sms' } }] }
    expect(writeFilter(read(twice), people)).toEqual(twice)
    const incomplete = { contactable: { channel: 'email' } }
    expect([kindsIn(read(incomplete)), writeFilter(read(incomplete), people)]).toEqual([['raw'], incomplete])
  })

  test('has controls for addresses that are suppressed or deliverable', () => {
    for (const $some of [{ channel: 'email', state: 'suppressed' }, { state: 'deliverable' }]) {
      const filter = { deliverability: { $some } }
      expect(kindsIn(read(filter))).toEqual(['deliverability'])
      const twice = { $and: [filter, { deliverability: { $some: { channel: 'sms', state: 'suppressed' } } }] }
      expect(writeFilter(read(twice), people)).toEqual(twice)
    }
    for (const filter of [{ deliverability: { $some: {} } }, { deliverability: { $none: { channel: 'email' } } }])
      expect([kindsIn(read(filter)), writeFilter(read(filter), people)]).toEqual([['raw'], filter])
  })

  test('keeps two selections of those who link here apart', () => {
    const many = { 'incoming.orders.buyer': { $count: { $gte: 2 } } }
    const dear = { 'incoming.orders.buyer': { $count: { $lt: 5 }, $where: since } }
    const filter = { $and: [many, dear] }
    expect(writeFilter(read(filter), people)).toEqual(filter)
  })

  test('counts conditions, levels and relationships as the API does', async () => {
    const organization = await service.organization()
    const conditionsOf = (count: number) => Array.from({ length: count }, () => ({ first_name: { $neq: 'x' } }))
    await createDataset(organization, 8)
    const paid = { 'attribute_values.total': { $gte: 1, $lt: 9 } }
    const buyer = {
      'incoming.orders.buyer': { $count: { $gte: 1, $lt: 3 }, $sum: { [total]: 1 }, $where: paid, $some: {} },
    }
    expect(sizeOf(buyer)).toEqual({ conditions: 6, levels: 2, relationships: 1 })
    for (const [filter, limit] of [
      [{ $and: [...conditionsOf(44), buyer] }, 50],
      [{ consents: { $some: { consent_type_id: 1, channel: 'email' } }, $or: conditionsOf(49) }, 50],
      [{ contactable: { consent_type_id: 1, channel: 'sms' }, $or: conditionsOf(49) }, 50],
      [{ deliverability: { $some: { channel: 'sms', state: 'suppressed' } }, $or: conditionsOf(49) }, 50],
    ] as const) {
      const send = async (sent: Filter) =>
        (await organization.send('POST', '/v1/people/filter', { filter: sent })).status
      expect([sizeOf(filter).conditions, await send(filter)]).toEqual([limit, 200])
      const larger = { $and: [filter, { first_name: 'y' }] }
      expect([sizeOf(larger).conditions, await send(larger)]).toEqual([limit + 1, 400])
      expect([isNearLimit(sizeOf(filter)), isNearLimit(sizeOf(buyer))]).toEqual([true, false])
    }
  })

  test('shows a consent that waits for its confirmation, and keeps that one does not', () => {
    const types = fieldTypesOf('people', undefined)
    const waiting = { consents: { $some: { consent_type_id: 1, channel: 'email', pending: true } } }
    expect(readFilter(waiting, types).children).toMatchObject([{ kind: 'consent', state: 'pending' }])
    const refused = { consents: { $some: { consent_type_id: 1, channel: 'email', state: false, pending: false } } }
    expect(readFilter(refused, types).children).toMatchObject([{ kind: 'raw' }])
    for (const filter of [waiting, refused]) expect(writeFilter(readFilter(filter, types), types)).toEqual(filter)
  })

  test('keeps a part that it has no controls for', () => {
    const types = fieldTypesOf('people', undefined)
    const filter = {
      email: { $in: ['a@example.org', null] },
      consents: { $some: { consent_type_id: 1, method: 'web_form' } },
      'attribute_values.city': { $eq: { nested: true } },
    }
    expect(writeFilter(readFilter(filter, types), types)).toEqual(filter)
  })
})
