import { parseArgs } from 'node:util'
import { inDatabase } from '../database.ts'
import { median } from '../measure.ts'
import { withUsage } from '../processes.ts'
import { withPostgres } from '../run.ts'
import { checkout, Side } from '../side.ts'
import type { GrowthRow, SizedWork } from './row.ts'
import { growthRows } from './rows.ts'

/** Milliseconds of waiting, and microseconds of CPU, for each request or item. */
type Figures = { ms: number; nodeUs: number; postgresUs: number }

const people = 1_000
const print = (line: string) => process.stdout.write(`${line}\n`)

/** Measures each row with little and with much data in alternation, and prints both sizes and their ratio. */
export async function measureGrowth(words: readonly string[]): Promise<void> {
  const { rows, rounds } = readGrowthOptions(words)
  print(`Medians of ${rounds} rounds, small and large in alternation; for each request or item`)
  print(formatLine('', '', ['ms', 'Node µs', 'PG µs'], ''))
  await withPostgres(async context => {
    const openSide = (name: string) => Side.open(context, { name, checkout, people, workers: 1 })
    for (const row of rows) await measureRow(row, await openSide(row.name.replaceAll('-', '_')), openSide, rounds)
  })
}

async function measureRow(row: GrowthRow, side: Side, openSide: (name: string) => Promise<Side>, rounds: number) {
  const { small, large } = await row.prepare(side, openSide)
  for (const { service } of new Set([small.side, large.side]))
    await inDatabase(service.url, client => client.query('vacuum (analyze)'))
  const figures: Record<'small' | 'large', Figures[]> = { small: [], large: [] }
  // The first round fills caches and compiles code.
  for (let round = 0; round <= rounds; round += 1) {
    const sides = [['small', small] as const, ['large', large] as const]
    for (const [name, sized] of round % 2 === 0 ? sides : sides.toReversed()) {
      const measured = await measureOnce(sized)
      if (round > 0) figures[name].push(measured)
    }
  }
  await small.side.stop()
  if (large.side !== small.side) await large.side.stop()
  const [few, many] = [medianOf(figures.small), medianOf(figures.large)]
  print(formatLine(row.name, small.size, few.map(formatNumber), ''))
  print(formatLine('', large.size, many.map(formatNumber), `wanted ${row.wanted}`))
  print(
    formatLine(
      '',
      'ratio',
      few.map((value, index) => (many[index]! / value).toFixed(2)),
      '',
    ),
  )
}

async function measureOnce({ side, work }: SizedWork): Promise<Figures> {
  const { service, postgres } = side
  await side.settle()
  const startedMs = performance.now()
  const { result, usage } = await withUsage({ service, postgres }, work)
  return {
    ms: (performance.now() - startedMs) / result,
    nodeUs: usage.nodeUs / result,
    postgresUs: usage.postgresUs / result,
  }
}

const medianOf = (rounds: readonly Figures[]) =>
  (['ms', 'nodeUs', 'postgresUs'] as const).map(name => median(rounds.map(round => round[name])))

const formatNumber = (value: number) => (value < 10 ? value.toFixed(2) : Math.round(value).toLocaleString('en'))
const formatLine = (name: string, size: string, figures: readonly string[], note: string) =>
  `${name.padEnd(16)} ${size.padEnd(28)} ${figures.map(figure => figure.padStart(9)).join(' ')}  ${note}`.trimEnd()

function readGrowthOptions(words: readonly string[]) {
  const { values } = parseArgs({
    args: [...words],
    options: { only: { type: 'string' }, rounds: { type: 'string', default: '5' } },
  })
  const names = values.only?.split(',') ?? growthRows.map(({ name }) => name)
  const unknown = names.find(name => !growthRows.some(row => row.name === name))
  if (unknown !== undefined)
    throw new Error(`--only takes names of rows: ${growthRows.map(({ name }) => name).join(', ')}.`)
  if (!/^[1-9]\d?$/.test(values.rounds)) throw new Error('--rounds takes an integer from 1 to 99.')
  return { rows: growthRows.filter(({ name }) => names.includes(name)), rounds: Number(values.rounds) }
}
