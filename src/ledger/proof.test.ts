import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isIncluded, parseProof } from '../../client/src/ledger-proof.ts'
import { FormatError } from '../../client/src/ledger-text.ts'
import { emptyTreeHash, isConsistent, leafHash, nodeHash } from '../../test/support/merkle-trees.ts'
import { formatProof } from './note.ts'

/** The recursive definitions of RFC 6962, 2.1, with all leaves in memory. */
function split(leaves: readonly Buffer[]): [Buffer[], Buffer[]] {
  let half = 1
  while (half * 2 < leaves.length) half *= 2
  return [leaves.slice(0, half), leaves.slice(half)]
}

function rootOf(leaves: readonly Buffer[]): Buffer {
  if (leaves.length === 0) return emptyTreeHash
  if (leaves.length === 1) return leafHash(leaves[0]!)
  const [left, right] = split(leaves)
  return nodeHash(rootOf(left), rootOf(right))
}

function pathOf(index: number, leaves: readonly Buffer[]): Buffer[] {
  if (leaves.length === 1) return []
  const [left, right] = split(leaves)
  if (index < left.length) return [...pathOf(index, left), rootOf(right)]
  return [...pathOf(index - left.length, right), rootOf(left)]
}

function consistencyOf(oldSize: number, leaves: readonly Buffer[], isWhole = true): Buffer[] {
  if (oldSize === leaves.length) return isWhole ? [] : [rootOf(leaves)]
  const [left, right] = split(leaves)
  if (oldSize <= left.length) return [...consistencyOf(oldSize, left, isWhole), rootOf(right)]
  return [...consistencyOf(oldSize - left.length, right, false), rootOf(left)]
}

/** The leaves and roots of the reference tests of Certificate Transparency. */
const knownLeaves = [
  '',
  '00',
  '10',
  '2021',
  '3031',
  '40414243',
  '5051525354555657',
  '606162636465666768696a6b6c6d6e6f',
].map(hex => Buffer.from(hex, 'hex'))
const knownRoots = [
  'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
  'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
  'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
  'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
  '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
  '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
  'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
  '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
].map(hex => Buffer.from(hex, 'hex'))

/** The leaves differ. With equal leaves, a proof can be valid for several indexes. */
const someLeaves = fc.uniqueArray(
  fc.uint8Array({ maxLength: 4 }).map(bytes => Buffer.from(bytes)),
  { minLength: 1, maxLength: 70, selector: bytes => bytes.toString('hex') },
)
const leafOf = (leaves: Buffer[], index: number) => ({
  index,
  leafHash: leafHash(leaves[index]!),
  size: leaves.length,
  rootHash: rootOf(leaves),
  hashes: pathOf(index, leaves),
})
const treesOf = (oldSize: number, leaves: Buffer[]) => ({
  oldSize,
  oldRootHash: rootOf(leaves.slice(0, oldSize)),
  newSize: leaves.length,
  newRootHash: rootOf(leaves),
  hashes: oldSize === 0 ? [] : consistencyOf(oldSize, leaves),
})

/** A copy with one bit inverted. */
function withOtherBit(bytes: Buffer, position: number): Buffer {
  const copy = Buffer.from(bytes)
  const bit = position % (copy.length * 8)
  copy[bit >> 3]! ^= 1 << (bit & 7)
  return copy
}

describe('A Merkle tree', () => {
  it('has the root hashes of the reference tests of Certificate Transparency', () => {
    for (const [size, root] of knownRoots.entries()) expect(rootOf(knownLeaves.slice(0, size))).toEqual(root)
  })
})

