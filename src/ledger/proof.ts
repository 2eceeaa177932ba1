import { createHash, hash } from 'node:crypto'
import { decodeBase64, FormatError, parseDecimal } from './strict-text.ts'

/** Merkle trees of RFC 6962 with SHA-256, and the proofs of https://c2sp.org/tlog-proof. */

const hashBytes = 32
/** A tree of 2^53 leaves has proofs of at most 53 hashes. */
const maxHashes = 53
const [leafPrefix, nodePrefix] = [Buffer.of(0), Buffer.of(1)]

/** The hash of a tree without leaves. */
export const emptyTreeHash: Buffer = hash('sha256', '', 'buffer')

/** The hash of a leaf: SHA-256(0x00 || data). */
export function leafHash(data: Uint8Array): Buffer {
  return createHash('sha256').update(leafPrefix).update(data).digest()
}

/** The hash of a node with two children: SHA-256(0x01 || left || right). */
export function nodeHash(left: Uint8Array, right: Uint8Array): Buffer {
  return createHash('sha256').update(nodePrefix).update(left).update(right).digest()
}

/** Whether `hashes` prove that the leaf with `leafHash` has the index `index` in the tree of `size` leaves and `rootHash`. */
export function isIncluded(leaf: {
  index: number
  leafHash: Buffer
  size: number
  rootHash: Buffer
  hashes: readonly Buffer[]
}): boolean {
  const { index, size, rootHash, hashes } = leaf
  if (!isCount(index) || !isCount(size) || index >= size) return false
  const path = new Path(index, size - 1)
  let root = leaf.leafHash
  for (const sibling of hashes) {
    if (path.isAtRoot) return false
    root = path.goUp() === 'right' ? nodeHash(sibling, root) : nodeHash(root, sibling)
  }
  return path.isAtRoot && root.equals(rootHash)
}

/** Whether `hashes` prove that the tree of `newSize` leaves begins with the leaves of the tree of `oldSize`. */
export function isConsistent(trees: {
  oldSize: number
  oldRootHash: Buffer
  newSize: number
  newRootHash: Buffer
  hashes: readonly Buffer[]
}): boolean {
  const { oldSize, oldRootHash, newSize, newRootHash, hashes } = trees
  if (!isCount(oldSize) || !isCount(newSize) || oldSize > newSize) return false
  if (oldSize === 0 && !oldRootHash.equals(emptyTreeHash)) return false
  if (oldSize === newSize) return hashes.length === 0 && oldRootHash.equals(newRootHash)
  if (oldSize === 0) return hashes.length === 0
  const path = new Path(oldSize - 1, newSize - 1)
  path.goUpWhileRight()
  // The old tree is one whole subtree of the new one: its root hash, which the verifier knows, is not in the proof.
  const [first, ...rest] = path.isAtLeft ? [oldRootHash, ...hashes] : hashes
  if (!first) return false
  let [oldRoot, newRoot] = [first, first]
  for (const sibling of rest) {
    if (path.isAtRoot) return false
    if (path.goUp() === 'right') {
      oldRoot = nodeHash(sibling, oldRoot)
      newRoot = nodeHash(sibling, newRoot)
    } else {
      newRoot = nodeHash(newRoot, sibling)
    }
  }
  return path.isAtRoot && oldRoot.equals(oldRootHash) && newRoot.equals(newRootHash)
}

const isCount = (number: number) => Number.isSafeInteger(number) && number >= 0

/** A node on its way to the root, by RFC 9162, 2.1.3.2. Bit operations would lose the bits above 2^31. */
class Path {
  #node: number
  #last: number

  /** Starts at a leaf. `last` is the index of the last leaf. */
  constructor(index: number, last: number) {
    this.#node = index
    this.#last = last
  }

  get isAtRoot(): boolean {
    return this.#last === 0
  }

  /** Whether no node of its level is to the left of it. */
  get isAtLeft(): boolean {
    return this.#node === 0
  }

  /** Goes up to the next node with a sibling's hash in the proof, and returns the side that it comes from. */
  goUp(): 'left' | 'right' {
    const isRight = this.#node % 2 === 1
    const isLast = this.#node === this.#last
    // The last node of a level without a sibling is its own parent.
    if (!isRight && isLast) while (this.#node % 2 === 0 && this.#node !== 0) this.#halve()
    this.#halve()
    return isRight || isLast ? 'right' : 'left'
  }

  goUpWhileRight() {
    while (this.#node % 2 === 1) this.#halve()
  }

  #halve() {
    this.#node = Math.floor(this.#node / 2)
    this.#last = Math.floor(this.#last / 2)
  }
}

/** A proof that can be verified offline: an inclusion proof and the signed checkpoint that it leads to. */
export type Proof = { index: number; hashes: Buffer[]; checkpoint: string; extra?: Buffer }

const firstLine = 'c2sp.org/tlog-proof@v1'

/** Formats a proof. `checkpoint` is a signed note. */
export function formatProof({ index, hashes, checkpoint, extra }: Proof): string {
  const lines = [
    firstLine,
    ...(extra ? [`extra ${extra.toString('base64')}`] : []),
    `index ${index}`,
    ...hashes.map(sibling => sibling.toString('base64')),
  ]
  return `${lines.join('\n')}\n\n${checkpoint}`
}

/** Parses a proof. The checkpoint is returned as it is, without a check. Throws a FormatError. */
export function parseProof(text: string): Proof {
  const end = text.indexOf('\n\n')
  if (end === -1) throw new FormatError('The proof has no blank line before its checkpoint.')
  const checkpoint = text.slice(end + 2)
  const lines = text.slice(0, end).split('\n', maxHashes + 4)
  if (lines.shift() !== firstLine) throw new FormatError(`The first line of the proof is not ${firstLine}.`)
  const extra = lines[0]?.startsWith('extra ') ? parseExtra(lines.shift()!) : undefined
  const index = parseDecimal(/^index (.*)$/.exec(lines.shift() ?? '')?.[1] ?? '')
  if (index === undefined)
    throw new FormatError('The index of the proof is not a decimal number up to 2^53 - 1 without leading zeros.')
  if (lines.length > maxHashes) throw new FormatError(`The proof has more than ${maxHashes} hashes.`)
  return { index, hashes: lines.map(parseHash), checkpoint, ...(extra && { extra }) }
}

function parseExtra(line: string): Buffer {
  const bytes = decodeBase64(line.slice('extra '.length))
  if (!bytes) throw new FormatError('The extra data of the proof is not base64.')
  return bytes
}

function parseHash(line: string, index: number): Buffer {
  const bytes = decodeBase64(line)
  if (bytes?.length !== hashBytes)
    throw new FormatError(`The hash ${index + 1} of the proof is not base64 of ${hashBytes} bytes.`)
  return bytes
}
