import { cpus, loadavg, totalmem } from 'node:os'
import { type BenchOptions, type Figure, hasCeiling, isWithin, type Side } from './figures.ts'
import type { BenchRow } from './rows.ts'

const print = (line = '') => process.stdout.write(`${line}\n`)
const whole = (value: number) => Math.round(value).toLocaleString('en')

export function printMachine(
  { people, rounds, seconds, workers }: BenchOptions,
  indexes: string[],
  server_version?: string,
): void {
  const [cpu] = cpus()
  print(
    `${cpus().length} × ${cpu?.model ?? 'unknown'}, ${Math.round(totalmem() / 2 ** 30)} GB, Node ${process.version}${server_version ? `, PostgreSQL ${server_version}` : ''}`,
  )
  // Loading the people is part of it; the rest are others, who slow both sides, and not always evenly.
  print(`${new Date().toISOString()}; load average of the last minute ${loadavg()[0]!.toFixed(1)}`)
  print(
    `${whole(people)} people; medians of ${rounds} rounds of ${seconds} s a side, in alternation; ${workers} worker(s)`,
  )
  if (indexes.length > 0) print('the indexes that stand:')
  for (const index of indexes) print(`  ${index}`)
}

export function printFigure({ row, ours, theirs, ratio, met }: Figure): void {
  print()
  print(`${row.name}: ${row.title}`)
  if ('sql' in row.against) for (const line of row.against.sql.trim().split('\n')) print(`  ${line}`)
  print(sideLine('kith', ours, `${row.connections} connections`))
  print(
    'sql' in row.against
      ? sideLine('pgbench', theirs, `${row.clients} clients`)
      : sideLine(row.against.row, theirs, `${row.connections} connections`),
  )
  print(`  ratio ${ratio.toFixed(2)} (${boundOf(row)}): ${met ? 'met' : 'NOT MET'}`)
}

function sideLine(name: string, { rate, p50Ms, p99Ms, usage }: Side, how: string): string {
  const latency =
    p99Ms === undefined ? `mean ${p50Ms.toFixed(2)} ms` : `p50 ${p50Ms.toFixed(2)} ms, p99 ${p99Ms.toFixed(2)} ms`
  const { service, postgres, generator, serviceMb, servicePeakMb } = usage
  const memory = `kith ${whole(serviceMb)} MB, at most ${whole(servicePeakMb)}`
  const used = `kith ${whole(service)} %, PostgreSQL ${whole(postgres)} %, generator ${whole(generator)} %`
  return `  ${name.padEnd(8)} ${whole(rate).padStart(8)}/s  ${latency}; CPU: ${used}; ${memory} (${how})`
}

function boundOf(row: BenchRow): string {
  return `${hasCeiling(row) ? 'at most' : 'at least'} ${row.atLeast}, aim ${row.aim}`
}

const memoryBoundsMb = { atLeast: 250, aim: 150 }

/** A line a row, and last the number that a gate may read. */
export function printSummary(figures: readonly Figure[]): void {
  print()
  printLine('row', 'ratio', 'reach', 'aim', '')
  for (const { row, ratio, met } of figures) {
    const sign = hasCeiling(row) ? '≤' : '≥'
    const verdict = isWithin(row, ratio, row.aim) ? 'aim met' : met ? 'met' : 'NOT MET'
    printLine(row.name, ratio.toFixed(2), `${sign} ${row.atLeast}`, `${sign} ${row.aim}`, verdict)
  }
  const memory = Math.max(...figures.map(({ ours }) => ours.usage.servicePeakMb))
  const { atLeast, aim } = memoryBoundsMb
  const verdict = memory <= aim ? 'aim met' : memory <= atLeast ? 'met' : 'NOT MET'
  printLine('memory', `${whole(memory)} MB`, `≤ ${atLeast}`, `≤ ${aim}`, verdict)
  const patch = figures.find(({ row }) => row.name === 'patch')
  if (patch) print(`patch_ratio=${patch.ratio.toFixed(3)}`)
}

function printLine(name: string, ratio: string, reach: string, aim: string, verdict: string): void {
  print(`${name.padEnd(6)} ${ratio.padStart(7)}  ${reach.padEnd(7)} ${aim.padEnd(7)} ${verdict}`.trimEnd())
}

/** Of a comparison: both sides, and how much faster the working tree is. */
export function printComparison(row: BenchRow, before: Side, after: Side, revision: string): number {
  const ratio = row.measure === 'latency' ? before.p50Ms / after.p50Ms : after.rate / before.rate
  print()
  print(`${row.name}: ${row.title}`)
  print(sideLine(revision.slice(0, 8), before, `${row.connections} connections`))
  print(sideLine('now', after, `${row.connections} connections`))
  print(`  now is ${ratio.toFixed(2)} times as fast`)
  return ratio
}
