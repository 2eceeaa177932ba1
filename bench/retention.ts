import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { inDatabase, serverVersion } from './database.ts'
import { percentile } from './measure.ts'
import { printPlatform } from './report.ts'
import { type BenchTarget, withPostgres } from './run.ts'

const minRatio = 0.9
const connections = 32

const checkout = fileURLToPath(new URL('..', import.meta.url))
const print = (line = '') => process.stdout.write(`${line}\n`)

/** Events of two years ago, each with its creation in the log, an indexed value and a link to a person. */
const insertEventsSql = `
insert into entities (organization_id, stack_id, id, external_id, active, version, attributes, created_at, updated_at, has_keys)
select $1, 1, ('5f000000-0000-0000-0000-' || lpad(to_hex(i), 8, '0') || '0000')::uuid, 'event ' || i, true, 1,
  jsonb_build_object('page', '/pages/' || i % 1000), now() - interval '2 years', now() - interval '2 years', true
from generate_series(1, $2::integer) i`
const insertChangesSql = `
insert into changes (organization_id, sequence, at, subject, stack_id, entity_id, operation, version, after, actor, request_id)
select $1, h.sequence + i, now() - interval '2 years', 'entity', 1,
  ('5f000000-0000-0000-0000-' || lpad(to_hex(i), 8, '0') || '0000')::uuid, 'create', 1,
  jsonb_build_object('external_id', 'event ' || i, 'state', 'active', 'attribute_values', jsonb_build_object('page', '/pages/' || i % 1000)),
  'importer', i::text
from generate_series(1, $2::integer) i cross join change_heads h where h.organization_id = $1`
const insertLinksSql = `
insert into links (organization_id, source_id, attribute_id, target_stack_id, target_id, position)
select $1, ('5f000000-0000-0000-0000-' || lpad(to_hex(i), 8, '0') || '0000')::uuid, $3, 0,
  ('01900000-0000-7000-8000-' || lpad(to_hex(1 + i % 1000), 12, '0'))::uuid, 0
from generate_series(1, $2::integer) i`

async function declare({ service }: BenchTarget, path: string, body: object): Promise<{ id: number }> {
  const response = await fetch(`${service.address}/v1/schema/${path}`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${service.token}`, 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (!response.ok) throw new Error(await response.text())
  return ((await response.json()) as { data: { id: number } }).data
}

async function fill(target: BenchTarget, events: number): Promise<void> {
  await declare(target, 'stacks', { key: 'visits', kind: 'event', retention_days: 365 })
  const { id } = await declare(target, 'attributes', { owner: 'visits', key: 'visitor', type: 'person' })
  await inDatabase(target.service.url, async client => {
    const organization = target.large.id
    await pauseRetention(target, true)
    await client.query(insertEventsSql, [organization, events])
    await client.query(insertChangesSql, [organization, events])
    await client.query(insertLinksSql, [organization, events, id])
    await client.query('update change_heads set sequence = sequence + $2 where organization_id = $1', [
      organization,
      events,
    ])
    await client.query(`update followers set sequence = h.sequence from change_heads h
      where h.organization_id = followers.organization_id and followers.name <> 'retention'`)
    await client.query('vacuum (analyze)')
    await client.query('checkpoint')
  })
}

/** Holds the retention back, or lets it work at once. A set that runs is awaited. */
async function pauseRetention({ service, large }: BenchTarget, isPaused: boolean): Promise<void> {
  await inDatabase(service.url, client =>
    client.query(
      `insert into followers (organization_id, name, paused) values ($1, 'retention', $2)
       on conflict (organization_id, name, id) do update set paused = $2, not_before = null`,
      [large.id, isPaused],
    ),
  )
}

const countEvents = ({ service, large }: BenchTarget) =>
  inDatabase(service.url, async client => {
    const { rows } = await client.query<{ count: number }>(
      'select count(*)::integer as count from entities where organization_id = $1 and stack_id = 1',
      [large.id],
    )
    return rows[0]!.count
  })

/** Sends PATCHes of random people over all connections. Returns the times in milliseconds. */
async function patchPeople({ service, large }: BenchTarget, seconds: number): Promise<number[]> {
  const times: number[] = []
  const untilMs = performance.now() + seconds * 1_000
  const work = async () => {
    while (performance.now() < untilMs) {
      const began = performance.now()
      const response = await fetch(`${service.address}/v1/people/p${1 + Math.floor(Math.random() * large.people)}`, {
        method: 'PATCH',
        headers: { Authorization: `Bearer ${service.token}`, 'Content-Type': 'application/json' },
        body: JSON.stringify({ first_name: `First ${Math.random()}` }),
      })
      if (!response.ok) throw new Error(await response.text())
      await response.arrayBuffer()
      times.push(performance.now() - began)
    }
  }
  await Promise.all(Array.from({ length: connections }, work))
  return times
}

/** Measures PATCHes without and with the retention of old events, in alternation. */
async function main() {
  const { values } = parseArgs({
    options: {
      events: { type: 'string', default: '200000' },
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '5' },
    },
  })
  const [events, rounds, seconds] = [Number(values.events), Number(values.rounds), Number(values.seconds)]
  const options = { people: 100_000, rounds: 1, seconds: 1, workers: 1, rows: [] }
  await withPostgres(options, async ({ addTarget }) => {
    const target = await addTarget(checkout, 'bench')
    await fill(target, events)
    printPlatform(await serverVersion(target.service))
    await patchPeople(target, 2)
    const times: Record<'without' | 'with', number[]> = { without: [], with: [] }
    let erased = 0
    for (let round = 0; round < rounds; round += 1)
      for (const side of round % 2 === 0 ? (['without', 'with'] as const) : (['with', 'without'] as const)) {
        const before = await countEvents(target)
        await pauseRetention(target, side === 'without')
        times[side].push(...(await patchPeople(target, seconds)))
        await pauseRetention(target, true)
        await setTimeout(500)
        erased += before - (await countEvents(target))
      }
    const [without, beside] = [times.without.length, times.with.length].map(count => count / (rounds * seconds)) as [
      number,
      number,
    ]
    const p99 = (side: 'without' | 'with') => percentile(times[side], 0.99).toFixed(1)
    print(`PATCH of ${connections} connections, ${rounds} rounds of ${seconds} s on each side`)
    print(`  without retention ${without.toFixed(0)}/s, p99 ${p99('without')} ms`)
    print(
      `  with retention    ${beside.toFixed(0)}/s, p99 ${p99('with')} ms: ${(erased / (rounds * seconds)).toFixed(0)} records erased per second`,
    )
    const ratio = beside / without
    print(`  ratio ${ratio.toFixed(3)} (at least ${minRatio}): ${ratio >= minRatio ? 'met' : 'NOT MET'}`)
  })
}

await main()
