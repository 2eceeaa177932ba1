/** What the program behind `npm run test:faults` tells the tests: of each count they take one in so many, and the seed. */
const share = Number(process.env.FAULTS_SHARE ?? 1)
const seed = Number(process.env.FAULTS_SEED ?? 1)

/** Whether this run takes a part of the rounds only. */
export const isPartial = share > 1

/** The numbers of the rounds to run, of `count` in a full run; one at least. */
export const rounds = (count: number): number[] =>
  Array.from({ length: Math.max(1, Math.round(count / share)) }, (_, index) => index + 1)

/** Numbers that look like chance and come again with the seed of the run and the words. */
export type Chance = {
  /** A whole number from 0, below `limit`. */
  below(limit: number): number
  pick<T>(from: readonly T[]): T
  /** True once in so many. */
  oneIn(many: number): boolean
}

export function chanceOf(...words: (string | number)[]): Chance {
  let state = [seed, ...words].join(' ').split('').reduce(mix, 2166136261)
  const next = () => {
    // mulberry32
    state = (state + 0x6d2b79f5) | 0
    let bits = Math.imul(state ^ (state >>> 15), 1 | state)
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (limit: number) => Math.floor(next() * limit)
  return { below, pick: from => from[below(from.length)]!, oneIn: many => below(many) === 0 }
}

/** FNV-1a, a letter at a time. */
const mix = (hash: number, letter: string) => Math.imul(hash ^ letter.charCodeAt(0), 16777619)
