import { expect, it } from 'vitest'
import { utilizationSinceLastCall, yieldIfDue } from './event-loop.ts'

it('measures a process that computes as busy', () => {
  const measure = utilizationSinceLastCall()
  for (const end = performance.now() + 50; performance.now() < end; );
  expect(measure()).toBeGreaterThan(0.9)
})

it('lets an event through between two pieces of long work', async () => {
  let isThrough = false
  setTimeout(() => (isThrough = true))
  // The timer fires only between turns of the event loop. Without a turn, this loop would never end.
  while (!isThrough) await yieldIfDue()
})

it('resumes long work in the order in which it began to wait', async () => {
  const resumed: string[] = []
  const work = async (name: string) => {
    for (let piece = 0; piece < 3; piece += 1) {
      let due = yieldIfDue()
      while (!due) due = yieldIfDue()
      await due
      resumed.push(name)
    }
  }
  await Promise.all([work('one'), work('other')])
  expect(resumed).toEqual(['one', 'other', 'one', 'other', 'one', 'other'])
})
