import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { byTurns } from './by-turns.ts'

const arrivals = fc.array(fc.integer({ min: 0, max: 50 }), { maxLength: 20 })

it('in a turn so many pass; the others are held, and go on in order, a few in each turn or an eighth', async () => {
  await fc.assert(
    fc.asyncProperty(arrivals, fc.integer({ min: 1, max: 8 }), async (turns, most) => {
      const held: number[] = []
      const passed: number[] = []
      const gone: number[] = []
      const join = byTurns<number>(most, {
        end: (comer, is_held) => (is_held ? held : passed).push(comer),
        letGo: comer => gone.push(comer),
      })
      let arrived = 0
      for (let turn = 0; turn < turns.length || gone.length < held.length; turn += 1) {
        const came = turns[turn] ?? 0
        for (let more = came; more > 0; more -= 1) join(arrived++)
        const waiting = held.length - gone.length
        const before = { passed: passed.length, held: held.length, gone: gone.length }
        await setImmediate()
        expect(passed.length - before.passed).toBe(Math.min(came, most))
        expect(held.length - before.held).toBe(Math.max(0, came - most))
        expect(gone.length - before.gone).toBe(Math.min(waiting, Math.max(most, Math.floor(waiting / 8))))
      }
      expect(gone).toEqual(held)
      expect([...passed, ...held].sort((a, b) => a - b)).toEqual(Array.from({ length: arrived }, (_, index) => index))
    }),
  )
})

it('where one throws, those who came with it and those who wait have their turn all the same', async () => {
  const thrown: unknown[] = []
  const catchOne = (error: unknown) => thrown.push(error)
  const listeners = process.listeners('uncaughtException')
  process.removeAllListeners('uncaughtException')
  process.on('uncaughtException', catchOne)
  const [ended, gone]: number[][] = [[], []]
  const join = byTurns<number>(1, {
    end: comer => {
      ended!.push(comer)
      if (comer === 1) throw new Error('the end of 1')
    },
    letGo: comer => {
      gone!.push(comer)
      if (comer === 1) throw new Error('going on of 1')
    },
  })
  for (const comer of [0, 1, 2, 3]) join(comer)
  try {
    while (ended!.length < 4 || gone!.length < 2) await setImmediate()
  } finally {
    process.off('uncaughtException', catchOne)
    for (const listener of listeners) process.on('uncaughtException', listener)
  }
  expect(ended).toEqual([0, 1, 2, 3])
  expect(gone![0]).toBe(1)
  expect(thrown).toEqual([new Error('the end of 1'), new Error('going on of 1')])
})
