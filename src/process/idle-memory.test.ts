import { expect, it } from 'vitest'
import { collectWhenIdle } from './idle-memory.ts'

it('collects garbage once when the process becomes idle after it was busy', async () => {
  let utilization = 0
  let collected = 0
  const checkIdle = collectWhenIdle(
    () => utilization,
    () => (collected += 1),
  )
  const collectedAt = async (measured: number) => {
    utilization = measured
    await checkIdle()
    return collected
  }
  expect(await collectedAt(0)).toBe(0)
  expect(await collectedAt(0.9)).toBe(0)
  expect(await collectedAt(0.1)).toBe(0)
  expect(await collectedAt(0.01)).toBe(1)
  expect(await collectedAt(0.01)).toBe(1)
  expect(await collectedAt(0.9)).toBe(1)
  expect(await collectedAt(0.01)).toBe(2)
})
