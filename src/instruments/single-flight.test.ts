import { afterEach, expect, it, vi } from 'vitest'
import { singleFlight } from './single-flight.ts'

afterEach(() => void vi.useRealTimers())

it('shares a run, or its failure, between calls until it ends; the next call starts another', async () => {
  let runs = 0
  let end = Promise.withResolvers<void>()
  const call = singleFlight(async () => {
    runs += 1
    const run = runs
    await end.promise
    if (run === 2) throw new Error('the second fails')
    return run
  })
  const first = [call(), call()]
  await expect.poll(() => runs).toBe(1)
  first.push(call())
  end.resolve()
  expect(await Promise.all(first)).toEqual([1, 1, 1])
  end = Promise.withResolvers()
  const second = [call(), call()]
  end.resolve()
  expect((await Promise.allSettled(second)).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect(await call()).toBe(3)
})

it.each([
  ['the pause', 0, 50],
  ['eight times as long as a run of 20 ms took', 20, 160],
])('begins a run after the one before by %s', async (_, runMs, pauseMs) => {
  vi.useFakeTimers({ toFake: ['performance'] })
  const work = async () => void vi.advanceTimersByTime(runMs)
  const waits: number[] = []
  const call = singleFlight(work, { minMs: 50, runs: 8 }, async ms => waits.push(ms))
  await call()
  await call()
  expect(waits).toEqual([0, pauseMs - runMs])
})
