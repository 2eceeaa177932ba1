import { cpus, loadavg, totalmem } from 'node:os'
import { type Baseline, limitOf } from './baseline.ts'
import { median } from './measure.ts'
import type { Options } from './options.ts'
import type { Figures, Measured } from './run.ts'

const print = (line = '') => process.stdout.write(`${line}\n`)
const integer = (value: number) => (Number.isNaN(value) ? '–' : Math.round(value).toLocaleString('en'))
const ms = (value: number) => (Number.isNaN(value) ? '–' : value.toFixed(2))
const times = (value: number) => value.toFixed(2)

export type FigureName = keyof Figures

/** The median of a figure over the rounds. */
export const medianOf = (rounds: readonly Figures[], name: FigureName): number =>
  median(rounds.map(round => round[name]))

/** The ratio of a figure in each round, ascending. */
const ratiosOf = (ours: readonly Figures[], theirs: readonly Figures[], name: FigureName) =>
  ours
    .map((round, index) => round[name] / (theirs[index]?.[name] ?? Number.NaN))
    .filter(Number.isFinite)
    .sort((a, b) => a - b)

/** Prints the machine, the versions and what is compared. */
export function printHead({ people, rounds, seconds, workers, against }: Options, postgresVersion: string): void {
  const [cpu] = cpus()
  const memory = `${Math.round(totalmem() / 2 ** 30)} GB`
  print(
    `${cpus().length} × ${cpu?.model ?? 'unknown'}, ${memory}, Node ${process.version}, PostgreSQL ${postgresVersion}`,
  )
  print(`${new Date().toISOString()}; load average of the last minute ${loadavg()[0]!.toFixed(1)}`)
  print(
    `${integer(people)} people; medians of ${rounds} round(s) of ${seconds} s a side, in alternation; ${workers} worker(s)`,
  )
  print(`CPU in microseconds for each request or item; p99 of requests at half the rate, at most 2,000/s`)
  if (against) print(`ratios are those of the working tree to ${against}, with the lowest and the highest round`)
  print()
  print(['', '', 'rate/s', 'p50 ms', 'p99 ms', 'alone', 'p99', 'Node', 'PG', 'MB'].map(pad).join(' '))
}

const widths = [14, 10, 9, 8, 8, 8, 8, 8, 8, 6]
const pad = (text: string, column: number) =>
  column < 2 ? text.padEnd(widths[column]!) : text.padStart(widths[column]!)

/** Prints a line for each side of a row, and their ratios. */
export function printRow({ row, ours, theirs, statement }: Measured, against: string | undefined): void {
  printSide(row.name, 'kith', ours)
  if (theirs.length > 0) printSide('', against!.slice(0, 8), theirs)
  else if (against !== undefined) print(`${pad('', 0)} ${against.slice(0, 8)} does not have this`)
  if (statement.length > 0) printSide('', 'pgbench', statement)
  if (theirs.length > 0)
    print(
      `${pad('', 0)} ${(['rate', 'nodeUs', 'postgresUs'] as const).map(name => formatRatio(name, ours, theirs)).join(', ')}`,
    )
}

function printSide(name: string, side: string, rounds: readonly Figures[]) {
  const of = (figure: FigureName) => medianOf(rounds, figure)
  const latencies = (['p50Ms', 'p99Ms', 'aloneP50Ms', 'aloneP99Ms'] as const).map(figure => ms(of(figure)))
  const cpu = (['nodeUs', 'postgresUs'] as const).map(figure => integer(of(figure)))
  print([name, side, integer(of('rate')), ...latencies, ...cpu, integer(of('peakMb'))].map(pad).join(' '))
}

const figureTitles = { rate: 'rate', nodeUs: 'Node', postgresUs: 'PostgreSQL' } as const

function formatRatio(name: keyof typeof figureTitles, ours: readonly Figures[], theirs: readonly Figures[]): string {
  const ratios = ratiosOf(ours, theirs, name)
  if (ratios.length === 0) return `${figureTitles[name]} –`
  return `${figureTitles[name]} ${times(median(ratios))} (${times(ratios[0]!)} to ${times(ratios.at(-1)!)})`
}

/** Prints the rows whose CPU is more than 1.05 of a revision's in bench/baseline.json. */
export function printAboveBaseline(
  measured: readonly Measured[],
  speed: Baseline['speed'],
  baselines: readonly Baseline[],
) {
  for (const baseline of baselines) {
    const above = measured.flatMap(({ row, ours }) => {
      const limit = limitOf(baseline, row.name, speed)
      if (!limit) return []
      const ratio = (medianOf(ours, 'nodeUs') + medianOf(ours, 'postgresUs')) / limit
      return ratio > 1.05 ? [`${row.name} ${times(ratio)}`] : []
    })
    print(`CPU above 1.05 of ${baseline.revision}: ${above.join(', ') || 'none'}`)
  }
}

/** The rate of PATCH divided by that of its statement in pgbench, for programs to read. */
export function printPatchRatio(measured: readonly Measured[]): void {
  const patch = measured.find(({ row }) => row.name === 'patch')
  if (!patch || patch.statement.length === 0) return
  print(`patch_ratio=${(medianOf(patch.ours, 'rate') / medianOf(patch.statement, 'rate')).toFixed(3)}`)
}
