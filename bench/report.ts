import { cpus, loadavg, totalmem } from 'node:os'
import { type BenchOptions, type Figure, hasCeiling, isWithin, medianSide, type Side } from './figures.ts'
import { median } from './measure.ts'
import type { BenchRow } from './rows.ts'

const print = (line = '') => process.stdout.write(`${line}\n`)
const formatInteger = (value: number) => Math.round(value).toLocaleString('en')

/** Prints the machine, the versions and the load average. */
export function printPlatform(postgresVersion?: string): void {
  const [cpu] = cpus()
  print(
    `${cpus().length} × ${cpu?.model ?? 'unknown'}, ${Math.round(totalmem() / 2 ** 30)} GB, Node ${process.version}${postgresVersion ? `, PostgreSQL ${postgresVersion}` : ''}`,
  )
  // The load includes the insertion of the people. Any further load slows both sides, and not always evenly.
  print(`${new Date().toISOString()}; load average of the last minute ${loadavg()[0]!.toFixed(1)}`)
}

/** Prints the machine, the versions, the load average, the options and the indexes. */
export function printMachine(
  { people, rounds, seconds, workers }: BenchOptions,
  indexes: string[],
  postgresVersion?: string,
): void {
  printPlatform(postgresVersion)
  print(
    `${formatInteger(people)} people; medians of ${rounds} rounds of ${seconds} s a side, in alternation; ${workers} worker(s)`,
  )
  if (indexes.length > 0) print('indexes:')
  for (const index of indexes) print(`  ${index}`)
}

/** Prints the figures of a row: both sides and their ratio. */
export function printFigure({ row, ours, theirs, ratio, met }: Figure): void {
  print()
  print(`${row.name}: ${row.title}`)
  if ('sql' in row.against) for (const line of row.against.sql.trim().split('\n')) print(`  ${line}`)
  print(formatSide('kith', ours, `${row.connections} connections`))
  print(
    'sql' in row.against
      ? formatSide('pgbench', theirs, `${row.clients} clients`)
      : formatSide(row.against.row, theirs, `${row.connections} connections`),
  )
  print(`  ratio ${ratio.toFixed(2)} (${formatBounds(row)}): ${met ? 'met' : 'NOT MET'}`)
}

function formatSide(name: string, { rate, p50Ms, p99Ms, usage }: Side, parallelism: string): string {
  const latency =
    p99Ms === undefined ? `mean ${p50Ms.toFixed(2)} ms` : `p50 ${p50Ms.toFixed(2)} ms, p99 ${p99Ms.toFixed(2)} ms`
  const { service, postgres, generator, serviceMb, servicePeakMb } = usage
  const memory = `kith ${formatInteger(serviceMb)} MB, at most ${formatInteger(servicePeakMb)}`
  const used = `kith ${formatInteger(service)} %, PostgreSQL ${formatInteger(postgres)} %, generator ${formatInteger(generator)} %`
  return `  ${name.padEnd(8)} ${formatInteger(rate).padStart(8)}/s  ${latency}; CPU: ${used}; ${memory} (${parallelism})`
}

function formatBounds(row: BenchRow): string {
  return `${hasCeiling(row) ? 'at most' : 'at least'} ${row.atLeast}, aim ${row.aim}`
}

const memoryBoundsMb = { atLeast: 250, aim: 150 }

/** Prints one line per row and one for the memory. The last line is `patch_ratio`, for programs to read. */
export function printSummary(figures: readonly Figure[]): void {
  print()
  printLine('row', 'ratio', 'bound', 'aim', '')
  for (const { row, ratio, met } of figures) {
    const sign = hasCeiling(row) ? '≤' : '≥'
    const verdict = isWithin(row, ratio, row.aim) ? 'aim met' : met ? 'met' : 'NOT MET'
    printLine(row.name, ratio.toFixed(2), `${sign} ${row.atLeast}`, `${sign} ${row.aim}`, verdict)
  }
  const memory = Math.max(...figures.map(({ ours }) => ours.usage.servicePeakMb))
  const { atLeast, aim } = memoryBoundsMb
  const verdict = memory <= aim ? 'aim met' : memory <= atLeast ? 'met' : 'NOT MET'
  printLine('memory', `${formatInteger(memory)} MB`, `≤ ${atLeast}`, `≤ ${aim}`, verdict)
  const patch = figures.find(({ row }) => row.name === 'patch')
  if (patch) print(`patch_ratio=${patch.ratio.toFixed(3)}`)
}

function printLine(name: string, ratio: string, bound: string, aim: string, verdict: string): void {
  print(`${name.padEnd(6)} ${ratio.padStart(7)}  ${bound.padEnd(7)} ${aim.padEnd(7)} ${verdict}`.trimEnd())
}

/** The figures of a row before and after. */
export type Pair = { before: Side; after: Side }

/** Prints both sides of a comparison, medians of all rounds. Returns how many times as fast the working tree is in the median round. */
export function printComparison(row: BenchRow, rounds: readonly Pair[], revision: string): number {
  const before = medianSide(rounds.map(round => round.before))
  const after = medianSide(rounds.map(round => round.after))
  const ratios = rounds.map(round =>
    row.measure === 'latency' ? round.before.p50Ms / round.after.p50Ms : round.after.rate / round.before.rate,
  )
  const ratio = median(ratios)
  print()
  print(`${row.name}: ${row.title}`)
  print(formatSide(revision.slice(0, 8), before, `${row.connections} connections`))
  print(formatSide('now', after, `${row.connections} connections`))
  const each = ratios.map(value => value.toFixed(2)).sort()
  print(`  now is ${ratio.toFixed(2)} times as fast, the median of ${each.join(', ')}`)
  return ratio
}
