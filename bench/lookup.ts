import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type pg from 'pg'
import type { Statement } from '../src/db/db.ts'
import { readPageByKey } from '../src/entities/read/read-sql.ts'
import { findMatchesSql } from '../src/entities/write/match-sql.ts'
import { inDatabase, serverVersion } from './database.ts'
import { percentile } from './measure.ts'
import { minPeople } from './options.ts'
import { printPlatform } from './report.ts'
import { type BenchTarget, withPostgres } from './run.ts'

const maxStatementMs = 1
const firstId = '00000000-0000-0000-0000-000000000000'

const checkout = fileURLToPath(new URL('..', import.meta.url))
const print = (line = '') => process.stdout.write(`${line}\n`)

/** A statement to measure, and its parameters for the person n as SQL. */
type Measured = { name: string; statement: Statement; parameters: (n: number) => string }

const page = `'${firstId}', 101, 10000`

const measured: Measured[] = [
  { name: 'look-up by email', statement: readPageByKey.email, parameters: n => `'p${n}@example.org', ${page}` },
  { name: 'look-up by phone', statement: readPageByKey.mobile, parameters: n => `'+39${3_000_000_000 + n}', ${page}` },
  { name: 'look-up of nobody', statement: readPageByKey.email, parameters: n => `'q${n}@example.org', ${page}` },
  {
    name: 'match by all keys',
    statement: findMatchesSql,
    parameters: n =>
      `'[{"number":0,"external_id":"p${n}","email":"p${n}@example.org","mobile":"+39${3_000_000_000 + n}"}]', 11`,
  },
]

type Explained = { 'Execution Time': number; Plan: { 'Shared Hit Blocks': number; 'Shared Read Blocks': number } }

/** Runs a statement for random people, planned as the service plans it. Prints PostgreSQL's times and the pages that it touches. */
async function explainCalls(client: pg.Client, { large }: BenchTarget, calls: number, each: Measured) {
  const { name, statement, parameters } = each
  await client.query(`prepare measured as ${statement.text}`)
  const times: number[] = []
  const pages: number[] = []
  for (let call = 0; call < calls; call += 1) {
    const n = 1 + Math.floor(Math.random() * large.people)
    const { rows } = await client.query<{ 'QUERY PLAN': [Explained] }>(
      `explain (analyze, buffers, timing off, format json) execute measured (${large.id}, ${parameters(n)})`,
    )
    const { Plan, 'Execution Time': ms } = rows[0]!['QUERY PLAN'][0]
    times.push(ms)
    pages.push(Plan['Shared Hit Blocks'] + Plan['Shared Read Blocks'])
  }
  await client.query('deallocate measured')
  const isMet = percentile(times, 0.5) <= maxStatementMs
  print(
    `  ${name.padEnd(18)} p50 ${percentile(times, 0.5).toFixed(3)} ms, p99 ${percentile(times, 0.99).toFixed(3)} ms, ` +
      `at most ${Math.max(...pages)} pages (p50 at most ${maxStatementMs} ms): ${isMet ? 'met' : 'NOT MET'}`,
  )
}

/** Measures look-ups of random people in the database. */
async function main() {
  const { values } = parseArgs({
    options: { people: { type: 'string', default: '1000000' }, calls: { type: 'string', default: '500' } },
  })
  const [people, calls] = [Number(values.people), Number(values.calls)]
  if (!(people >= minPeople)) throw new Error(`--people takes a number from ${minPeople}.`)
  const options = { people, rounds: 1, seconds: 1, workers: 1, rows: [] }
  await withPostgres(options, async ({ addTarget }) => {
    const target = await addTarget(checkout, 'bench')
    printPlatform(await serverVersion(target.service))
    print(`look-ups among ${people.toLocaleString('en')} people, in the database`)
    await inDatabase(target.service.url, async client => {
      for (const setting of ['jit = off', 'plan_cache_mode = force_generic_plan']) await client.query(`set ${setting}`)
      for (const each of measured) await explainCalls(client, target, calls, each)
    })
  })
}

await main()
