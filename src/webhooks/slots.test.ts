import fc from 'fast-check'
import { expect, it } from 'vitest'
import { Slots } from './slots.ts'

const never = new AbortController().signal

it('four organizations whose receivers never answer leave slots to a fifth, whether they fail or not', async () => {
  for (const isFailing of [false, true]) {
    const slots = new Slots()
    for (const organization of [1, 2, 3, 4])
      for (let n = 0; n < 300; n += 1) void slots.take(organization, isFailing, never)
    await slots.take(5, isFailing, never)
    await slots.take(6, isFailing, never)
  }
})

it('a slot that is given back goes to the organization that holds the fewest', async () => {
  const slots = new Slots({ healthy: 16 })
  const releases = [await slots.take(1, false, never), await slots.take(1, false, never)]
  for (const organization of [2, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14])
    await slots.take(organization, false, never)
  const order: number[] = []
  for (const organization of [2, 3, 15, 16])
    void slots.take(organization, false, never).then(() => order.push(organization))
  for (const release of releases) release()
  await new Promise(setImmediate)
  expect(order).toEqual([15, 16])
})

it('a slot is given to the organizations in turn when they hold as many', async () => {
  const slots = new Slots({ healthy: 1 })
  const order: number[] = []
  let release = await slots.take(9, false, never)
  for (const organization of [1, 1, 1, 2, 3])
    void slots.take(organization, false, never).then(give => {
      order.push(organization)
      release = give
    })
  for (let n = 0; n < 5; n += 1) {
    release()
    await new Promise(setImmediate)
  }
  expect(order).toEqual([1, 2, 3, 1, 1])
})

it('no organization holds more than a quarter, and one without a slot waits only while none is free', async () => {
  const step = fc.record({ organization: fc.integer({ min: 1, max: 6 }), gives: fc.boolean() })
  const runs = fc.asyncProperty(
    fc.integer({ min: 1, max: 20 }),
    fc.array(step, { maxLength: 120 }),
    async (max, steps) => {
      const slots = new Slots({ healthy: max })
      const held = new Map<number, (() => void)[]>()
      const waiting = new Map<number, number>()
      for (const { organization, gives } of steps) {
        const own = held.get(organization) ?? []
        held.set(organization, own)
        if (gives) own.pop()?.()
        else {
          waiting.set(organization, (waiting.get(organization) ?? 0) + 1)
          void slots.take(organization, false, never).then(release => {
            waiting.set(organization, waiting.get(organization)! - 1)
            own.push(release)
          })
        }
        await new Promise(setImmediate)
        const counts = [...held.values()].map(({ length }) => length)
        const used = counts.reduce((sum, count) => sum + count, 0)
        expect(used).toBeLessThanOrEqual(max)
        expect(Math.max(...counts)).toBeLessThanOrEqual(Math.max(1, max >> 2))
        for (const [each, count] of waiting) if (count > 0 && held.get(each)!.length === 0) expect(used).toBe(max)
      }
    },
  )
  await fc.assert(runs, { numRuns: 100 })
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
