import { expect, it } from 'vitest'
import { Slots } from './slots.ts'

const never = new AbortController().signal

it('an organization whose receivers never answer leaves slots to others', async () => {
  const slots = new Slots({ healthy: 8, failing: 4 })
  let taken = 0
  for (let n = 0; n < 20; n += 1) void slots.take(1, false, never).then(() => (taken += 1))
  for (let n = 0; n < 20; n += 1) void slots.take(1, true, never).then(() => (taken += 1))
  for (const organization of [2, 3, 4]) {
    await slots.take(organization, false, never)
    await slots.take(organization, false, never)
    await slots.take(organization, true, never)
  }
  expect(taken).toBe(3)
})

it('a slot that is given back goes to the one who has waited longest and has room', async () => {
  const slots = new Slots({ healthy: 4, failing: 4 })
  const releases = [await slots.take(1, false, never)]
  for (const organization of [2, 3, 4]) await slots.take(organization, false, never)
  const order: number[] = []
  for (const organization of [2, 1, 5]) void slots.take(organization, false, never).then(() => order.push(organization))
  releases[0]!()
  await new Promise(setImmediate)
  // Organization 2 holds its share.
  expect(order).toEqual([1])
})

it('a wait ends with the signal, and its slot goes on', async () => {
  const slots = new Slots({ healthy: 1, failing: 1 })
  const release = await slots.take(1, false, never)
  const ending = new AbortController()
  const waiting = slots.take(2, false, ending.signal)
  ending.abort(new Error('stopped'))
  await expect(waiting).rejects.toThrow('stopped')
  release()
  await slots.take(3, false, never)
})
