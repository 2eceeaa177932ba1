import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Cancellation } from '../signal.ts'
import { type Lane, Shares } from './shares.ts'

const lanes: Lane[] = ['reads', 'pages', 'writes']

/** Takes places, and keeps count of who holds one and who waits. */
function bookOf(connections: number) {
  const shares = new Shares({ connections, pagePatienceMs: 60_000, refused: () => {} })
  const held: { organization: number; lane: Lane; leave: () => void }[] = []
  const waiting: { organization: number; lane: Lane; signal: Cancellation; rejected: Promise<unknown> }[] = []
  return {
    shares,
    held,
    waiting,
    enter: (organization: number, lane: Lane) => {
      const place = shares.of(organization, lane)
      const signal = new Cancellation()
      const entering = place.enter(signal)
      const hold = { organization, lane, leave: place.leave }
      if (!entering) return held.push(hold)
      const rejected = Promise.withResolvers<unknown>()
      const entry = { organization, lane, signal, rejected: rejected.promise }
      waiting.push(entry)
      entering.then(
        () => {
          waiting.splice(waiting.indexOf(entry), 1)
          held.push(hold)
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

type Book = ReturnType<typeof bookOf>
const fill = ({ enter }: Book, organization: number, lane: Lane) => {
  for (let count = 0; count < 24; count += 1) enter(organization, lane)
}
const promised = () => new Promise(setImmediate)

describe('an organization that wants more connections than there are', () => {
  it.each([
    [8, { pages: 4, writes: 4, all: 6 }],
    [5, { pages: 2, writes: 2, all: 4 }],
    [4, { pages: 2, writes: 2, all: 3 }],
    [2, { pages: 1, writes: 1, all: 1 }],
    [1, { pages: 1, writes: 1, all: 1 }],
  ])('of %i gets %o of them', (connections, { pages, writes, all }) => {
    for (const [lane, most] of [
      ['pages', pages],
      ['writes', writes],
      ['reads', all],
    ] as const) {
      const book = bookOf(connections)
      fill(book, 1, lane)
      expect(book.held).toHaveLength(most)
    }
    const book = bookOf(connections)
    for (const lane of lanes) fill(book, 1, lane)
    expect(book.held).toHaveLength(all)
  })

  it('leaves its own reads and writes room beside its slow pages', () => {
    const book = bookOf(8)
    fill(book, 1, 'pages')
    book.enter(1, 'reads')
    book.enter(1, 'writes')
    expect([book.countOf(1, 'reads'), book.countOf(1, 'writes')]).toEqual([1, 1])
  })
})

describe('several organizations that want more than there are', () => {
  it('leave a quarter that no page takes', () => {
    const book = bookOf(8)
    for (const organization of [1, 2, 3]) fill(book, organization, 'pages')
    expect(book.held).toHaveLength(6)
    book.enter(4, 'reads')
    book.enter(5, 'writes')
    expect(book.held).toHaveLength(8)
  })

  it('get what comes free in turn, the one that has the least first', async () => {
    const book = bookOf(8)
    for (const organization of [1, 2, 3]) fill(book, organization, 'pages')
    expect([1, 2, 3].map(one => book.countOf(one))).toEqual([4, 2, 0])
    for (let count = 0; count < 2; count += 1) {
      book.leave(book.held.findIndex(({ organization }) => organization === 1))
      await promised()
    }
    expect([1, 2, 3].map(one => book.countOf(one))).toEqual([2, 2, 2])
  })
})

it('a page that waits too long is refused, and says when to come again', async () => {
  let refused = 0
  const shares = new Shares({ connections: 1, pagePatienceMs: 1, refused: () => (refused += 1) })
  const place = shares.of(1, 'pages')
  place.enter(undefined)
  await expect(place.enter(undefined)).rejects.toMatchObject({
    refusal: { status: 503, headers: { 'Retry-After': '1' } },
  })
  expect([refused, shares.waiting]).toEqual([1, 0])
  place.leave()
  expect(place.enter(undefined)).toBeUndefined()
})

it('one that gives up while it waits rejects with its reason and takes nothing', async () => {
  const book = bookOf(1)
  book.enter(1, 'writes')
  book.enter(1, 'writes')
  const [{ signal, rejected }] = book.waiting as [Book['waiting'][number]]
  signal.abort('too late')
  expect(await rejected).toBe('too late')
  book.leave(0)
  expect(book.shares.waiting).toBe(0)
  book.enter(2, 'writes')
  expect(book.held).toHaveLength(1)
  const aborted = new Cancellation()
  aborted.abort('before')
  await expect(book.shares.of(2, 'writes').enter(aborted)).rejects.toBe('before')
})

it('whatever comes and goes, no share is exceeded, and nobody waits who may go', async () => {
  const step = fc.oneof(
    { weight: 3, arbitrary: fc.record({ enter: fc.constantFrom(1, 2, 3), lane: fc.constantFrom(...lanes) }) },
    { weight: 2, arbitrary: fc.record({ leave: fc.nat(30) }) },
    { weight: 1, arbitrary: fc.record({ abort: fc.nat(30) }) },
  )
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 12 }), fc.array(step, { maxLength: 60 }), async (connections, steps) => {
      const book = bookOf(connections)
      const half = Math.max(1, Math.floor(connections / 2))
      const all = connections - (connections === 1 ? 0 : Math.max(1, Math.floor(connections / 4)))
      const mayGo = (organization: number, lane: Lane) =>
        book.countOf(organization) < all &&
        (lane === 'reads' || book.countOf(organization, lane) < half) &&
        (lane !== 'pages' || book.held.filter(one => one.lane === 'pages').length < all)
      for (const one of steps) {
        if ('enter' in one) book.enter(one.enter, one.lane)
        else if ('leave' in one) book.leave(one.leave % Math.max(1, book.held.length))
        else book.waiting[one.abort % Math.max(1, book.waiting.length)]?.signal.abort()
        await promised()
        expect(book.shares.waiting).toBe(book.waiting.length)
        for (const organization of [1, 2, 3]) {
          expect(book.countOf(organization)).toBeLessThanOrEqual(all)
          for (const lane of ['pages', 'writes'] as const)
            expect(book.countOf(organization, lane)).toBeLessThanOrEqual(half)
        }
        for (const { organization, lane } of book.waiting) expect(mayGo(organization, lane)).toBe(false)
      }
      while (book.held.length > 0) {
        book.leave(0)
        await promised()
      }
      expect(book.waiting).toEqual([])
    }),
    { numRuns: 200 },
  )
})
