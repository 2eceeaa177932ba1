import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isIncluded } from '../../client/src/ledger-proof.ts'
import { isConsistent } from '../../test/support/merkle-trees.ts'
import {
  consistencyRanges,
  type FullTile,
  fullTiles,
  GrowingTree,
  hashBytes,
  inclusionRanges,
  keyOfTile,
  rangeHash,
  tilesOf,
  writeLeafHash,
} from './tree.ts'

// The definitions of RFC 6962, 2.1, on all leaves in memory.
const sha256 = (...parts: Buffer[]) => createHash('sha256').update(Buffer.concat(parts)).digest()
const leafOf = (data: Buffer) => sha256(Buffer.of(0), data)

/** Roots of ranges of the leaves, each computed once. */
function createReference(leaves: Buffer[]) {
  const known = new Map<string, Buffer>()
  const split = (count: number) => 2 ** Math.ceil(Math.log2(count) - 1)
  const rootOf = (from: number, to: number): Buffer => {
    if (from === to) return sha256()
    if (to - from === 1) return leafOf(leaves[from]!)
    const key = `${from} ${to}`
    const middle = from + split(to - from)
    const root = known.get(key) ?? sha256(Buffer.of(1), rootOf(from, middle), rootOf(middle, to))
    known.set(key, root)
    return root
  }
  return rootOf
}

const dataOf = (index: number) => sha256(Buffer.from(`leaf ${index}`))
const maxSize = 70_000
const allLeaves = Array.from({ length: maxSize }, (_, index) => dataOf(index))
const rootOf = createReference(allLeaves)

function leafHashOf(data: Buffer): Buffer {
  const hash = Buffer.alloc(hashBytes)
  writeLeafHash(data, 0, hash, 0)
  return hash
}

/** A tree of the first leaves, with its full tiles. */
function growTo(size: number): { tree: GrowingTree; full: FullTile[] } {
  const tree = new GrowingTree()
  const full = allLeaves.slice(0, size).flatMap(data => tree.append(leafHashOf(data)))
  return { tree, full }
}

const tilesOfTree = ({ tree, full }: ReturnType<typeof growTo>) =>
  new Map([...full, ...tree.partialTiles()].map(tile => [keyOfTile(tile), tile.data]))

const largest = growTo(maxSize)
const largestTiles = tilesOfTree(largest)
const size = fc.oneof(
  fc.integer({ min: 1, max: maxSize }),
  fc.constantFrom(1, 2, 255, 256, 257, 511, 512, 65_535, 65_536, 65_537, 65_792, maxSize),
)

describe('a tree that grows', () => {
  it('has the root of RFC 6962 at every size', () => {
    const tree = new GrowingTree()
    expect(tree.root()).toEqual(rootOf(0, 0))
    for (let count = 1; count <= 1_100; count++) {
      tree.append(leafHashOf(allLeaves[count - 1]!))
      expect(tree.root()).toEqual(rootOf(0, count))
    }
  })

  it('continues from its size and edge as if it had never stopped', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1_100 }), fc.integer({ min: 0, max: 600 }), (before, more) => {
        const first = growTo(before).tree
        const resumed = new GrowingTree(first.size, first.edge())
        const tiles = allLeaves.slice(before, before + more).flatMap(data => resumed.append(leafHashOf(data)))
        const whole = growTo(before + more)
        expect(resumed.root()).toEqual(whole.tree.root())
        expect(resumed.edge()).toEqual(whole.tree.edge())
        expect(tiles).toEqual(whole.full.slice(whole.full.length - tiles.length))
      }),
      { numRuns: 20 },
    )
  })

  it('refuses an edge of another size', () => {
    const { tree } = growTo(300)
    expect(() => new GrowingTree(301, tree.edge())).toThrow('the edge of a tree of 301 leaves has 1472 bytes, not 1440')
    expect(() => new GrowingTree(300, tree.edge().subarray(1))).toThrow('has 1440 bytes')
  })

  it('completes the tiles of the example of tlog-tiles', () => {
    const { tree, full } = largest
    expect([fullTiles(0, maxSize), fullTiles(1, maxSize), fullTiles(2, maxSize)]).toEqual([273, 1, 0])
    expect(full.map(({ level }) => level).filter(level => level === 1)).toHaveLength(1)
    expect(full).toHaveLength(274)
    const widths = tree.partialTiles().map(({ level, index, data }) => [level, index, data.length / hashBytes])
    expect(widths).toEqual([
      [0, 273, 112],
      [1, 1, 17],
      [2, 0, 1],
    ])
    expect(full.find(tile => tile.level === 1)!.data.subarray(32, 64)).toEqual(rootOf(256, 512))
  })
})

