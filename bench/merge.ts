import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { inDatabase, serverVersion } from './database.ts'
import { minPeople } from './options.ts'
import { printPlatform } from './report.ts'
import { type BenchTarget, withPostgres } from './run.ts'
import { createToken } from './tokens.ts'

const maxRequestMs = 10_000

const checkout = fileURLToPath(new URL('..', import.meta.url))
const print = (line = '') => process.stdout.write(`${line}\n`)

/** $1: organization, $2: attribute, $3: target, $4: prefix of the sources, $5: their number. Inserts people that link to the target. */
const fillLinksSql = `
with sources as (
  select gen_random_uuid() as id, $4 || i as external_id from generate_series(1, $5::integer) i
), inserted as (
  insert into entities (organization_id, stack_id, id, external_id, active, version, attributes, created_at, updated_at, has_keys)
  select $1, 0, s.id, s.external_id, true, 1, '{}', now(), now(), true from sources s
), logged as (
  insert into changes (organization_id, sequence, at, subject, stack_id, entity_id, operation, version, after, actor, request_id, link_targets)
  select $1, h.sequence + row_number() over (), now(), 'entity', 0, s.id, 'create', 1,
    jsonb_build_object('external_id', s.external_id, 'state', 'active'), 'importer', '1',
    jsonb_build_object($2::integer::text, jsonb_build_array($3::uuid))
  from sources s, change_heads h where h.organization_id = $1
), head as (
  update change_heads set sequence = sequence + $5 where organization_id = $1
)
insert into links (organization_id, source_id, attribute_id, target_stack_id, target_id, position)
select $1, s.id, $2, 0, $3, 0 from sources s`

type Api = (method: string, path: string, body: object) => Promise<{ data: Record<string, unknown>; ms: number }>

const apiOf =
  (address: string, token: string): Api =>
  async (method, path, body) => {
    const began = performance.now()
    const response = await fetch(`${address}${path}`, {
      method,
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    })
    const text = await response.text()
    const ms = performance.now() - began
    if (!response.ok) throw new Error(`${method} ${path} returned ${response.status}: ${text}`)
    return { data: (JSON.parse(text) as { data: Record<string, unknown> }).data, ms }
  }

/** Merges and unmerges two people to whom `links` people link each. */
async function measure({ service, large }: BenchTarget, api: Api, links: number) {
  const attribute = await api('POST', '/v1/schema/attributes', {
    key: `linked_${links}`,
    owner: 'people',
    type: 'person',
  })
  const names = [`ada-${links}`, `bob-${links}`]
  await inDatabase(service.url, async client => {
    for (const external_id of names) {
      const { data } = await api('POST', '/v1/people', { external_id })
      await client.query(fillLinksSql, [large.id, attribute.data.id, data.id, `${external_id}-`, links])
    }
    await client.query('analyze entities, links, changes')
  })
  const [ada, bob] = names
  for (const path of ['merge', 'unmerge'] as const) {
    const { data, ms } = await api('POST', `/v1/people/${ada}/${path}`, { from: bob })
    const { moved_in } = (data.changes as { links: { moved_in: number } }).links
    if (moved_in !== links) throw new Error(`The ${path} moved ${moved_in} of ${links} links.`)
    const isMet = ms <= maxRequestMs
    print(
      `  ${path.padEnd(8)} ${String(links).padStart(7)} links each: ${ms.toFixed(0)} ms (at most ${maxRequestMs} ms): ${isMet ? 'met' : 'NOT MET'}`,
    )
  }
}

/** Measures merges of two people with many links each. */
async function main() {
  const { values } = parseArgs({ options: { links: { type: 'string', default: '100,10000,50000' } } })
  const options = { people: minPeople, rounds: 1, seconds: 1, workers: 1, rows: [] }
  await withPostgres(options, async ({ addTarget }) => {
    const target = await addTarget(checkout, 'bench')
    const api = apiOf(
      target.service.address,
      await createToken(checkout, target.service, 'people:read people:write schema:write'),
    )
    printPlatform(await serverVersion(target.service))
    print('merges of two people, and their undoing')
    for (const links of values.links.split(',')) await measure(target, api, Number(links))
  })
}

await main()
