/** Set by run.ts: the tests run 1 in FAULTS_SHARE rounds, with the seed FAULTS_SEED. */
const share = Number(process.env.FAULTS_SHARE ?? 1)
const seed = Number(process.env.FAULTS_SEED ?? 1)

/** Whether this run takes only a part of the rounds. */
export const isPartial = share > 1

/** Returns the numbers of the rounds to run, at least one. `count` is their number in a full run. */
export const rounds = (count: number): number[] =>
  Array.from({ length: Math.max(1, Math.round(count / share)) }, (_, index) => index + 1)

/** Pseudorandom numbers, reproducible from the seed of the run and the parts given to `createRandom`. */
export type Random = {
  /** Returns an integer from 0 to `limit` - 1. */
  below(limit: number): number
  pick<T>(from: readonly T[]): T
  /** Returns true with a probability of 1 / `many`. */
  oneIn(many: number): boolean
}

export function createRandom(...seedParts: (string | number)[]): Random {
  let state = [seed, ...seedParts].join(' ').split('').reduce(mix, 2166136261)
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

/** One step of the hash FNV-1a. */
const mix = (hash: number, letter: string) => Math.imul(hash ^ letter.charCodeAt(0), 16777619)
