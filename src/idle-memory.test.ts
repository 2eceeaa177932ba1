import { setTimeout } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { collectWhenIdle } from './idle-memory.ts'

function work(ms: number) {
  for (const end = performance.now() + ms; performance.now() < end; );
}

it('collects garbage once when the process becomes idle after it was busy', async () => {
  let collected = 0
  const checkIdle = collectWhenIdle(() => (collected += 1))
  work(50)
  await checkIdle()
  expect(collected).toBe(0)
  const checkLater = async () => {
    await checkIdle()
    return collected
  }
  // The tests that ran before in this process may leave timers, so the process is not idle in every interval.
  await expect.poll(checkLater, { interval: 200 }).toBe(1)
  await setTimeout(200)
  expect(await checkLater()).toBe(1)
})
