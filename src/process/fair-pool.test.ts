import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { FairPool, type Release } from './fair-pool.ts'
import { Cancellation } from './signal.ts'

const fill = (pool: FairPool, organization: number): Release[] => {
  const releases: Release[] = []
  for (let release = pool.tryTake(organization); release; release = pool.tryTake(organization)) releases.push(release)
  return releases
}

describe('a pool', () => {
  it('that leaves room gives one organization half, and each further one finds room', () => {
    const pool = new FairPool({ max: 8, leavesRoom: true })
    expect([1, 2, 3].map(organization => fill(pool, organization).length)).toEqual([4, 2, 1])
  })

  it('never gives an organization more than its share', () => {
    const pool = new FairPool({ max: 8, share: organization => organization })
    expect([1, 2, 7].map(organization => fill(pool, organization).length)).toEqual([1, 2, 5])
  })

  it('counts in a part what the whole has, and in the whole what its parts have', () => {
    const pool = new FairPool({ share: 3 })
    const part = pool.part({ max: 4, share: 2 })
    expect([fill(part, 1).length, fill(pool, 1).length]).toEqual([2, 1])
    expect([2, 3].map(organization => fill(part, organization).length)).toEqual([2, 0])
    expect([pool.held, part.held, pool.heldBy(1), part.heldBy(1)]).toEqual([5, 4, 3, 2])
  })

  it('gives an organization that holds nothing more than the limit', () => {
    const pool = new FairPool({ max: 10, leavesRoom: true })
    const release = pool.tryTake(1, 1_000)!
    expect(pool.tryTake(2, 1)).toBeUndefined()
    release()
    expect(pool.tryTake(2, 1)).toBeDefined()
  })

  it('takes a second release for nothing', () => {
    const pool = new FairPool({ max: 2 })
    const [release] = fill(pool, 1)
    release!()
    release!()
    expect(fill(pool, 1)).toHaveLength(1)
  })
})

describe('those who wait', () => {
  /** Lets the organizations wait, and returns them in the order in which the pool serves them. */
  async function serve(pool: FairPool, waiting: number[]): Promise<number[]> {
    const order: number[] = []
    for (const organization of waiting)
      void pool.run(organization, undefined, async () => {
        order.push(organization)
        await setImmediate()
      })
    while (pool.waiting > 0) await setImmediate()
    return order
  }

  it('are served in turn if their organizations hold as much', async () => {
    const pool = new FairPool({ max: 1 })
    const release = pool.tryTake(9)!
    const order = serve(pool, [1, 1, 1, 2, 3])
    release()
    expect(await order).toEqual([1, 2, 3, 1, 1])
  })

  it('are served by what their organizations hold', async () => {
    const pool = new FairPool({ max: 4 })
    for (const organization of [1, 1, 2]) pool.tryTake(organization)
    const release = pool.tryTake(3)!
    const order = serve(pool, [1, 2, 3])
    release()
    expect(await order).toEqual([3, 2, 1])
  })

  it('wait for room in their part, and in the whole', async () => {
    const pool = new FairPool({ share: 2 })
    const part = pool.part({ max: 1 })
    const releasePart = part.tryTake(1)!
    const waiting = part.take(2)
    const [releaseWhole] = fill(pool, 2)
    releasePart()
    expect([part.held, pool.waiting]).toEqual([0, 1])
    releaseWhole!()
    await waiting
    expect([part.held, pool.waiting]).toEqual([1, 0])
  })

  it('leave with the reason of their signal, and what they waited for goes on', async () => {
    const pool = new FairPool({ max: 1 })
    const release = pool.tryTake(1)!
    const signal = new Cancellation()
    const aborted = pool.take(1, signal)
    const next = pool.take(1, new Cancellation())
    signal.abort('late')
    await expect(aborted).rejects.toBe('late')
    await expect(pool.take(2, signal)).rejects.toBe('late')
    release()
    expect(await next).toBeTypeOf('function')
    expect([pool.held, pool.waiting]).toEqual([1, 0])
  })
})

