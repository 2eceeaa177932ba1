import { expect, it } from 'vitest'
import { utilizationSinceLastCall } from './event-loop.ts'

it('measures a process that computes as busy', () => {
  const measure = utilizationSinceLastCall()
  for (const end = performance.now() + 50; performance.now() < end; );
  expect(measure()).toBeGreaterThan(0.9)
})
