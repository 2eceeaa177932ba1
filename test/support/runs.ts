/** Whether properties and generated requests have all their runs, as before a release. `npm test` has a part of them. */
export const isWhole = process.env.KITH_FUZZ_RUNS === 'all'

/** The runs of a property: a fifth of them, or all if {@link isWhole}. fast-check takes other values in each run of the tests. */
export const someRuns = (all: number): { numRuns: number } => ({ numRuns: isWhole ? all : Math.ceil(all / 5) })
