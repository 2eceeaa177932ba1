import { setTimeout } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { collectWhenIdle } from './idle-memory.ts'

function work(ms: number) {
  for (const end = performance.now() + ms; performance.now() < end; );
}

it('collects once when the process has come to rest after it was busy', async () => {
  let collected = 0
  const look = collectWhenIdle(() => (collected += 1))
  work(50)
  await look()
  expect(collected).toBe(0)
  for (const _ of [1, 2, 3]) {
    await setTimeout(200)
    await look()
  }
  expect(collected).toBe(1)
})
