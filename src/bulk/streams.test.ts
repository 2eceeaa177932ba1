import { setTimeout, setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { mapConcurrently } from './streams.ts'

async function* upTo(count: number) {
  for (let n = 0; n < count; n += 1) {
    await turn()
    yield n
  }
}

async function collect<T>(results: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const result of results) all.push(result)
  return all
}

const resolvable = () => Promise.withResolvers<string>()

it('yields results in order, and never exceeds the concurrency limit', async () => {
  const sizes = fc.record({ count: fc.nat(12), maxConcurrent: fc.integer({ min: 1, max: 3 }) })
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), sizes, async (scheduler, { count, maxConcurrent }) => {
      let working = 0
      const work = async (n: number) => {
        working += 1
        expect(working).toBeLessThanOrEqual(maxConcurrent)
        await scheduler.schedule(Promise.resolve(), `work ${n}`)
        working -= 1
        return n
      }
      const all = collect(mapConcurrently(upTo(count), maxConcurrent, work))
      const yielded = await scheduler.waitFor(all)
      expect(yielded).toEqual(Array.from({ length: count }, (_, n) => n))
    }),
    { numRuns: 50 },
  )
})

it('yields a result while the next item has not arrived', async () => {
  const never = Promise.withResolvers<never>()
  async function* one() {
    yield 'first'
    yield await never.promise
  }
  const results = mapConcurrently(one(), 2, async item => `${item} done`)
  expect(await results.next()).toEqual({ done: false, value: 'first done' })
})

it('starts no further item after a failure, yields the results in progress, and then throws', async () => {
  const works = [resolvable(), resolvable(), resolvable()]
  const started: number[] = []
  const results = mapConcurrently(upTo(3), 2, n => {
    started.push(n)
    return works[n]!.promise
  })
  const first = results.next()
  while (started.length < 2) await turn()
  works[0]!.reject(new Error('broken'))
  works[1]!.resolve('second')
  expect(await first).toEqual({ done: false, value: 'second' })
  await expect(results.next()).rejects.toThrow('broken')
  expect(started).toEqual([0, 1])
})

it('throws an error of the source after the results of its items', async () => {
  async function* broken() {
    yield 'item'
    throw new Error('cut off')
  }
  const results = mapConcurrently(broken(), 2, async item => `${item} done`)
  expect(await results.next()).toEqual({ done: false, value: 'item done' })
  await expect(results.next()).rejects.toThrow('cut off')
})

it('does not block the event loop when the source fails while an item is in progress', async () => {
  async function* broken() {
    yield 'item'
    await setTimeout(1)
    throw new Error('cut off')
  }
  const others = Promise.withResolvers<string>()
  setTimeout(5).then(() => others.resolve('item done'))
  const results = mapConcurrently(broken(), 2, () => others.promise)
  expect(await results.next()).toEqual({ done: false, value: 'item done' })
  await expect(results.next()).rejects.toThrow('cut off')
})
