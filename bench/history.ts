import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type pg from 'pg'
import { readHistorySql } from '../src/changes/sql.ts'
import { inDatabase, serverVersion } from './database.ts'
import { median, percentile } from './measure.ts'
import { minPeople } from './options.ts'
import { printPlatform } from './report.ts'
import { type BenchTarget, withPostgres } from './run.ts'
import { createToken } from './tokens.ts'

const maxPageMs = 10

const checkout = fileURLToPath(new URL('..', import.meta.url))
const print = (line = '') => process.stdout.write(`${line}\n`)

/** The default page, and one more change. */
const pageLimit = 101
const pageBytes = 1_048_576
const noVersion = 2_147_483_647
const changesPerStatement = 500_000

/**
 * Changes of an organization: every n-th one updates the person p1, so that its versions lie all over the table. The others update
 * entities that have a few versions each.
 */
const fillSql = `
insert into changes (organization_id, sequence, at, subject, stack_id, entity_id, operation, version, before, after, actor,
  request_id)
select $1, n, now() - ($4::bigint - n) * interval '1 ms', 'entity', 0,
  ('01900000-0000-7000-8000-' || lpad(to_hex(case when n % $5 = 0 then 1 else 2 + n / 10 end), 12, '0'))::uuid,
  'update', case when n % $5 = 0 then n / $5 else 1 + n % 10 end,
  jsonb_build_object('first_name', 'A ' || n, 'last_name', 'B', 'attribute_values', jsonb_build_object('score', n)),
  jsonb_build_object('first_name', 'F ' || n, 'last_name', 'L', 'attribute_values', jsonb_build_object('score', n + 1)),
  'importer', n::text
from generate_series($2::bigint, $3::bigint) n`

/** Replaces the log of the large organization. */
async function fill({ service, large }: BenchTarget, changes: number, versions: number): Promise<void> {
  await inDatabase(service.url, async client => {
    await client.query('delete from changes where organization_id = $1', [large.id])
    for (let from = 1; from <= changes; from += changesPerStatement) {
      const until = Math.min(changes, from + changesPerStatement - 1)
      await client.query(fillSql, [large.id, from, until, changes, changes / versions])
    }
    // The followers of the log have nothing to do with these changes.
    for (const table of ['followers', 'change_heads'])
      await client.query(`update ${table} set sequence = $2 where organization_id = $1`, [large.id, changes])
    await client.query('vacuum (analyze) changes')
    await client.query('checkpoint')
  })
}

type Plan = { 'Execution Time': number; Plan: { 'Shared Hit Blocks': number; 'Shared Read Blocks': number } }

/** Runs the statement of a page, planned as the service plans it. Returns PostgreSQL's times in milliseconds, and the pages read. */
async function explainPages(client: pg.Client, organization_id: number, befores: readonly number[]) {
  const values = (before: number) =>
    `${organization_id}, '01900000-0000-7000-8000-000000000001', 0, ${before}, ${pageLimit}, ${pageBytes}`
  const times: number[] = []
  let blocks = 0
  for (const before of befores) {
    const { rows } = await client.query<{ 'QUERY PLAN': [Plan] }>(
      `explain (analyze, buffers, timing off, format json) execute page (${values(before)})`,
    )
    const [{ 'Execution Time': ms, Plan: plan }] = rows[0]!['QUERY PLAN']
    times.push(ms)
    blocks = Math.max(blocks, plan['Shared Hit Blocks'] + plan['Shared Read Blocks'])
  }
  return { first: times[0]!, p50: median(times), most: Math.max(...times), blocks }
}

async function prepare(client: pg.Client) {
  for (const setting of ['enable_seqscan = off', 'jit = off', 'plan_cache_mode = force_generic_plan'])
    await client.query(`set ${setting}`)
  await client.query(`prepare page as ${readHistorySql.text}`)
}

async function timeRequests({ service }: BenchTarget, token: string, query: string, count: number) {
  const times: number[] = []
  for (let sent = 0; sent < count; sent += 1) {
    const began = performance.now()
    const response = await fetch(`${service.address}/v1/people/p1/history${query}`, {
      headers: { Authorization: `Bearer ${token}` },
    })
    const { data } = (await response.json()) as { data: { items: object[]; has_more: boolean } }
    times.push(performance.now() - began)
    if (data.items.length !== pageLimit - 1 || !data.has_more)
      throw new Error(`A page has ${data.items.length} changes.`)
  }
  return { p50: percentile(times, 0.5), p99: percentile(times, 0.99) }
}

/** Measures a page of the history of a person with many versions, among many changes of others. */
async function main() {
  const { values } = parseArgs({
    options: {
      changes: { type: 'string', default: '1000000' },
      versions: { type: 'string', default: '10000' },
      pages: { type: 'string', default: '200' },
    },
  })
  const [changes, versions, pages] = [Number(values.changes), Number(values.versions), Number(values.pages)]
  if (changes % versions !== 0) throw new Error('--changes takes a multiple of --versions.')
  const options = { people: minPeople, rounds: 1, seconds: 1, workers: 1, rows: [] }
  await withPostgres(options, async ({ addTarget }) => {
    const target = await addTarget(checkout, 'bench')
    const token = await createToken(checkout, target.service, 'changes:read people:read')
    await fill(target, changes, versions)
    printPlatform(await serverVersion(target.service))
    print(`${versions.toLocaleString('en')} versions of a person among ${changes.toLocaleString('en')} changes`)
    const places = { first: () => noVersion, any: () => pageLimit + Math.ceil(Math.random() * (versions - pageLimit)) }
    await inDatabase(target.service.url, async client => {
      await prepare(client)
      for (const [name, before] of Object.entries(places)) {
        const befores = Array.from({ length: pages }, before)
        const { first, p50, most, blocks } = await explainPages(client, target.large.id, befores)
        const isMet = p50 <= maxPageMs
        print(
          `  ${name} page in the database: the first read ${first.toFixed(2)} ms, p50 ${p50.toFixed(2)} ms, at most ${most.toFixed(2)} ms, ${blocks} blocks (p50 at most ${maxPageMs} ms): ${isMet ? 'met' : 'NOT MET'}`,
        )
      }
    })
    const { p50, p99 } = await timeRequests(target, token, '', pages)
    print(`  first page by HTTP: p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms`)
  })
}

await main()
