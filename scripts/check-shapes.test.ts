import { loadModule } from 'libpg-query'
import { beforeAll, describe, expect, it } from 'vitest'
import { checkShapes, literalStatements } from './check-shapes.ts'

const schema = `
  create table change_heads (organization_id integer not null, sequence bigint not null, schema_version integer not null);
  create table entities (organization_id integer not null, id uuid not null, name text, at timestamptz);
  create table organizations (id integer not null, key text)`

beforeAll(() => loadModule())

/** The messages for one statement, without the file and the name. */
const messagesOf = (text: string) =>
  checkShapes([{ path: 'src/a/sql.ts', name: 'test', text }], schema, []).map(message =>
    message.replace('src/a/sql.ts: the statement test ', ''),
  )

describe('a statement that Citus routes', () => {
  it.each([
    'select e.id from entities e where e.organization_id = $1 and e.id = $2',
    'select id from entities where organization_id = $1::integer',
    'select o.key from organizations o',
    `select h.sequence, (select count(*) from entities e where e.organization_id = $1) from change_heads h
     where h.organization_id = $1`,
    `select e.id from change_heads h join entities e on e.organization_id = h.organization_id
     where h.organization_id = $1`,
    `select v.id from unnest($2::uuid[]) as v(id) cross join lateral (
       select from entities e where e.organization_id = $1 and e.id = v.id offset 0
     ) e`,
    'select from entities e where e.organization_id = $1 union all select from entities f where f.organization_id = $1',
    'insert into entities (id, organization_id) values ($2, $1)',
    `insert into entities (organization_id, id) select h.organization_id, v.id
     from change_heads h cross join jsonb_to_recordset($2::text::jsonb) as v(id uuid) where h.organization_id = $1`,
    `with gone as (delete from entities e where e.organization_id = $1 returning 1), head as (
       update change_heads h set sequence = h.sequence + 1 where h.organization_id = $1 returning 1
     ) select from head`,
    `update change_heads h set schema_version = h.schema_version / (h.schema_version = $2)::integer
     where h.organization_id = $1`,
    'update entities e set at = now() where e.organization_id = $1',
    `with gone as (
       delete from entities e where e.organization_id = $1 and e.id = any($2::uuid[]) returning 1
     ) select from gone`,
    'update entities set name = $2 where organization_id = $1 and $3',
    'copy (select e.id from entities e where e.organization_id = 7) to stdout (format binary)',
  ])('is accepted: %s', text => expect(messagesOf(text)).toEqual([]))
})

describe('a statement that Citus refuses or runs wrongly', () => {
  it.each([
    ['one command', 'begin; set local lock_timeout = 5', 'several commands'],
    [
      'insert knows its shard',
      'insert into entities (organization_id, id) select $1, v.id from unnest($2::uuid[]) as v(id)',
      'select h.organization_id from change_heads h',
    ],
    [
      'insert is main',
      'with a as (insert into entities (organization_id, id) values ($1, $2) returning 1) select from a',
      'inserts in a CTE',
    ],
    [
      'insert is main',
      `with a as (delete from entities e where e.organization_id = $1)
       insert into entities (organization_id, id) values ($1, $2)`,
      'make the main command a SELECT',
    ],
    [
      'insert is main',
      `with a as (select h.organization_id from change_heads h where h.organization_id = $1)
       insert into entities (organization_id, id) select a.organization_id, $2 from a`,
      'write it behind',
    ],
    [
      'insert is main',
      `with a as (delete from entities e where e.organization_id = $1)
       update change_heads set sequence = 1 where organization_id = $1`,
      'make the main command a SELECT',
    ],
    [
      'no simple case',
      `delete from entities e where e.organization_id = $1 and e.name = any(array(
         select case v.kind when 'a' then 'b' end from jsonb_to_recordset($2::text::jsonb) as v(kind text)
       ))`,
      'write `case when x = y`',
    ],
    [
      'no constant condition',
      `with gone as (delete from entities e where e.organization_id = $1 and not ($2 and $3 = 'a') returning 1)
       select from gone`,
      'make it a part of one with a column',
    ],
    [
      'no constant condition',
      `select h.sequence from change_heads h left join entities e on e.organization_id = h.organization_id and $2
       where h.organization_id = $1`,
      'decide above the join',
    ],
    [
      'no volatile update',
      `update change_heads set sequence = 1 where organization_id = $1 and set_config('lock_timeout', '0', true) <> ''`,
      'calls set_config() in an UPDATE or DELETE',
    ],
    [
      'no stable update',
      'update entities e set name = to_char(e.at, $2) where e.organization_id = $1',
      'calls to_char(), which is stable, over columns',
    ],
    [
      'no stable update',
      'update entities e set at = coalesce($2, now()) where e.organization_id = $1',
      'calls now(), which is stable, in CASE or COALESCE',
    ],
    ['no copy in', 'copy entities (organization_id, id) from stdin (format binary)', 'insert them'],
    [
      'counted locations',
      `update entities e set name = $3 from jsonb_to_recordset($2::text::jsonb) as v(row tid)
       where e.organization_id = $1 and e.ctid = v.row`,
      'count the rows',
    ],
    [
      'counted locations',
      'delete from entities e where e.organization_id = $1 and e.ctid = any($2::tid[])',
      'count the rows',
    ],
    ['no own settings', `select current_setting('kith.stack')`, 'a worker does not know'],
    ['one organization', 'select e.id from entities e where e.id = $1', 'entities without organization_id = $n'],
    ['one organization', 'select from entities e where e.organization_id = $1 or e.id = $2', 'bind it'],
    ['one organization', 'select from entities e where e.organization_id = any($1::integer[])', 'bind it'],
    ['one organization', 'delete from entities where id = $1', 'bind it'],
    [
      'one organization',
      `select from change_heads h where h.organization_id = $1
       and exists (select from entities e where e.id = $2)`,
      'reads or writes entities',
    ],
    [
      'one organization',
      'select from entities e where e.organization_id = $1 union all select from entities f where f.id = $2',
      'bind it',
    ],
    ['one organization', 'insert into entities (organization_id, id) values (7, $1)', 'bind it'],
  ])('breaks "%s": %s', (rule, text, message) => {
    expect(messagesOf(text)).toEqual([expect.stringContaining(message)])
    expect(messagesOf(text)[0]).toContain(`(${rule})`)
  })
})

it('names the file and the statement, and what to do', () => {
  const text = 'select e.id from entities e'
  expect(checkShapes([{ path: 'src/people/sql.ts', name: 'find_people', text }], schema, [])).toEqual([
    'src/people/sql.ts: the statement find_people reads or writes entities without organization_id = $n: bind it (one organization)',
  ])
})

it('accepts a statement with an exception, and reports an exception that no statement needs', () => {
  const exception = { rule: 'one organization', statement: 'count_all', reason: 'Metrics.' }
  const text = 'select count(*) from entities'
  expect(checkShapes([{ path: 'src/a/sql.ts', name: 'count_all', text }], schema, [exception])).toEqual([])
  expect(checkShapes([], schema, [exception])).toEqual([expect.stringContaining('remove its exception')])
})

it('finds the literal texts that other files send', () => {
  const text = `const a = statement('', 'select 1')\nawait client.query('begin')\nawait client.query(\`set a = \${b}\`)`
  expect(literalStatements([{ path: 'src/a/a.ts', text }]).map(found => found.text)).toEqual(['select 1', 'begin'])
})
