import { createHash, hash } from 'node:crypto'

/** Merkle trees of RFC 6962 with SHA-256, as a verifier computes them: another way than that of the service. */

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
