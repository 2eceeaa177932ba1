import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createBatchScheduler } from './load-shedder.ts'

it('runs items in order, in each event-loop turn a few of them or an eighth', async () => {
  const arrivals = fc.array(fc.integer({ min: 0, max: 50 }), { maxLength: 20 })
  await fc.assert(
    fc.asyncProperty(arrivals, fc.integer({ min: 1, max: 8 }), async (turns, minPerTurn) => {
      const done: number[] = []
      const schedule = createBatchScheduler<number>(minPerTurn, item => done.push(item))
      let arrived = 0
      for (let turn = 0; turn < turns.length || done.length < arrived; turn += 1) {
        for (let more = turns[turn] ?? 0; more > 0; more -= 1) schedule(arrived++)
        const [before, waiting] = [done.length, arrived - done.length]
        await setImmediate()
        expect(done.length - before).toBe(Math.min(waiting, Math.max(minPerTurn, Math.floor(waiting / 8))))
      }
      expect(done).toEqual(Array.from({ length: arrived }, (_, index) => index))
    }),
  )
})

it('runs the other items of the batch and of the queue if one item throws', async () => {
  const thrown: unknown[] = []
  const catchOne = (error: unknown) => thrown.push(error)
  const listeners = process.listeners('uncaughtException')
  process.removeAllListeners('uncaughtException')
  process.on('uncaughtException', catchOne)
  const done: number[] = []
  const schedule = createBatchScheduler<number>(2, item => {
    done.push(item)
    if (item === 1) throw new Error('the turn of 1')
  })
  for (const item of [0, 1, 2, 3]) schedule(item)
  try {
    while (done.length < 4) await setImmediate()
  } finally {
    process.off('uncaughtException', catchOne)
    for (const listener of listeners) process.on('uncaughtException', listener)
  }
  expect(done).toEqual([0, 1, 2, 3])
  expect(thrown).toEqual([new Error('the turn of 1')])
})
