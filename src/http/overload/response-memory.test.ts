import { expect, it } from 'vitest'
import { Cancellation } from '../../signal.ts'
import { createResponseMemory } from './response-memory.ts'

const [ada, bob] = [1, 2]

/** Whether a promise has settled after one event-loop turn. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false
  const settle = () => {
    settled = true
  }
  promise.then(settle, settle)
  await new Promise(setImmediate)
  return settled
}

it('gives one organization half and leaves the other half to others', () => {
  const memory = createResponseMemory(8)
  const taken = Array.from({ length: 8 }, () => memory.take(ada, 1))
  expect(taken.filter(Boolean)).toHaveLength(4)
  expect(memory.take(bob, 1)).toBeDefined()
})

it('counts memory that is given back twice only once', () => {
  const memory = createResponseMemory(2)
  const release = memory.take(ada, 1)!
  release()
  release()
  expect(memory.take(ada, 1)).toBeDefined()
  expect(memory.take(ada, 1)).toBeUndefined()
})

it('gives an organization that holds nothing more than the limit', () => {
  expect(createResponseMemory(1).take(ada, 1_000)).toBeDefined()
})

it('serves waiting requests in order of arrival and skips an organization without room', async () => {
  const memory = createResponseMemory(2)
  const signal = new Cancellation()
  const release = await memory.wait(ada, 1, signal)
  const second = memory.wait(ada, 1, signal)
  const third = memory.wait(ada, 1, signal)
  await memory.wait(bob, 1, signal)
  expect([await isSettled(second), await isSettled(third)]).toEqual([false, false])
  release()
  // Bob holds the other half.
  expect(await isSettled(second)).toBe(true)
  expect(await isSettled(third)).toBe(false)
})

it('stops waiting when the signal aborts, and takes nothing', async () => {
  const memory = createResponseMemory(2)
  const signal = new Cancellation()
  const release = memory.take(ada, 1)!
  const waiting = memory.wait(ada, 1, signal)
  signal.abort(new Error('late'))
  await expect(waiting).rejects.toThrow('late')
  release()
  expect(memory.take(ada, 1)).toBeDefined()
})