// The client verifies inclusion proofs, and `kith verify` uses the client. kith itself only creates them.
describe('An inclusion proof', () => {
  it('of the reference tests of Certificate Transparency is valid', async () => {
    const hashes = [
      '96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7',
      '5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e',
      '6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4',
    ].map(hex => Buffer.from(hex, 'hex'))
    const leaf = { index: 0, leafHash: leafHash(knownLeaves[0]!), size: 8, rootHash: knownRoots[8]!, hashes }
    expect(await isIncluded(leaf)).toBe(true)
    expect(await isIncluded({ ...leaf, index: 1 })).toBe(false)
  })

  it('is valid for each leaf of each tree of up to 70 leaves', async () => {
    const leaves = Array.from({ length: 70 }, (_, index) => Buffer.from(`leaf ${index}`))
    for (let size = 1; size <= leaves.length; size++)
      for (let index = 0; index < size; index++)
        expect(await isIncluded(leafOf(leaves.slice(0, size), index)), `${index} of ${size}`).toBe(true)
  })

  it('is valid for a leaf above 2^32', async () => {
    // The tree has 2^40 + 1 leaves, so the last leaf is a child of the root.
    const [left, leaf] = [leafHash(Buffer.of(1)), leafHash(Buffer.of(2))]
    const proof = { leafHash: leaf, size: 2 ** 40 + 1, rootHash: nodeHash(left, leaf), hashes: [left] }
    expect(await isIncluded({ ...proof, index: 2 ** 40 })).toBe(true)
    expect(await isIncluded({ ...proof, index: 2 ** 40 - 1 })).toBe(false)
    expect(await isIncluded({ ...proof, index: 2 ** 40 - 2 ** 32 })).toBe(false)
  })

  it('is not valid for another leaf, index, root hash, or with another, missing or further hash', async () => {
    await fc.assert(
      fc.asyncProperty(someLeaves, fc.nat(), fc.nat(), async (leaves, at, bit) => {
        const proof = leafOf(leaves, at % leaves.length)
        const { hashes, index } = proof
        expect(await isIncluded(proof)).toBe(true)
        expect(await isIncluded({ ...proof, leafHash: withOtherBit(proof.leafHash, bit) })).toBe(false)
        expect(await isIncluded({ ...proof, rootHash: withOtherBit(proof.rootHash, bit) })).toBe(false)
        expect(await isIncluded({ ...proof, hashes: [...hashes, proof.rootHash] })).toBe(false)
        if (hashes.length > 0) expect(await isIncluded({ ...proof, hashes: hashes.slice(0, -1) })).toBe(false)
        if (hashes.length > 0) expect(await isIncluded({ ...proof, hashes: hashes.slice(1) })).toBe(false)
        for (const [position, hash] of hashes.entries())
          expect(await isIncluded({ ...proof, hashes: hashes.with(position, withOtherBit(hash, bit)) })).toBe(false)
        for (const other of [index ^ 1, index + 1, -1, 0.5, Number.NaN, leaves.length, 2 ** 53])
          if (other !== index) expect(await isIncluded({ ...proof, index: other }), `${index} as ${other}`).toBe(false)
      }),
    )
  })

  it('is not valid for a tree without leaves, or of a size that is no count', async () => {
    const proof = leafOf([Buffer.of(1)], 0)
    for (const size of [0, -1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53])
      expect(await isIncluded({ ...proof, size })).toBe(false)
  })
})

describe('A consistency proof', () => {
  it('of the reference tests of Certificate Transparency is valid', () => {
    const hashes = [
      '0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a',
      'ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0',
      'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
    ].map(hex => Buffer.from(hex, 'hex'))
    const trees = {
      oldSize: 6,
      oldRootHash: knownRoots[6]!,
      newSize: 8,
      newRootHash: knownRoots[8]!,
      hashes,
    }
    expect(isConsistent(trees)).toBe(true)
    expect(isConsistent({ ...trees, oldSize: 5, oldRootHash: knownRoots[5]! })).toBe(false)
  })

  it('is valid for each pair of trees of up to 70 leaves', () => {
    const leaves = Array.from({ length: 70 }, (_, index) => Buffer.from(`leaf ${index}`))
    for (let size = 0; size <= leaves.length; size++)
      for (let oldSize = 0; oldSize <= size; oldSize++)
        expect(isConsistent(treesOf(oldSize, leaves.slice(0, size))), `${oldSize} of ${size}`).toBe(true)
  })

  it('is not valid for another root hash, or with another, missing or further hash', () => {
    fc.assert(
      fc.property(someLeaves, fc.nat(), fc.nat(), (leaves, at, bit) => {
        const trees = treesOf(at % (leaves.length + 1), leaves)
        const { hashes, oldRootHash, newRootHash } = trees
        expect(isConsistent(trees)).toBe(true)
        expect(isConsistent({ ...trees, oldRootHash: withOtherBit(oldRootHash, bit) })).toBe(false)
        if (trees.oldSize > 0)
          expect(isConsistent({ ...trees, newRootHash: withOtherBit(newRootHash, bit) })).toBe(false)
        expect(isConsistent({ ...trees, hashes: [...hashes, newRootHash] })).toBe(false)
        if (hashes.length > 0) expect(isConsistent({ ...trees, hashes: hashes.slice(0, -1) })).toBe(false)
        for (const [position, hash] of hashes.entries())
          expect(isConsistent({ ...trees, hashes: hashes.with(position, withOtherBit(hash, bit)) })).toBe(false)
      }),
    )
  })

  it('is not valid for a tree that became smaller, or for sizes that are no counts', () => {
    const leaves = [Buffer.of(1), Buffer.of(2)]
    const trees = treesOf(2, leaves)
    expect(isConsistent({ ...trees, newSize: 1, newRootHash: rootOf(leaves.slice(0, 1)) })).toBe(false)
    for (const oldSize of [-1, 0.5, Number.NaN, 2 ** 53]) expect(isConsistent({ ...trees, oldSize })).toBe(false)
    for (const newSize of [-1, 2.5, Number.NaN, 2 ** 53]) expect(isConsistent({ ...trees, newSize })).toBe(false)
  })
})