describe('proofs made of tiles', () => {
  it('are those of the verifier for every index and size', async () => {
    await fc.assert(
      fc.asyncProperty(size, fc.nat(), async (size, draw) => {
        const index = draw % size
        const ranges = inclusionRanges(index, size)
        const hashes = ranges.map(range => rangeHash(range, largestTiles))
        expect(hashes).toEqual(ranges.map(({ from, to }) => rootOf(from, to)))
        const leaf = { index, leafHash: leafOf(allLeaves[index]!), size, rootHash: rootOf(0, size), hashes }
        expect(await isIncluded(leaf)).toBe(true)
        expect(await isIncluded({ ...leaf, leafHash: leafOf(allLeaves[(index + 1) % maxSize]!) })).toBe(false)
      }),
      { numRuns: 300 },
    )
  })

  it('prove that a tree begins with a smaller one', () => {
    fc.assert(
      fc.property(size, fc.nat(), (newSize, draw) => {
        const oldSize = draw % (newSize + 1)
        const hashes = consistencyRanges(oldSize, newSize).map(range => rangeHash(range, largestTiles))
        const trees = { oldSize, oldRootHash: rootOf(0, oldSize), newSize, newRootHash: rootOf(0, newSize), hashes }
        expect(isConsistent(trees)).toBe(true)
        if (oldSize > 0) expect(isConsistent({ ...trees, oldRootHash: rootOf(1, 3) })).toBe(false)
      }),
      { numRuns: 300 },
    )
  })

  it('prove all indexes and pairs of the sizes up to 40', async () => {
    for (let size = 1; size <= 40; size++)
      for (let index = 0; index < size; index++) {
        const hashes = inclusionRanges(index, size).map(range => rangeHash(range, largestTiles))
        const leaf = { index, leafHash: leafOf(allLeaves[index]!), size, rootHash: rootOf(0, size), hashes }
        expect(await isIncluded(leaf)).toBe(true)
        const path = consistencyRanges(index, size).map(range => rangeHash(range, largestTiles))
        const trees = { oldSize: index, oldRootHash: rootOf(0, index), newSize: size, newRootHash: rootOf(0, size) }
        expect(isConsistent({ ...trees, hashes: path })).toBe(true)
      }
  })

  it('need few tiles in a tree of ten million leaves, and in one beyond 2^32', () => {
    for (const size of [10_000_000, 2 ** 40 + 12_345])
      for (const index of [0, 1, size - 1, Math.floor(size / 3)]) {
        const tiles = tilesOf(inclusionRanges(index, size))
        expect(tiles.length).toBeLessThanOrEqual(12)
        for (const { level, index } of tiles) expect(index * 256 ** (level + 1)).toBeLessThan(size)
      }
  })

  it('are refused if a tile is missing or too narrow', () => {
    const tiles = new Map(largestTiles)
    tiles.set('0/1', tiles.get('0/1')!.subarray(0, 32 * 255))
    expect(() => rangeHash({ from: 511, to: 512 }, tiles)).toThrow('the tile 0/1 lacks hashes')
    tiles.delete('0/1')
    expect(() => rangeHash({ from: 256, to: 257 }, tiles)).toThrow('the tile 0/1 lacks hashes')
  })
})
