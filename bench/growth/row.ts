import type { Side } from '../side.ts'

/** The work of one size. It returns the number of requests, or of items, that it did. */
export type SizedWork = {
  /** Such as `500 attributes`. */
  size: string
  side: Side
  work: () => Promise<number>
}

/** A row of the benchmark of growth: the same request on little data and on much. */
export type GrowthRow = {
  name: string
  title: string
  /** The target for the large size, as the table shows it, such as `30 ms` or `1.3 ×`. */
  wanted: string
  /** Makes the data of both sizes, outside of the measurement. `openSide` starts another service on a database of its own. */
  prepare(side: Side, openSide: (name: string) => Promise<Side>): Promise<{ small: SizedWork; large: SizedWork }>
}

/** Work that is one request after the other. */
export const repeat = (count: number, ask: () => Promise<unknown>) => async (): Promise<number> => {
  for (let n = 0; n < count; n += 1) await ask()
  return count
}
