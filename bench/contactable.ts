import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type pg from 'pg'
import { readManyContactFactsSql } from '../src/consents/contactable-sql.ts'
import { inDatabase, serverVersion } from './database.ts'
import { percentile } from './measure.ts'
import { minPeople } from './options.ts'
import { printPlatform } from './report.ts'
import { type BenchTarget, withPostgres } from './run.ts'
import { createToken } from './tokens.ts'

const maxCallMs = 30
const namesPerCall = 1_000

const checkout = fileURLToPath(new URL('..', import.meta.url))
const print = (line = '') => process.stdout.write(`${line}\n`)

const peoplePerStatement = 250_000

/** The people from $2 to $3 as created by one change each. */
const fillChangesSql = `
insert into changes (organization_id, sequence, at, subject, stack_id, entity_id, operation, version, after, actor, request_id)
select $1, i, now(), 'entity', 0, ('01900000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, 'create', 1,
  jsonb_build_object('external_id', 'p' || i, 'email', 'p' || i || '@example.org', 'state', 'active'), 'importer', i::text
from generate_series($2::bigint, $3::bigint) i`

/** Nine of ten people have answered to two consent types, with evidence. Every second answer refuses. */
const fillAnswersSql = `
insert into consent_history (organization_id, person_id, version, consent_type_id, channel, state, source, at, actor, request_id,
  collected_at, evidence)
select $1, ('01900000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, 1, t.id, 'email', i % 2 = 0, 'entry', now(), 'importer',
  i::text, now() - interval '1 year', jsonb_build_object('method', 'web_form', 'source', 'https://example.org/newsletter',
    'ip', '192.0.2.' || i % 256, 'user_agent', 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0', 'text_version', 1)
from generate_series($2::bigint, $3::bigint) i cross join unnest($4::integer[]) t(id) where i % 10 <> 0`

/** The answers that stand, in the rows of the people. */
const fillStandingAnswersSql = `
update entities e set answers = standing.answers
from generate_series($2::bigint, $3::bigint) i cross join lateral (
  select jsonb_object_agg(t.id || ':email', jsonb_build_object('state', i % 2 = 0, 'method', 'web_form', 'text_version', 1,
    'answered_at', to_char(now() at time zone 'utc' - interval '1 year', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))) as answers
  from unnest($4::integer[]) t(id)
) standing
where e.organization_id = $1 and e.stack_id = 0
  and e.id = ('01900000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid and i % 10 <> 0`

async function fill({ service, large }: BenchTarget): Promise<void> {
  await inDatabase(service.url, async client => {
    await client.query('delete from changes where organization_id = $1', [large.id])
    for (let from = 1; from <= large.people; from += peoplePerStatement) {
      const until = Math.min(large.people, from + peoplePerStatement - 1)
      await client.query(fillChangesSql, [large.id, from, until])
      for (const text of [fillAnswersSql, fillStandingAnswersSql])
        await client.query(text, [large.id, from, until, large.consentTypeIds])
    }
    await client.query(
      `insert into consent_texts (organization_id, consent_type_id, version, language, text, sha256, created_at)
       select $1, t.id, 1, 'en', 'Yes', sha256('Yes'), now() from unnest($2::integer[]) t(id)`,
      [large.id, large.consentTypeIds],
    )
    // The followers of the log have nothing to do with these changes.
    for (const table of ['followers', 'change_heads'])
      await client.query(`update ${table} set sequence = $2 where organization_id = $1`, [large.id, large.people])
    await client.query('vacuum (analyze)')
    await client.query('checkpoint')
  })
}

const pickNames = (people: number) =>
  Array.from({ length: namesPerCall }, () => `p${1 + Math.floor(Math.random() * people)}`)

/** Runs the statement, planned as the service plans it. Returns PostgreSQL's times in milliseconds. */
async function explainCalls(client: pg.Client, { large }: BenchTarget, calls: number): Promise<number[]> {
  for (const setting of ['enable_seqscan = off', 'jit = off', 'plan_cache_mode = force_generic_plan'])
    await client.query(`set ${setting}`)
  await client.query(`prepare facts as ${readManyContactFactsSql.text}`)
  const times: number[] = []
  for (let call = 0; call < calls; call += 1) {
    const names = `'{${pickNames(large.people).join()}}'`
    const { rows } = await client.query<{ 'QUERY PLAN': [{ 'Execution Time': number }] }>(
      `explain (analyze, timing off, format json) execute facts (${large.id}, ${names}, ${large.consentTypeIds[0]}, 'email')`,
    )
    times.push(rows[0]!['QUERY PLAN'][0]['Execution Time'])
  }
  return times
}

async function timeCalls({ service, large }: BenchTarget, token: string, calls: number): Promise<number[]> {
  const times: number[] = []
  for (let call = 0; call < calls; call += 1) {
    const external_ids = pickNames(large.people)
    const body = JSON.stringify({ external_ids, consent_type_id: large.consentTypeIds[0], channel: 'email' })
    const began = performance.now()
    const response = await fetch(`${service.address}/v1/people/contactable`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      body,
    })
    const { data } = (await response.json()) as { data: { items: { allowed: boolean }[] } }
    times.push(performance.now() - began)
    const allowed = data.items.filter(item => item.allowed).length
    if (data.items.length !== namesPerCall || allowed < 300 || allowed > 500)
      throw new Error(`A call allowed ${allowed} of ${data.items.length} people.`)
  }
  return times
}

/** Measures a decision about 1,000 random people, with the evidence of their answers. */
async function main() {
  const { values } = parseArgs({
    options: { people: { type: 'string', default: '1000000' }, calls: { type: 'string', default: '200' } },
  })
  const [people, calls] = [Number(values.people), Number(values.calls)]
  if (!(people >= minPeople)) throw new Error(`--people takes a number from ${minPeople}.`)
  const options = { people, rounds: 1, seconds: 1, workers: 1, rows: [] }
  await withPostgres(options, async ({ addTarget }) => {
    const target = await addTarget(checkout, 'bench')
    const token = await createToken(checkout, target.service, 'consents:read')
    await fill(target)
    printPlatform(await serverVersion(target.service))
    print(`decisions about ${namesPerCall} of ${people.toLocaleString('en')} people`)
    const format = (times: number[]) =>
      `p50 ${percentile(times, 0.5).toFixed(1)} ms, p99 ${percentile(times, 0.99).toFixed(1)} ms`
    const inPostgres = await inDatabase(target.service.url, client => explainCalls(client, target, calls))
    print(`  the statement in the database: ${format(inPostgres)}`)
    const byHttp = await timeCalls(target, token, calls)
    const isMet = percentile(byHttp, 0.5) <= maxCallMs
    print(`  the call by HTTP: ${format(byHttp)} (p50 at most ${maxCallMs} ms): ${isMet ? 'met' : 'NOT MET'}`)
  })
}

await main()
