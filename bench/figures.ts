import { median, type Run } from './measure.ts'
import type { BenchRow } from './rows.ts'
import type { Usage } from './usage.ts'

/** The options of a run. `rounds` of `seconds` each per side; `workers` are the processes of the service. */
export type BenchOptions = {
  people: number
  rounds: number
  seconds: number
  workers: number
  rows: readonly BenchRow[]
}

/** The figures of one side of a row: medians of its rounds. */
export type Side = Run & { usage: Usage }
/** The result of a row. `ratio`: ours divided by theirs, of the rates or of the median latencies. */
export type Figure = { row: BenchRow; ours: Side; theirs: Side; ratio: number; met: boolean }

/** Whether a smaller ratio is better: for latencies, and for the slowdown by the number of people. */
export const hasCeiling = ({ measure, organization }: BenchRow): boolean =>
  measure === 'latency' || organization === 'small'

/** Whether a row's ratio meets a bound, which is a maximum or a minimum ({@link hasCeiling}). */
export const isWithin = (row: BenchRow, ratio: number, bound: number): boolean =>
  hasCeiling(row) ? ratio <= bound : ratio >= bound

/** The median of each figure, taken separately. */
export function medianSide(sides: readonly Side[]): Side {
  const medianOf = (value: (side: Side) => number) => median(sides.map(value))
  return {
    rate: medianOf(side => side.rate),
    p50Ms: medianOf(side => side.p50Ms),
    p99Ms: sides[0]!.p99Ms === undefined ? undefined : medianOf(side => side.p99Ms!),
    usage: {
      service: medianOf(side => side.usage.service),
      postgres: medianOf(side => side.usage.postgres),
      generator: medianOf(side => side.usage.generator),
      serviceMb: medianOf(side => side.usage.serviceMb),
      servicePeakMb: medianOf(side => side.usage.servicePeakMb),
    },
  }
}