describe('A proof as text', () => {
  const hash = Buffer.alloc(32, 7).toString('base64')
  const checkpoint = 'log\n1\nroot\n\n— log signature\n'

  it('has the format of the specification', () => {
    const proof = { index: 73_894, hashes: [Buffer.alloc(32, 7)], checkpoint }
    expect(formatProof(proof)).toBe(`c2sp.org/tlog-proof@v1\nindex 73894\n${hash}\n\n${checkpoint}`)
    expect(parseProof(`c2sp.org/tlog-proof@v1\nextra YWdl\nindex 73894\n${hash}\n\n${checkpoint}`).index).toBe(73_894)
    expect(formatProof({ index: 0, hashes: [], checkpoint })).toBe(`c2sp.org/tlog-proof@v1\nindex 0\n\n${checkpoint}`)
  })

  it('is parsed to what was formatted', () => {
    const hashes = fc.uint8Array({ minLength: 32, maxLength: 32 }).map(array => Buffer.from(array))
    const proofs = fc.record({
      index: fc.maxSafeNat(),
      hashes: fc.array(hashes, { maxLength: 53 }),
      checkpoint: fc.string(),
    })
    fc.assert(
      fc.property(proofs, proof => {
        const { index, hashes, checkpoint } = parseProof(formatProof(proof))
        expect([index, hashes.map(hash => Buffer.from(hash)), checkpoint]).toEqual([
          proof.index,
          proof.hashes,
          proof.checkpoint,
        ])
      }),
    )
  })

  it.each([
    ['', 'no blank line'],
    [`c2sp.org/tlog-proof@v1\nindex 0\n${hash}\n`, 'no blank line'],
    [`c2sp.org/tlog-proof@v2\nindex 0\n\n${checkpoint}`, 'The first line'],
    [`c2sp.org/tlog-proof@v1\r\nindex 0\r\n\r\n${checkpoint}`, 'The first line'],
    [`c2sp.org/tlog-proof@v1\n${hash}\n\n${checkpoint}`, 'The index'],
    [`c2sp.org/tlog-proof@v1\n\n${checkpoint}`, 'The index'],
    [`c2sp.org/tlog-proof@v1\nindex 01\n\n${checkpoint}`, 'The index'],
    [`c2sp.org/tlog-proof@v1\nindex -1\n\n${checkpoint}`, 'The index'],
    [`c2sp.org/tlog-proof@v1\nindex  1\n\n${checkpoint}`, 'The index'],
    [`c2sp.org/tlog-proof@v1\nindex 9007199254740992\n\n${checkpoint}`, 'up to 2^53 - 1'],
    [`c2sp.org/tlog-proof@v1\nindex 0\nextra YWdl\n\n${checkpoint}`, 'The hash 1'],
    [`c2sp.org/tlog-proof@v1\nextra YWd\nindex 0\n\n${checkpoint}`, 'The extra data'],
    [`c2sp.org/tlog-proof@v1\nindex 0\n${hash}\n${hash.slice(0, 40)}\n\n${checkpoint}`, 'The hash 2'],
    [`c2sp.org/tlog-proof@v1\nindex 0\n${hash.replace('c=', 'd=')}\n\n${checkpoint}`, 'The hash 1'],
    [`c2sp.org/tlog-proof@v1\nindex 0\n${hash} \n\n${checkpoint}`, 'The hash 1'],
  ])('is refused as %j', (malformed, message) => {
    expect(() => parseProof(malformed)).toThrow(FormatError)
    expect(() => parseProof(malformed)).toThrow(message)
  })

  it.each([54, 100_000])('is refused with %d hashes', count => {
    const text = `c2sp.org/tlog-proof@v1\nindex 0\n${`${hash}\n`.repeat(count)}\n${checkpoint}`
    expect(() => parseProof(text)).toThrow('more than 53 hashes')
  })
})
