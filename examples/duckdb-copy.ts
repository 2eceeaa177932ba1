// Keeps a copy of all people and records in a file of DuckDB, by the change log. The position in the log is stored in the transaction of the
// changes up to it, so the copy continues where it was after any end of the process, and applies each change once. docs/changes.md describes
// the tables, and has the same in Python.
//
//   KITH_URL=… KITH_TOKEN=… node examples/duckdb-copy.ts copy.duckdb           follows the log until a signal ends it
//   KITH_URL=… KITH_TOKEN=… node examples/duckdb-copy.ts copy.duckdb --once    ends when the copy has all changes

import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api'
import { type Change, createClient } from '../client/index.ts'

const tables = `
  create table if not exists entities (id text primary key, owner text not null, created_at text not null, data json, leads_to text);
  create table if not exists links (source text not null, key text not null, position integer not null, target text not null);
  create table if not exists log_position (log_id text not null, after bigint not null);
  create or replace view relationships as
    with recursive led(id, target) as (
      select id, id from entities where data is not null
      union all
      select e.id, led.target from entities e join led on e.leads_to = led.id
    )
    select l.source, l.key, led.target, min(l.position) as position
    from links l join led on led.id = l.target join entities s on s.id = l.source
    where s.data is not null group by l.source, l.key, led.target;
`

type Data = { attribute_values: Record<string, unknown>; [field: string]: unknown }

const [file, mode] = process.argv.slice(2)
if (file === undefined) throw new Error('Name the file of the copy.')
const client = createClient({
  url: process.env.KITH_URL ?? 'http://127.0.0.1:8080',
  token: process.env.KITH_TOKEN ?? '',
})
const size = Number(process.env.SIZE ?? 1_000)

const instance = await DuckDBInstance.create(file)
const db = await instance.connect()
await db.run(tables)
let [{ after, log_id: logId } = { after: 0, log_id: undefined }] = await readRows<{ after: number; log_id: string }>(
  'select after::integer as after, log_id from log_position',
)
for (;;) {
  const subject = ['person', 'record'] as const
  const page = await client.changes
    .list({ after, logId, subject, links: 'id', size, wait: mode === '--once' ? 0 : 20 })
    .page()
  await db.run('begin')
  for (const change of page.items) await apply(db, change)
  await db.run('delete from log_position')
  await db.run('insert into log_position values ($1, $2)', [page.log_id, page.last])
  await db.run('commit')
  ;({ last: after, log_id: logId } = page)
  console.log(`The copy has all changes up to ${after} of ${page.head}.`)
  if (mode === '--once' && page.last === page.head) break
}
db.closeSync()
instance.closeSync()

async function apply(db: DuckDBConnection, { id, stack_key, operation, version, at, after, links }: Change) {
  const isGone = operation === 'delete' || operation === 'erase' || operation === 'merge'
  // A restore and an unmerge have all values.
  const [stored] = await readRows<{ data: string | null }>('select data::text as data from entities where id = $1', [
    id,
  ])
  const known: Data = stored?.data ? JSON.parse(stored.data) : { attribute_values: {} }
  const { attribute_values, consents: _, ...fields } = (after ?? {}) as Partial<Data>
  const values = { ...known.attribute_values, ...attribute_values }
  for (const key in values) if (values[key] === null || links?.[key]) delete values[key]
  const data = isGone
    ? null
    : JSON.stringify({ ...known, ...fields, version, updated_at: at, attribute_values: values })
  const leadsTo = operation === 'merge' ? String(fields.merged_into) : null
  await db.run(
    'insert into entities values ($1, $2, $3, $4, $5) on conflict (id) do update set data = excluded.data, leads_to = excluded.leads_to',
    [id as string, stack_key ?? 'people', at, data, leadsTo],
  )
  if (isGone) await db.run('delete from links where source = $1', [id as string])
  for (const [key, { after: targets = [] }] of Object.entries(links ?? {})) {
    await db.run('delete from links where source = $1 and key = $2', [id as string, key])
    for (const [position, target] of targets.entries())
      await db.run('insert into links values ($1, $2, $3, $4)', [id as string, key, position, target])
  }
}

async function readRows<Row>(sql: string, values: (string | number)[] = []): Promise<Row[]> {
  return (await (await db.run(sql, values)).getRowObjects()) as Row[]
}
