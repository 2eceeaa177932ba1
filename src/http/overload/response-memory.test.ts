import { expect, test } from 'vitest'
import { Cancellation } from '../../signal.ts'
import { createResponseMemory } from './response-memory.ts'

const [ada, bob] = [1, 2]

/** Whether a promise has settled by now. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false
  const settle = () => {
    settled = true
  }
  promise.then(settle, settle)
  await new Promise(setImmediate)
  return settled
}

test('an organization takes half, and leaves the other half to others', () => {
  const memory = createResponseMemory(8)
  const taken = Array.from({ length: 8 }, () => memory.take(ada, 1))
  expect(taken.filter(Boolean)).toHaveLength(4)
  expect(memory.take(bob, 1)).toBeDefined()
})

test('what is given back twice counts once', () => {
  const memory = createResponseMemory(2)
  const release = memory.take(ada, 1)!
  release()
  release()
  expect(memory.take(ada, 1)).toBeDefined()
  expect(memory.take(ada, 1)).toBeUndefined()
})

test('more than there is may be taken by an organization that holds nothing', () => {
  expect(createResponseMemory(1).take(ada, 1_000)).toBeDefined()
})

test('waiting ends in order of arrival, past those of an organization without room', async () => {
  const memory = createResponseMemory(2)
  const signal = new Cancellation()
  const release = await memory.wait(ada, 1, signal)
  const second = memory.wait(ada, 1, signal)
  const third = memory.wait(ada, 1, signal)
  await memory.wait(bob, 1, signal)
  expect([await isSettled(second), await isSettled(third)]).toEqual([false, false])
  release()
  // Bob holds the half that was left.
  expect(await isSettled(second)).toBe(true)
  expect(await isSettled(third)).toBe(false)
})

test('waiting ends with the signal, and takes nothing then', async () => {
  const memory = createResponseMemory(2)
  const signal = new Cancellation()
  const release = memory.take(ada, 1)!
  const late = memory.wait(ada, 1, signal)
  signal.abort(new Error('late'))
  await expect(late).rejects.toThrow('late')
  release()
  expect(memory.take(ada, 1)).toBeDefined()
})
