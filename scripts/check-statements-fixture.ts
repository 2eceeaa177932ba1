import type pg from 'pg'
import { type Database, type Statement, statement, type Transaction } from '../src/db/db.ts'

// Statements and calls for scripts/check-statements.test.ts, which has the tables. Nothing runs them.

type Value = { value: string }

const one = statement('one', 'select name as value from sheep where id = $1')
const two = statement('two', 'select name as value from sheep where id = $1 and name = any($2)')
const alsoTwo = statement('also_two', 'select name as value from sheep where twin = $1 and nick = any($2)')
const all = statement('all', 'select id, name, twin, born from sheep')

/** Statements with a column that may be null. */
export const nullable = {
  column: statement('nullable', 'select nick as value from sheep'),
  outerJoin: statement('outer_join', 'select h.place as value from sheep s left join sheds h on h.sheep = s.id'),
  star: statement('star', 'select x.* from sheep s left join (select h.place as value from sheds h) x on true'),
  aggregate: statement('aggregate', 'select max(name) as value from sheep'),
  case: statement('case', `select case when id > 1 then 'a' end as value from sheep`),
  coalesce: statement('coalesce', 'select coalesce(nick, null) as value from sheep'),
  strict: statement('strict', `select lower(nick) || 'a' as value from sheep`),
  nullif: statement('nullif', `select nullif(name, 'a') as value from sheep`),
  subselect: statement('subselect', 'select (select s.nick from sheep s limit 1) as value'),
  union: statement('union', 'select name as value from sheep union all select null'),
  cte: statement('cte', 'with x(value) as (select nick from sheep) select x.value from x'),
  set: statement('set', 'update sheep set nick = null where nick is not null returning nick as value'),
  either: statement('either', `select nick as value from sheep where nick > 'a' or id = 1`),
}

/** Statements with a column that is never null, although it comes from a nullable one or the check cannot decide. */
export const certain = {
  tested: statement('tested', 'select nick as value from sheep where id = 1 and nick is not null'),
  compared: statement('compared', `select nick as value from sheep where nick > 'a'`),
  joined: statement('joined', 'select s.nick as value from sheep s join sheds h on h.place = s.nick'),
  reduced: statement(
    'reduced',
    'select h.place as value from sheep s left join sheds h on h.sheep = s.id where h.sheep = 1',
  ),
  coalesced: statement('coalesced', 'select coalesce(nick, name) as value from sheep'),
  grouped: statement('grouped', 'select max(name) as value from sheep group by id'),
  oneRow: statement(
    'one_row',
    'select x.value from sheds left join lateral (select count(*)::text as value from sheep) x on true',
  ),
  set: statement('set_else', `update sheep set name = 'a' where nick is not null returning nick as value`),
  json: statement('json', `select wool->>'color' as value from sheep where wool is not null`),
}

export const agreeing = async (db: Database, tx: Transaction, by: 'case', other: 'json', kind: 'a' | null) => {
  await db.query<Value>(nullable[by], [])
  await db.query<Value>(certain[other], [])
  await db.query<{ id: number; name: 'Dolly'; twin: number | null; born: string }>(all, [])
  await db.query<Value | { value: null; other?: string }>(one, [1])
  await tx.query<Value>(by ? two : alsoTwo, [1, [kind]])
  await tx.query<Value>(two, [...([1, ['a']] as const)])
  await tx.query(two, [kind && 1, null])
  await forward({ query: (statement, values) => db.query(statement, values) })
}

const forward = (reader: Pick<Transaction, 'query'>) => reader.query<Value>(one, [1])

export const wrong = async (db: Database, values: unknown[]) => {
  await db.query(statement('fewer', 'select from sheep where id = $1 and name = $2'), [1])
  await db.query(statement('more', 'select from sheep where id = $1'), [1, 2, ...values])
  await db.query(statement('parameter', 'select from sheep where id = $1'), ['a'])
  await db.query(statement('element', 'select from sheep where name = any($1)'), [[2]])
  await db.query<{ id: string; born: Date }>(statement('column', 'select id, born from sheep'), [])
  await db.query<{ ids: number[] }>(statement('array', 'select array[1::bigint] as ids'), [])
  await db.query<Value & { other: string }>(statement('missing', 'select name as value from sheep where id < $1'), [1])
  await db.query<{ id: number }>(statement('unread', 'select id, name from sheep'), [])
  await db.query(statement('no_table', 'select from goats'), [])
  await db.query<Value>(statement('excepted', 'select nick as value from sheep'), [])
  await wrapped(db, statement('wrapped', 'select name as value from sheep where id > $1'), 'a')
}

const wrapped = (db: Database, statement: Statement, value: unknown) => db.query<{ value: number }>(statement, [value])

export const unknown = async (db: Database, client: pg.Client, table: string, given: Statement) => {
  await db.query(statement('composed', `select from ${table}`), [])
  await db.query(given, [])
  let changed = one
  if (table) changed = two
  await db.query(changed, [])
  await db.query(...([one, []] as Parameters<Transaction['query']>))
  await client.query('select 1')
}
