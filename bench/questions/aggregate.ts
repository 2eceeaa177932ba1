// Measures aggregates of a million records over HTTP, each of which reads all of them.
//   node bench/questions/aggregate.ts --records 1000000

import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { prepareCleanup } from '../cleanup.ts'
import { inDatabase, serverVersion } from '../database.ts'
import { type Service, startPostgres, startService } from '../environment.ts'
import { median } from '../measure.ts'
import { printPlatform } from '../report.ts'
import { waitForIndexes } from './population.ts'
import type { QuestionsPart } from './questions-part.ts'

const maxByTwoFieldsMs = 3_000

const checkout = fileURLToPath(new URL('../..', import.meta.url))
const print = (line = '') => process.stdout.write(`${line}\n`)
const field = (key: string) => `attribute_values.${key}`

const count = { op: 'count' }
const revenue = { op: 'sum', field: field('total') }
const byCountry = field('country')
const month = { field: 'created_at', by: 'month', time_zone: 'Europe/Berlin' }

/** The aggregates, with the statuses of their responses. Those by two fields have a limit. Some are refused from so many records on. */
const measured: { name: string; body: object; status: number; maxMs?: number; minRecords?: number }[] = [
  { name: 'count of all', body: {}, status: 200 },
  { name: 'by country', body: { group_by: [byCountry], measures: [count, revenue] }, status: 200 },
  { name: 'by month', body: { group_by: [month], measures: [count, revenue] }, status: 200 },
  {
    name: 'by month and country',
    body: { group_by: [month, byCountry], measures: [count, revenue] },
    status: 200,
    maxMs: maxByTwoFieldsMs,
  },
  {
    name: 'by month of a datetime and country',
    body: {
      group_by: [{ field: field('paid_at'), by: 'month', time_zone: 'Europe/Berlin' }, byCountry],
      measures: [revenue],
    },
    status: 200,
    maxMs: maxByTwoFieldsMs,
  },
  {
    name: 'by country and channel',
    body: { group_by: [byCountry, field('channel')], measures: [revenue] },
    status: 200,
    maxMs: maxByTwoFieldsMs,
  },
  {
    name: 'ten measures by country',
    body: {
      group_by: [byCountry],
      measures: ['sum', 'avg', 'min', 'max', 'count'].flatMap(op => [
        { op, field: field('total') },
        { op: op === 'sum' || op === 'avg' ? 'count' : op, field: field('country') },
      ]),
    },
    status: 200,
  },
  { name: 'by a relationship', body: { group_by: [field('product')], measures: [revenue] }, status: 200 },
  {
    name: 'an indexed tenth by month',
    body: { filter: { [field('total')]: { $lt: 10 } }, group_by: [month] },
    status: 200,
  },
  { name: 'by a number of each record', body: { group_by: [field('number')] }, status: 400, minRecords: 20_000 },
  { name: 'by a number of fifty records', body: { group_by: [field('fifty')] }, status: 400, minRecords: 1_000_000 },
]

async function declare({ address, token }: Service, path: string, body: object): Promise<{ id: number }> {
  const response = await send({ address, token }, 'POST', `/v1/schema/${path}`, body)
  if (!response.ok) throw new Error(await response.text())
  return ((await response.json()) as { data: { id: number } }).data
}

function send({ address, token }: Pick<Service, 'address' | 'token'>, method: string, path: string, body: object) {
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
  return fetch(`${address}${path}`, { method, headers, body: JSON.stringify(body) })
}

const idOf = (kind: string, n: string) => `('${kind}0000-0000-7000-8000-' || lpad(to_hex(${n}), 12, '0'))::uuid`

