import { expect, it } from 'vitest'
import { singleFlight } from './single-flight.ts'

it('calls that come before a run has ended share it, and its failure; the next call begins another', async () => {
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

it('a run begins no sooner after the one before than it is told', async () => {
  const begun: number[] = []
  const call = singleFlight(async () => void begun.push(performance.now()), 50)
  for (let time = 0; time < 3; time += 1) await call()
  // Timers count whole milliseconds.
  for (const [index, at_ms] of begun.entries()) if (index > 0) expect(at_ms - begun[index - 1]!).toBeGreaterThan(48)
})
