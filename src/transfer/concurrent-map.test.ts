import { setTimeout, setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { mapConcurrently } from './concurrent-map.ts'

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

test('what comes of each is handed on in order, and never more are worked on than may be', async () => {
  const sizes = fc.record({ count: fc.nat(12), at_once: fc.integer({ min: 1, max: 3 }) })
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), sizes, async (scheduler, { count, at_once: atOnce }) => {
      let working = 0
      const work = async (n: number) => {
        working += 1
        expect(working).toBeLessThanOrEqual(atOnce)
        await scheduler.schedule(Promise.resolve(), `work ${n}`)
        working -= 1
        return n
      }
      const all = collect(mapConcurrently(upTo(count), atOnce, work))
      const handedOn = await scheduler.waitFor(all)
      expect(handedOn).toEqual(Array.from({ length: count }, (_, n) => n))
    }),
    { numRuns: 50 },
  )
})

test('a result is handed on while the next item does not come', async () => {
  const never = Promise.withResolvers<never>()
  async function* one() {
    yield 'first'
    yield await never.promise
  }
  const results = mapConcurrently(one(), 2, async item => `${item} done`)
  expect(await results.next()).toEqual({ done: false, value: 'first done' })
})

test('after a failure nothing is begun, what is under way is handed on, and then it is thrown', async () => {
  const works = [resolvable(), resolvable(), resolvable()]
  const begun: number[] = []
  const results = mapConcurrently(upTo(3), 2, n => {
    begun.push(n)
    return works[n]!.promise
  })
  const first = results.next()
  while (begun.length < 2) await turn()
  works[0]!.reject(new Error('broken'))
  works[1]!.resolve('second')
  expect(await first).toEqual({ done: false, value: 'second' })
  await expect(results.next()).rejects.toThrow('broken')
  expect(begun).toEqual([0, 1])
})

test('a source that fails is told after what came of its items', async () => {
  async function* broken() {
    yield 'item'
    throw new Error('cut off')
  }
  const results = mapConcurrently(broken(), 2, async item => `${item} done`)
  expect(await results.next()).toEqual({ done: false, value: 'item done' })
  await expect(results.next()).rejects.toThrow('cut off')
})

test('a source that fails while something is worked on leaves the event loop to others', async () => {
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