type Step =
  | { organization: number; part: number; weight: number; waits: boolean }
  | { release: number }
  | { abort: number }

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      organization: fc.integer({ min: 1, max: 3 }),
      part: fc.integer({ min: 0, max: 2 }),
      weight: fc.integer({ min: 1, max: 3 }),
      waits: fc.boolean(),
    }),
  },
  { weight: 4, arbitrary: fc.record({ release: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ abort: fc.nat() }) },
)

const limits = fc.oneof(
  fc.record({ max: fc.integer({ min: 1, max: 5 }), leavesRoom: fc.boolean() }),
  fc.record({ max: fc.integer({ min: 1, max: 5 }), share: fc.integer({ min: 1, max: 3 }) }),
  fc.record({ share: fc.integer({ min: 1, max: 3 }) }),
)

type Entry = { pool: FairPool; organization: number; weight: number; number: number }

it('keeps its limits, serves each organization in order, and lets nobody wait who has room, after any steps', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(limits, { minLength: 3, maxLength: 3 }),
      fc.boolean(),
      fc.array(step, { maxLength: 60, size: 'max' }),
      async ([whole, ...parts], isWeighted, steps) => {
        const pool = new FairPool(whole!)
        const pools = [pool, ...parts.map(part => pool.part(part))]
        const limitsOf = new Map(pools.map((each, index) => [each, [whole!, ...parts][index]!]))
        const held: (Entry & { release: Release })[] = []
        const waiting: (Entry & { signal: Cancellation })[] = []
        const served: Entry[] = []
        const weigh = (each: FairPool, entries: readonly Entry[]) =>
          entries.filter(one => each === pool || one.pool === each).reduce((sum, { weight }) => sum + weight, 0)
        const hold = (entry: Entry, release: Release) => {
          served.push(entry)
          held.push({ ...entry, release })
        }
        let number = 0
        for (const one of steps) {
          if ('release' in one) held.splice(one.release % (held.length + 1), 1)[0]?.release()
          else if ('abort' in one) waiting[one.abort % (waiting.length + 1)]?.signal.abort()
          else {
            const { organization } = one
            const entry = {
              pool: pools[one.part]!,
              organization,
              weight: isWeighted ? one.weight : 1,
              number: number++,
            }
            if (one.waits) {
              const signal = new Cancellation()
              const waiter = { ...entry, signal }
              waiting.push(waiter)
              const leave = () => waiting.splice(waiting.indexOf(waiter), 1)
              entry.pool.take(organization, signal, entry.weight).then(release => {
                leave()
                hold(entry, release)
              }, leave)
            } else {
              const release = entry.pool.tryTake(organization, entry.weight)
              if (release) hold(entry, release)
            }
          }
          await setImmediate()
          expect(pool.waiting).toBe(waiting.length)
          for (const each of pools) {
            const { max = Infinity, share = Infinity }: { max?: number; share?: number } = limitsOf.get(each)!
            const excess = isWeighted ? 2 : 0
            expect(each.held).toBe(weigh(each, held))
            expect(each.held).toBeLessThanOrEqual(max + excess)
            for (const organization of [1, 2, 3]) {
              const own = held.filter(entry => entry.organization === organization)
              expect(each.heldBy(organization)).toBe(weigh(each, own))
              expect(each.heldBy(organization)).toBeLessThanOrEqual(share + excess)
            }
          }
          for (const waiter of waiting) expect(waiter.pool.hasRoom(waiter.organization)).toBe(false)
        }
        for (const each of pools)
          for (const organization of [1, 2, 3]) {
            const numbers = served
              .filter(entry => entry.pool === each && entry.organization === organization)
              .map(entry => entry.number)
            expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
          }
        while (held.length > 0) {
          held.pop()!.release()
          await setImmediate()
        }
        expect([pool.held, pool.waiting, waiting.length]).toEqual([0, 0, 0])
      },
    ),
    { numRuns: 200 },
  )
})
