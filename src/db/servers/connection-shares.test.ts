import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Release } from '../../process/fair-pool.ts'
import { Cancellation } from '../../process/signal.ts'
import { ConnectionShares, type Lane } from './connection-shares.ts'

const lanes: Lane[] = ['reads', 'pages', 'writes']

type Pages = { count: number; heldMs: number }

/** Shares with a clock, and a function that takes and releases a connection for each page. */
function createShares(connections: number) {
  let nowMs = 0
  const shares = new ConnectionShares({ connections, pagePatienceMs: 60_000, onRefused: () => {}, nowMs: () => nowMs })
  const readPages = (organization: number, { count, heldMs }: Pages) => {
    for (let page = 0; page < count; page += 1) {
      const release = shares.take(organization, 'pages', undefined) as Release
      nowMs += heldMs
      release()
    }
  }
  return { shares, readPages }
}

/** Takes connections, and tracks the holders and the waiters. All organizations are known for fast pages. */
function createLedger(connections: number) {
  const { shares, readPages } = createShares(connections)
  // A separate test covers organizations with slow pages.
  for (let organization = 1; organization <= 5; organization += 1) readPages(organization, { count: 4, heldMs: 200 })
  const held: { organization: number; lane: Lane; leave: () => void }[] = []
  const waiting: { organization: number; lane: Lane; signal: Cancellation; rejected: Promise<unknown> }[] = []
  return {
    shares,
    held,
    waiting,
    enter: (organization: number, lane: Lane) => {
      const signal = new Cancellation()
      const taking = shares.take(organization, lane, signal)
      if (!(taking instanceof Promise)) return held.push({ organization, lane, leave: taking })
      const rejected = Promise.withResolvers<unknown>()
      const entry = { organization, lane, signal, rejected: rejected.promise }
      waiting.push(entry)
      taking.then(
        leave => {
          waiting.splice(waiting.indexOf(entry), 1)
          held.push({ organization, lane, leave })
        },
        reason => {
          waiting.splice(waiting.indexOf(entry), 1)
          rejected.resolve(reason)
        },
      )
    },
    leave: (index: number) => held.splice(index, 1)[0]?.leave(),
    countOf: (organization: number, lane?: Lane) =>
      held.filter(one => one.organization === organization && (lane === undefined || one.lane === lane)).length,
  }
}

type Ledger = ReturnType<typeof createLedger>
const fill = ({ enter }: Ledger, organization: number, lane: Lane) => {
  for (let count = 0; count < 24; count += 1) enter(organization, lane)
}
const settlePromises = () => new Promise(setImmediate)

describe('an organization that needs more connections than the pool has', () => {
  it.each([
    [8, { pages: 4, writes: 4, all: 6 }],
    [5, { pages: 2, writes: 2, all: 4 }],
    [4, { pages: 2, writes: 2, all: 3 }],
    [2, { pages: 1, writes: 1, all: 1 }],
    [1, { pages: 1, writes: 1, all: 1 }],
  ])('out of %i gets at most %o', (connections, { pages, writes, all }) => {
    for (const [lane, max] of [
      ['pages', pages],
      ['writes', writes],
      ['reads', all],
    ] as const) {
      const ledger = createLedger(connections)
      fill(ledger, 1, lane)
      expect(ledger.held).toHaveLength(max)
    }
    const ledger = createLedger(connections)
    for (const lane of lanes) fill(ledger, 1, lane)
    expect(ledger.held).toHaveLength(all)
  })

  it('keeps room for its reads and writes beside its slow pages', () => {
    const ledger = createLedger(8)
    fill(ledger, 1, 'pages')
    ledger.enter(1, 'reads')
    ledger.enter(1, 'writes')
    expect([ledger.countOf(1, 'reads'), ledger.countOf(1, 'writes')]).toEqual([1, 1])
  })
})

describe('an organization with slow pages', () => {
  const countAdmitted = (shares: ConnectionShares) => {
    const signal = new Cancellation()
    let admitted = 0
    for (let count = 0; count < 24; count += 1) {
      const taking = shares.take(1, 'pages', signal)
      if (taking instanceof Promise) taking.catch(() => {})
      else admitted += 1
    }
    signal.abort('counted')
    return admitted
  }
  const slow = { count: 1, heldMs: 10_000 }
  const fast = (count: number) => ({ count, heldMs: 5 })

  it.each([
    ['before its first page', [], 1],
    ['after one fast page', [fast(1)], 1],
    ['after a short statement before each of its filters', [{ count: 24, heldMs: 3 }], 1],
    ['after half a second of fast pages', [fast(100)], 4],
    ['after a slow page among fast ones', [fast(100), slow], 1],
    ['after a slow page and a second of fast ones', [slow, fast(200)], 1],
    ['after a slow page and two seconds of fast ones', [slow, fast(400)], 4],
  ])('%s gets this many of eight connections for its pages', (_, pages, connections) => {
    const { shares, readPages } = createShares(8)
    for (const read of pages) readPages(1, read)
    expect(countAdmitted(shares)).toBe(connections)
  })

  it('gets an eighth of many connections', () => {
    const { shares, readPages } = createShares(64)
    readPages(1, slow)
    expect(countAdmitted(shares)).toBe(8)
  })
})

