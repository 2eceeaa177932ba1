import { median, type Run } from './measure.ts'
import type { BenchRow } from './rows.ts'
import type { Usage } from './usage.ts'

export type BenchOptions = {
  people: number
  rounds: number
  seconds: number
  workers: number
  rows: readonly BenchRow[]
}

/** One side of a row: medians of its rounds. */
export type Side = Run & { usage: Usage }
/** `ratio`: ours to theirs, of rates, or of latencies. */
export type Figure = { row: BenchRow; ours: Side; theirs: Side; ratio: number; met: boolean }

/** Whether a ratio had better be small: of latencies, or of how much many people slow down. */
export const hasCeiling = ({ measure, organization }: BenchRow): boolean =>
  measure === 'latency' || organization === 'small'

/** Whether a row's ratio reaches a bound, which is a floor or a ceiling. */
export const isWithin = (row: BenchRow, ratio: number, bound: number): boolean =>
  hasCeiling(row) ? ratio <= bound : ratio >= bound

/** The median of every figure by itself. */
export function middle(sides: readonly Side[]): Side {
  const of = (value: (side: Side) => number) => median(sides.map(value))
  return {
    rate: of(side => side.rate),
    p50Ms: of(side => side.p50Ms),
    p99Ms: sides[0]!.p99Ms === undefined ? undefined : of(side => side.p99Ms!),
    usage: {
      service: of(side => side.usage.service),
      postgres: of(side => side.usage.postgres),
      generator: of(side => side.usage.generator),
      serviceMb: of(side => side.usage.serviceMb),
      servicePeakMb: of(side => side.usage.servicePeakMb),
    },
  }
}
