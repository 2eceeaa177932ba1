import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { inDatabase, serverVersion } from './database.ts'
import { minPeople } from './options.ts'
import { printPlatform } from './report.ts'
import { type BenchTarget, withPostgres } from './run.ts'

const maxFirstPageMs = 1_000
const maxAllPagesMs = 60_000
const groupsPerPage = 100

const checkout = fileURLToPath(new URL('..', import.meta.url))
const print = (line = '') => process.stdout.write(`${line}\n`)

/**
 * Gives each person keys of its own, and a share of the people one key of somebody else: the email, the phone, or the name with date
 * of birth.
 */
const fillKeysSql = `
update entities e set has_keys = true, email_key = 'p' || p.email || '@example.org', mobile_key = '+39' || (3000000000 + p.mobile),
  name_key = 'first ' || p.name || E'\\n' || 'last' || E'\\n' || '1990-01-01'
from (
  select i.id, i.number - case when i.is_double and i.number % 3 = 0 then 3 else 0 end as email,
    i.number - case when i.is_double and i.number % 3 = 1 then 3 else 0 end as mobile,
    i.number - case when i.is_double and i.number % 3 = 2 then 3 else 0 end as name
  from (
    select x.id, substr(x.external_id, 2)::bigint as number, (substr(x.external_id, 2)::bigint / 3) % $2::bigint = $2::bigint - 1 as is_double
    from entities x where x.organization_id = $1 and x.stack_id = 0 and x.external_id ~ '^p[0-9]+$'
  ) i
) p where e.organization_id = $1 and e.stack_id = 0 and e.id = p.id`

type Fill = { what: string; every: number }
// Every tenth triple of people repeats keys of the one before it. With the large number, none does.
const fills: Fill[] = [
  { what: 'every tenth person is a duplicate', every: 10 },
  { what: 'nobody is a duplicate', every: 1_000_000_000 },
]

async function fillKeys({ service, large }: BenchTarget, { every }: Fill): Promise<void> {
  await inDatabase(service.url, async client => {
    await client.query(fillKeysSql, [large.id, every])
    await client.query('update entities set has_keys = true where not has_keys')
    await client.query('vacuum (full, analyze) entities')
    await client.query('vacuum entities')
    await client.query('checkpoint')
  })
}

type Page = { items: { size: number }[]; next_cursor: string | null }

async function readPage({ service }: BenchTarget, cursor: string | null): Promise<Page> {
  const response = await fetch(`${service.address}/v1/people/duplicates`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${service.token}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ size: groupsPerPage, ...(cursor !== null && { cursor }) }),
  })
  if (!response.ok) throw new Error(await response.text())
  return ((await response.json()) as { data: Page }).data
}

async function readAll(target: BenchTarget) {
  const began = performance.now()
  let page = await readPage(target, null)
  const firstMs = performance.now() - began
  let [pages, groups, slowestMs] = [1, page.items.length, firstMs]
  while (page.next_cursor !== null) {
    const sent = performance.now()
    page = await readPage(target, page.next_cursor)
    slowestMs = Math.max(slowestMs, performance.now() - sent)
    pages += 1
    groups += page.items.length
  }
  return { pages, groups, firstMs, slowestMs, allMs: performance.now() - began }
}

const verdict = (isMet: boolean) => (isMet ? 'met' : 'NOT MET')

/** Measures the search for duplicates among many people: the first page and all pages, with duplicates and without any. */
async function main() {
  const { values } = parseArgs({ options: { people: { type: 'string', default: '1000000' } } })
  const people = Number(values.people)
  if (!(people >= minPeople)) throw new Error(`--people takes a number from ${minPeople}.`)
  const options = { people, rounds: 1, seconds: 1, workers: 1, rows: [] }
  await withPostgres(options, async ({ addTarget }) => {
    const target = await addTarget(checkout, 'bench')
    printPlatform(await serverVersion(target.service))
    for (const fill of fills) {
      await fillKeys(target, fill)
      const { pages, groups, firstMs, slowestMs, allMs } = await readAll(target)
      print(
        `${people.toLocaleString('en')} people, ${fill.what}: ${groups} groups on ${pages} pages of ${groupsPerPage}`,
      )
      print(
        `  first page ${firstMs.toFixed(0)} ms (at most ${maxFirstPageMs} ms): ${verdict(firstMs <= maxFirstPageMs)}`,
      )
      print(`  slowest page ${slowestMs.toFixed(0)} ms`)
      print(
        `  all pages ${(allMs / 1_000).toFixed(1)} s (at most ${maxAllPagesMs / 1_000} s): ${verdict(allMs <= maxAllPagesMs)}`,
      )
    }
  })
}

await main()