describe('several organizations that need more connections than the pool has', () => {
  it('leave a quarter of the connections free of pages', () => {
    const ledger = createLedger(8)
    for (const organization of [1, 2, 3]) fill(ledger, organization, 'pages')
    expect(ledger.held).toHaveLength(6)
    ledger.enter(4, 'reads')
    ledger.enter(5, 'writes')
    expect(ledger.held).toHaveLength(8)
  })

  it('get free connections in turn, the organization with the fewest first', async () => {
    const ledger = createLedger(8)
    for (const organization of [1, 2, 3]) fill(ledger, organization, 'pages')
    expect([1, 2, 3].map(one => ledger.countOf(one))).toEqual([4, 2, 0])
    for (let count = 0; count < 2; count += 1) {
      ledger.leave(ledger.held.findIndex(({ organization }) => organization === 1))
      await settlePromises()
    }
    expect([1, 2, 3].map(one => ledger.countOf(one))).toEqual([2, 2, 2])
  })
})

it('refuses a page that waits too long, with Retry-After', async () => {
  let refused = 0
  const shares = new ConnectionShares({ connections: 1, pagePatienceMs: 1, onRefused: () => (refused += 1) })
  const release = shares.take(1, 'pages', undefined) as Release
  await expect(shares.take(1, 'pages', undefined)).rejects.toMatchObject({
    refusal: { status: 503, headers: { 'Retry-After': '1' } },
  })
  expect([refused, shares.waiting]).toEqual([1, 0])
  release()
  expect(shares.take(1, 'pages', undefined)).toBeTypeOf('function')
})

it('rejects an aborted waiter with its reason, and gives it no slot', async () => {
  const ledger = createLedger(1)
  ledger.enter(1, 'writes')
  ledger.enter(1, 'writes')
  const [{ signal, rejected }] = ledger.waiting as [Ledger['waiting'][number]]
  signal.abort('too late')
  expect(await rejected).toBe('too late')
  ledger.leave(0)
  expect(ledger.shares.waiting).toBe(0)
  ledger.enter(2, 'writes')
  expect(ledger.held).toHaveLength(1)
  const aborted = new Cancellation()
  aborted.abort('before')
  await expect(ledger.shares.take(2, 'writes', aborted)).rejects.toBe('before')
})

it('never exceeds a share, and never lets work wait that has room, under random arrivals', async () => {
  const step = fc.oneof(
    { weight: 3, arbitrary: fc.record({ enter: fc.constantFrom(1, 2, 3), lane: fc.constantFrom(...lanes) }) },
    { weight: 2, arbitrary: fc.record({ leave: fc.nat(30) }) },
    { weight: 1, arbitrary: fc.record({ abort: fc.nat(30) }) },
  )
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 12 }), fc.array(step, { maxLength: 60 }), async (connections, steps) => {
      const ledger = createLedger(connections)
      const half = Math.max(1, Math.floor(connections / 2))
      const all = connections - (connections === 1 ? 0 : Math.max(1, Math.floor(connections / 4)))
      const hasRoom = (organization: number, lane: Lane) =>
        ledger.countOf(organization) < all &&
        (lane === 'reads' || ledger.countOf(organization, lane) < half) &&
        (lane !== 'pages' || ledger.held.filter(one => one.lane === 'pages').length < all)
      for (const one of steps) {
        if ('enter' in one) ledger.enter(one.enter, one.lane)
        else if ('leave' in one) ledger.leave(one.leave % Math.max(1, ledger.held.length))
        else ledger.waiting[one.abort % Math.max(1, ledger.waiting.length)]?.signal.abort()
        await settlePromises()
        expect(ledger.shares.waiting).toBe(ledger.waiting.length)
        for (const organization of [1, 2, 3]) {
          expect(ledger.countOf(organization)).toBeLessThanOrEqual(all)
          for (const lane of ['pages', 'writes'] as const)
            expect(ledger.countOf(organization, lane)).toBeLessThanOrEqual(half)
        }
        for (const { organization, lane } of ledger.waiting) expect(hasRoom(organization, lane)).toBe(false)
      }
      while (ledger.held.length > 0) {
        ledger.leave(0)
        await settlePromises()
      }
      expect(ledger.waiting).toEqual([])
    }),
    { numRuns: 200 },
  )
})
