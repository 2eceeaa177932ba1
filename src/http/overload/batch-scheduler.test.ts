import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { batchScheduler } from './batch-scheduler.ts'

it('whoever waits comes in order, and in each turn of the event loop a few of them, or an eighth', async () => {
  const arrivals = fc.array(fc.integer({ min: 0, max: 50 }), { maxLength: 20 })
  await fc.assert(
    fc.asyncProperty(arrivals, fc.integer({ min: 1, max: 8 }), async (turns, least) => {
      const taken: number[] = []
      const join = batchScheduler<number>(least, waiting => taken.push(waiting))
      let arrived = 0
      for (let turn = 0; turn < turns.length || taken.length < arrived; turn += 1) {
        for (let more = turns[turn] ?? 0; more > 0; more -= 1) join(arrived++)
        const [before, waiting] = [taken.length, arrived - taken.length]
        await setImmediate()
        expect(taken.length - before).toBe(Math.min(waiting, Math.max(least, Math.floor(waiting / 8))))
      }
      expect(taken).toEqual(Array.from({ length: arrived }, (_, index) => index))
    }),
  )
})

it('where one throws, those who came with it and those who wait have their turn all the same', async () => {
  const thrown: unknown[] = []
  const catchOne = (error: unknown) => thrown.push(error)
  const listeners = process.listeners('uncaughtException')
  process.removeAllListeners('uncaughtException')
  process.on('uncaughtException', catchOne)
  const taken: number[] = []
  const join = batchScheduler<number>(2, waiting => {
    taken.push(waiting)
    if (waiting === 1) throw new Error('the turn of 1')
  })
  for (const waiting of [0, 1, 2, 3]) join(waiting)
  try {
    while (taken.length < 4) await setImmediate()
  } finally {
    process.off('uncaughtException', catchOne)
    for (const listener of listeners) process.on('uncaughtException', listener)
  }
  expect(taken).toEqual([0, 1, 2, 3])
  expect(thrown).toEqual([new Error('the turn of 1')])
})
