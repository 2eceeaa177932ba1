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
  for (const _ of [1, 2, 3]) {
    await setTimeout(200)
    await checkIdle()
  }
  expect(collected).toBe(1)
})
