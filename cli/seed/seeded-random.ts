/** Random numbers that depend only on a name and are the same on any machine. They use integers and share no state. */
export type SeededRandom = {
  /** A whole number from 0 to `count` - 1. */
  below(count: number): number
  /** True with a probability of `percent` %. */
  chance(percent: number): boolean
  /** A random element of the list. */
  pick<T>(list: readonly T[]): T
}

/**
 * Creates the random numbers of a name. They depend only on the name, so any part of a data set can be generated alone.
 */
export function createSeededRandom(name: string): SeededRandom {
  const next = mulberry32(hash(name))
  // IEEE 754 makes the rounding the same on every machine. The result is always less than `count`.
  const below = (count: number) => Math.floor((next() * count) / 2 ** 32)
  return { below, chance: percent => below(100) < percent, pick: list => list[below(list.length)]! }
}

/** FNV-1a over UTF-16 units, with the finalizer of MurmurHash3: names that differ in one digit get unrelated hashes. */
function hash(text: string): number {
  let state = 0x811c9dc5
  for (let at = 0; at < text.length; at++) state = Math.imul(state ^ text.charCodeAt(at), 0x01000193)
  state = Math.imul(state ^ (state >>> 16), 0x85ebca6b)
  state = Math.imul(state ^ (state >>> 13), 0xc2b2ae35)
  return state ^ (state >>> 16)
}

/** mulberry32 by Tommy Ettinger, in the public domain. Each call returns 32 bits. */
function mulberry32(start: number): () => number {
  let state = start
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return (mixed ^ (mixed >>> 14)) >>> 0
  }
}
