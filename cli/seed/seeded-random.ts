/** Chances that fall the same for the same name, on any machine: integers only, and nothing shared between names. */
export type SeededRandom = {
  /** A whole number from 0 to `count` - 1. */
  below(count: number): number
  /** True so many times out of 100. */
  chance(percent: number): boolean
  one<T>(list: readonly T[]): T
}

/** The dice of one thing: what is drawn for it depends on its name alone, so any part of a world can be made by itself. */
export function diceOf(name: string): SeededRandom {
  const next = mulberry32(hash(name))
  // Rounded alike everywhere (IEEE 754), and never up to `count`.
  const below = (count: number) => Math.floor((next() * count) / 2 ** 32)
  return { below, chance: percent => below(100) < percent, one: list => list[below(list.length)]! }
}

/** FNV-1a over UTF-16 units, with the last mixing of MurmurHash3: names that differ in a digit share nothing. */
function hash(text: string): number {
  let state = 0x811c9dc5
  for (let at = 0; at < text.length; at++) state = Math.imul(state ^ text.charCodeAt(at), 0x01000193)
  state = Math.imul(state ^ (state >>> 16), 0x85ebca6b)
  state = Math.imul(state ^ (state >>> 13), 0xc2b2ae35)
  return state ^ (state >>> 16)
}

/** mulberry32, by Tommy Ettinger, in the public domain: 32 bits at a time. */
function mulberry32(start: number): () => number {
  let state = start
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return (mixed ^ (mixed >>> 14)) >>> 0
  }
}
