import { cpus, totalmem } from 'node:os'
import type { BenchOptions, Figure, Side } from './figures.ts'
import type { BenchRow } from './rows.ts'

const print = (line = '') => process.stdout.write(`${line}\n`)
const whole = (value: number) => Math.round(value).toLocaleString('en')

export function printMachine({ people, rounds, seconds, workers }: BenchOptions, indexes: string[]): void {
  const [cpu] = cpus()
  print(
    `${cpus().length} × ${cpu?.model ?? 'unknown'}, ${Math.round(totalmem() / 2 ** 30)} GB, Node ${process.version}`,
  )
  print(
    `${whole(people)} people; medians of ${rounds} rounds of ${seconds} s a side, in alternation; ${workers} worker(s)`,
  )
  print('the indexes that stand:')
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

function sideLine(name: string, { rate, p50_ms, p99_ms, usage }: Side, how: string): string {
  const latency = `p50 ${p50_ms.toFixed(2)} ms${p99_ms === undefined ? '' : `, p99 ${p99_ms.toFixed(2)} ms`}`
  const { service, postgres, generator, service_mb } = usage
  const used = `kith ${whole(service)} %, PostgreSQL ${whole(postgres)} %, generator ${whole(generator)} %`
  return `  ${name.padEnd(8)} ${whole(rate).padStart(8)}/s  ${latency}; CPU: ${used}; kith ${whole(service_mb)} MB (${how})`
}

function boundOf({ at_least, aim, measure, organization }: BenchRow): string {
  const most = measure === 'latency' || organization === 'small'
  return `${most ? 'at most' : 'at least'} ${at_least}, aim ${aim}`
}

/** A line a row, and last the number that a gate may read. */
export function printSummary(figures: readonly Figure[]): void {
  print()
  for (const { row, ratio, met } of figures)
    print(
      `${row.name.padEnd(6)} ${ratio.toFixed(2).padStart(6)}  ${boundOf(row).padEnd(24)} ${met ? 'met' : 'NOT MET'}`,
    )
  const memory = Math.max(...figures.map(({ ours }) => ours.usage.service_mb))
  print(`memory ${whole(memory).padStart(6)}  MB at most 250, aim 150      ${memory <= 250 ? 'met' : 'NOT MET'}`)
  const patch = figures.find(({ row }) => row.name === 'patch')
  if (patch) print(`patch_ratio=${patch.ratio.toFixed(3)}`)
}

/** Of a comparison: both sides, and how much faster the working tree is. */
export function printComparison(row: BenchRow, before: Side, after: Side, revision: string): number {
  const ratio = row.measure === 'latency' ? before.p50_ms / after.p50_ms : after.rate / before.rate
  print()
  print(`${row.name}: ${row.title}`)
  print(sideLine(revision.slice(0, 8), before, `${row.connections} connections`))
  print(sideLine('now', after, `${row.connections} connections`))
  print(`  now is ${ratio.toFixed(2)} times as fast`)
  return ratio
}
