import { randomInt } from 'node:crypto'

/**
 * The seed of a run: that of KITH_FUZZ_SEED, else a fresh one. Whoever draws from it prints it, so that what a run has
 * found can be found again.
 */
export function fuzzSeed(): number {
  const given = process.env.KITH_FUZZ_SEED
  if (given === undefined || given === '') return randomInt(2 ** 31)
  if (!/^\d{1,10}$/.test(given)) throw new Error('KITH_FUZZ_SEED must be a whole number')
  return Number(given)
}
