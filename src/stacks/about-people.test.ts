import { expect, it } from 'vitest'
import { useService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'

const total = { key: 'total', owner: 'orders', type: 'number' } as const
const placedAt = { key: 'placed_at', owner: 'orders', type: 'datetime' } as const
const shop = useShop(useService(), 'orders', 'buyer', total, placedAt)
const path = '/v1/schema/stacks/orders'
const summary = {
  time: 'placed_at',
  person: 'buyer',
  measures: [{ op: 'count' }, { op: 'sum', key: 'total' }],
} as const

it('a stack says what sums up the records of a person, and with whom they are erased', async () => {
  const patch = { erased_with: 'buyer', summary: { measures: summary.measures, person: 'buyer', time: 'placed_at' } }
  expect(await shop.ok('PATCH', path, patch)).toMatchObject({ erased_with: 'buyer', summary })
  const head = await shop.head()
  expect(await shop.ok('PATCH', path, patch)).toMatchObject({ summary })
  expect(await shop.head()).toBe(head)
  expect(await shop.ok('PATCH', path, { summary: null, erased_with: null })).toMatchObject({
    summary: null,
    erased_with: null,
  })
  const withoutTime = { person: 'buyer', measures: [{ op: 'count' }] }
  expect((await shop.ok('PATCH', path, { summary: withoutTime })).summary).toEqual({ time: null, ...withoutTime })
})

it.each<[string, object, string]>([
  ['a key that is not declared', { summary: { ...summary, person: 'payer' } }, '/summary'],
  ['a relationship to a stack', { erased_with: 'total' }, '/erased_with'],
  ['a time that is a number', { summary: { ...summary, time: 'total' } }, '/summary'],
  ['a sum of nothing', { summary: { ...summary, measures: [{ op: 'sum' }] } }, '/summary'],
  ['a sum of times', { summary: { ...summary, measures: [{ op: 'sum', key: 'placed_at' }] } }, '/summary'],
  ['no measure', { summary: { ...summary, measures: [] } }, '/summary/measures'],
])('a stack refuses %s', async (_, patch, at) => {
  const reply = await shop.send('PATCH', path, patch)
  expect([reply.status, reply.body.details?.[0]?.path]).toEqual([400, at])
  expect(await shop.ok('GET', path)).toMatchObject({ summary: null, erased_with: null })
})
