import { randomInt } from 'node:crypto'

/**
 * Returns the seed of KITH_FUZZ_SEED, or else a random one. Each test prints its seed, so that a failed run can be repeated. Throws an
 * Error if KITH_FUZZ_SEED is not a number of at most 10 digits.
 */
export function fuzzSeed(): number {
  const given = process.env.KITH_FUZZ_SEED
  if (given === undefined || given === '') return randomInt(2 ** 31)
  if (!/^\d{1,10}$/.test(given)) throw new Error('KITH_FUZZ_SEED must be a whole number of at most 10 digits')
  return Number(given)
}