/** Inserts records as kith stores them, and waits until one attribute is indexed. */
async function populate(service: Service, records: number) {
  for (const key of ['orders', 'products']) await declare(service, 'stacks', { key, kind: 'item' })
  const attribute = (key: string, type: string, more = {}) =>
    declare(service, 'attributes', { owner: 'orders', key, type, ...more })
  await attribute('total', 'number', { indexed: true })
  await attribute('country', 'text')
  await attribute('paid_at', 'datetime')
  const { id: product } = await attribute('product', 'stack', { target_stack: 'products' })
  await inDatabase(service.url, async client => {
    const { rows } = await client.query<{ id: number }>(`select id from organizations where key = 'default'`)
    const id = rows[0]!.id
    await client.query(
      `insert into entities (organization_id, stack_id, id, external_id, active, version, attributes, created_at, updated_at)
       select $1, 1, ${idOf('6600', 'i')}, 'o' || i, true, 1,
         jsonb_build_object('total', (hashint4(i) & 9999)::numeric / 100, 'country', chr(65 + i % 40 / 26) || chr(65 + i % 26),
           'paid_at', to_char(t.at, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'channel', 'channel ' || i % 7, 'number', i, 'fifty', i / 50,
           'note', repeat('n', 60)),
         t.at, t.at
       from generate_series(1, $2::integer) i
         cross join lateral (select timestamptz '2024-01-01 00:00:00Z' + i * interval '63 seconds' as at) t`,
      [id, records],
    )
    await client.query(
      `insert into entities (organization_id, stack_id, id, external_id, active, version, created_at, updated_at)
       select $1, 2, ${idOf('6700', 'i')}, 'product ' || i, true, 1, now(), now() from generate_series(0, 999) i`,
      [id],
    )
    await client.query(
      `insert into links (organization_id, source_id, attribute_id, target_stack_id, target_id, position)
       select $1, ${idOf('6600', 'i')}, $3, 2, ${idOf('6700', 'i % 1000')}, 0 from generate_series(1, $2::integer) i`,
      [id, records, product],
    )
    await waitForIndexes(client, id)
  })
}

async function measureOne(service: Service, calls: number, { name, body, status, maxMs }: (typeof measured)[number]) {
  const times: number[] = []
  let groups = 0
  for (let call = 0; call < calls; call += 1) {
    const startedMs = performance.now()
    const response = await send(service, 'POST', '/v1/stacks/orders/aggregate', body)
    const answer = (await response.json()) as { data?: { groups: unknown[] } }
    times.push(performance.now() - startedMs)
    if (response.status !== status)
      throw new Error(`${name}: ${response.status} ${JSON.stringify(answer).slice(0, 500)}`)
    groups = answer.data?.groups.length ?? 0
  }
  const ms = median(times)
  const limit = maxMs === undefined ? '' : ` (at most ${maxMs} ms): ${ms <= maxMs ? 'met' : 'NOT MET'}`
  print(`  ${name.padEnd(36)} ${ms.toFixed(0).padStart(6)} ms, ${String(groups).padStart(5)} groups${limit}`)
}

/** Inserts records and measures the chosen aggregates, each so many times. */
async function measureIn(service: Service, records: number, calls: number, chosen: typeof measured) {
  await populate(service, records)
  print(`aggregates of ${records.toLocaleString('en')} records, over HTTP`)
  for (const each of chosen) if (records >= (each.minRecords ?? 0)) await measureOne(service, calls, each)
}

export const measure: QuestionsPart = async ({ postgres, people }) => {
  await postgres.createDatabase('aggregate')
  const service = await startService(postgres, checkout, 'aggregate', 1)
  await measureIn(service, people, 3, measured).finally(() => service.stop())
}

async function main() {
  const { values } = parseArgs({
    options: {
      records: { type: 'string', default: '1000000' },
      calls: { type: 'string', default: '3' },
      only: { type: 'string' },
    },
  })
  const [records, calls] = [Number(values.records), Number(values.calls)]
  const cleanup = prepareCleanup()
  try {
    const postgres = await cleanup.acquire(startPostgres, started => started.stop())
    await postgres.createDatabase('bench')
    const service = await cleanup.acquire(
      () => startService(postgres, checkout, 'bench', 1),
      started => started.stop(),
    )
    printPlatform(await serverVersion(service))
    const chosen = values.only === undefined ? measured : measured.filter(({ name }) => name === values.only)
    await measureIn(service, records, calls, chosen)
  } finally {
    await cleanup.close()
  }
}

if (import.meta.main) await main()
