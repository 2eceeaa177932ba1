import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { byTurns } from './by-turns.ts'

it('whoever waits comes in order, and in each turn of the event loop a few of them, or a quarter', async () => {
  const arrivals = fc.array(fc.integer({ min: 0, max: 50 }), { maxLength: 20 })
  await fc.assert(
    fc.asyncProperty(arrivals, fc.integer({ min: 1, max: 8 }), async (turns, least) => {
      const taken: number[] = []
      const join = byTurns<number>(least, waiting => taken.push(waiting))
      let arrived = 0
      for (let turn = 0; turn < turns.length || taken.length < arrived; turn += 1) {
        for (let more = turns[turn] ?? 0; more > 0; more -= 1) join(arrived++)
        const [before, waiting] = [taken.length, arrived - taken.length]
        await setImmediate()
        expect(taken.length - before).toBe(Math.min(waiting, Math.floor(Math.max(least, waiting / 4))))
      }
      expect(taken).toEqual(Array.from({ length: arrived }, (_, index) => index))
    }),
  )
})
