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

it('waits for the pause between two runs', async () => {
  vi.useFakeTimers()
  let runs = 0
  const call = singleFlight(
    async () => {
      runs += 1
    },
    { minMs: 50, runs: 8 },
  )
  await call()
  const second = call()
  await vi.advanceTimersByTimeAsync(49)
  expect(runs).toBe(1)
  await vi.advanceTimersByTimeAsync(1)
  await second
  expect(runs).toBe(2)
})
