import { pipeline } from 'node:stream/promises'
import type pg from 'pg'
import { from as copyFrom, to as copyTo } from 'pg-copy-streams'
import { lastTables, listed, quoted, readTables, type Table } from './tables.ts'

/** The rows of one organization in one cell, on a connection of its own. */
export type Side = { client: pg.ClientBase; organization_id: number }

const keysPerStatement = 1_000
const rowsPerDelete = 5_000

/**
 * Copies all rows but those of the last tables. `source` must be in a transaction of isolation level repeatable read. Each table is one
 * transaction of `target`.
 */
export async function copyRows(source: Side, target: Side, signal: AbortSignal, onTable: (name: string) => void) {
  for (const { name, columns } of await copiedTables(source)) {
    onTable(name)
    const rows = `select ${listed(columns)} from ${quoted(name)} where organization_id = ${source.organization_id}`
    const storing = target.client.query(copyFrom(`copy ${quoted(name)} (${listed(columns)}) from stdin`))
    await pipeline(source.client.query(copyTo(`copy (${rows}) to stdout`)), storing, { signal })
    // Until autovacuum analyzes the table, the planner would assume that it is as small as before.
    if (storing.rowCount) await target.client.query(`analyze ${quoted(name)}`)
  }
}

const copiedTables = async ({ client }: Side) =>
  (await readTables(client)).filter(({ name }) => !lastTables.includes(name))

/** The work of one round: captured changes, and the keys of the rows by table. */
export type Round = { captures: string[]; keys: Map<Table, object[]> }

/** Reads which rows have changed, as the transaction of `source` sees it. */
export async function readCaptures({ client, organization_id }: Side): Promise<Round> {
  const { rows } = await client.query<{ table_name: string; key: object; numbers: string[] }>(
    `select table_name, key, array_agg(number::text) as numbers from public.move_captures
     where organization_id = $1 group by table_name, key`,
    [organization_id],
  )
  const tables = new Map((await copiedTables({ client, organization_id })).map(table => [table.name, table]))
  const keys = new Map<Table, object[]>()
  for (const { table_name, key } of rows) {
    const table = tables.get(table_name)
    if (!table) continue
    const known = keys.get(table)
    if (known) known.push(key)
    else keys.set(table, [key])
  }
  return { captures: rows.flatMap(({ numbers }) => numbers), keys }
}

/** The number of the rows of a round. */
export const countKeys = ({ keys }: Round): number => [...keys.values()].reduce((sum, { length }) => sum + length, 0)

/** Gives the target the current rows of a round, in one transaction. Doing it twice changes nothing. */
export async function applyRound(source: Side, target: Side, { keys }: Round): Promise<void> {
  await target.client.query('begin')
  try {
    // All old rows go first: a new row may have the unique value of another old one.
    for (const [table, all] of keys)
      for (const some of chunksOf(all, keysPerStatement))
        await target.client.query(
          `delete from ${quoted(table.name)} t using ${keysOf(table)} where ${matchesKey(table)}`,
          [target.organization_id, JSON.stringify(some)],
        )
    for (const [table, all] of keys)
      for (const some of chunksOf(all, keysPerStatement))
        await insertRows(target.client, table, await readRows(source, table, some))
    await target.client.query('commit')
  } catch (error) {
    await target.client.query('rollback').catch(() => {})
    throw error
  }
}

/** Forgets the captured changes of a round that has been applied. */
export async function forgetCaptures({ client, organization_id }: Side, { captures }: Round): Promise<void> {
  for (const some of chunksOf(captures, 10_000))
    await client.query('delete from public.move_captures where organization_id = $1 and number = any($2::bigint[])', [
      organization_id,
      some,
    ])
}

// A row travels as the text of its composite value, which loses nothing: JSON would take a null of JSON for one of SQL.
async function readRows({ client, organization_id }: Side, table: Table, keys: object[]): Promise<string[]> {
  const { rows } = await client.query<{ row: string }>(
    `select t::text as row from ${quoted(table.name)} t, ${keysOf(table)} where ${matchesKey(table)}`,
    [organization_id, JSON.stringify(keys)],
  )
  return rows.map(({ row }) => row)
}

async function insertRows(client: pg.ClientBase, { name }: Table, rows: string[]): Promise<void> {
  if (rows.length === 0) return
  const type = quoted(name)
  await client.query(`insert into ${type} select r.* from unnest($1::${type}[]) r`, [rows])
}

const keysOf = ({ name }: Table) => `jsonb_populate_recordset(null::${quoted(name)}, $2::text::jsonb) k`

const matchesKey = ({ key }: Table) =>
  key
    .map(column =>
      column === 'organization_id' ? `t.${column} = $1` : `t.${listed([column])} = k.${listed([column])}`,
    )
    .join(' and ')

type Digest = { name: string; rows: string; digest: string }

const digestOf = `count(*)::text as rows, coalesce(sum(hashtextextended(t::text, 0)::numeric), 0)::text as digest`

/**
 * Compares the number and the digest of the rows of each table, of all rows or of those of a round. Throws an Error that names the
 * first table that differs.
 */
export async function verifyRows(source: Side, target: Side, round?: Round): Promise<void> {
  const tables = round ? [...round.keys.keys()] : await copiedTables(source)
  for (const table of tables)
    for (const some of round ? chunksOf(round.keys.get(table)!, keysPerStatement) : [undefined]) {
      const [left, right] = await Promise.all([source, target].map(side => digestRows(side, table, some)))
      if (left!.rows !== right!.rows || left!.digest !== right!.digest)
        throw new Error(
          `The copy differs from the original in the table ${table.name}: ${right!.rows} rows instead of ${left!.rows}, or other values. Nothing has moved.`,
        )
    }
}

async function digestRows({ client, organization_id }: Side, table: Table, keys?: object[]): Promise<Digest> {
  const { rows } = keys
    ? await client.query<Digest>(
        `select ${digestOf} from ${quoted(table.name)} t, ${keysOf(table)} where ${matchesKey(table)}`,
        [organization_id, JSON.stringify(keys)],
      )
    : await client.query<Digest>(`select ${digestOf} from ${quoted(table.name)} t where t.organization_id = $1`, [
        organization_id,
      ])
  return rows[0]!
}

/**
 * Deletes all rows of the organization, but those in the tables `kept`, in small transactions. The last tables come first, so that no
 * follower works for it.
 */
export async function deleteRows(
  { client, organization_id }: Side,
  signal?: AbortSignal,
  kept: readonly string[] = [],
): Promise<void> {
  const tables = (await readTables(client)).filter(({ name }) => !kept.includes(name))
  const isLast = ({ name }: Table) => lastTables.includes(name)
  for (const { name } of [...tables.filter(isLast), ...tables.filter(table => !isLast(table))]) {
    const text = `delete from ${quoted(name)} where organization_id = $1 and ctid = any(array(
      select ctid from ${quoted(name)} where organization_id = $1 limit ${rowsPerDelete}))`
    for (;;) {
      signal?.throwIfAborted()
      const { rowCount } = await client.query(text, [organization_id])
      if ((rowCount ?? 0) < rowsPerDelete) break
    }
  }
}

function* chunksOf<T>(all: readonly T[], size: number): Generator<T[]> {
  for (let start = 0; start < all.length; start += size) yield all.slice(start, start + size)
}
