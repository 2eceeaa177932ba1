import { beforeAll, describe, expect, it } from 'vitest'
import { plantCanaries, readTables } from '../../test/support/person-canaries.ts'
import { type Organization, useOwnService } from '../../test/support/service.ts'
import { createShop, type Shop } from '../../test/support/shop.ts'
import { type Created, expectRefused, type Reader, useViews } from '../../test/support/sql-views.ts'

const service = useOwnService({ KITH_WEBHOOK_ALLOW: '127.0.0.0/8' })
const { create, connect, read } = useViews(service)

// The role of this organization tries to read the values that another one has in every table.
let other: Organization
let own: Shop
beforeAll(async () => {
  other = await service.organization()
  await plantCanaries(service, other)
  own = await createShop(service, 'orders', 'city', 'buyer')
  await own.ok('POST', '/v1/people', { external_id: 'ada', first_name: 'Ada', attribute_values: { city: 'Rome' } })
  await own.ok('POST', '/v1/people', { external_id: 'bob', first_name: 'Bob' })
}, 60_000)

const both = async (): Promise<{ reader: Reader; views: Created; others: Created }> => {
  const [views, others] = [await create(own), await create(other)]
  return { reader: await connect(views.role, views.password), views, others }
}
const names = (rows: Record<string, unknown>[]) => rows.map(({ name }) => name)

describe('the role of views', () => {
  it('may read its views and no other relation of the catalogue', async () => {
    const { reader, views } = await both()
    const readable = await reader.rows(
      `select n.nspname || '.' || c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
       where n.nspname not in ('pg_catalog', 'information_schema') and case when c.relkind = 'S'
           then has_sequence_privilege(c.oid, 'usage, select, update')
         when c.relkind in ('r', 'p', 'v', 'm', 'f', 't')
           then has_table_privilege(c.oid, 'select, insert, update, delete, truncate, references, trigger')
             or has_any_column_privilege(c.oid, 'select, insert, update, references') end order by 1`,
    )
    const own = ['changes', 'consents', 'orders', 'people'].map(name => `${views.schema}.${name}`)
    expect(names(readable)).toEqual(own)
    const writable = await reader.rows(
      `select c.relname as name from pg_class c where c.relkind in ('r', 'p', 'v', 'm', 'f', 't')
       and has_table_privilege(c.oid, 'insert, update, delete, truncate, references, trigger')
       and not (c.relname = 'pg_settings' and c.relnamespace = 'pg_catalog'::regnamespace)`,
    )
    expect(writable).toEqual([])
    const secrets = [
      'pg_authid',
      'pg_shadow',
      'pg_statistic',
      'pg_statistic_ext_data',
      'pg_largeobject',
      'pg_user_mapping',
    ]
    secrets.push('pg_hba_file_rules', 'pg_file_settings', 'pg_subscription', 'pg_backend_memory_contexts')
    const open = `select x.name from unnest($1::text[]) as x(name) where has_table_privilege('pg_catalog.' || x.name, 'select')`
    expect(await reader.rows(open, [secrets])).toEqual([])
  })

  it('may use no function but those of PostgreSQL, and none that reads files or stores something', async () => {
    await service.sql(`create schema tools; `)
    await service.sql(
      `create function tools.peek() returns text language sql security definer as 'select max(first_name) from public.entities'`,
    )
    await service.sql(
      `create function public.peek() returns text language sql security definer as 'select max(first_name) from public.entities'`,
    )
    try {
      const { reader } = await both()
      const usable = await reader.rows(
        `select f.oid::regprocedure::text as name from pg_proc f join pg_namespace n on n.oid = f.pronamespace
         where (n.nspname not in ('pg_catalog', 'information_schema') or f.prosecdef)
           and has_schema_privilege(n.oid, 'usage') and has_function_privilege(f.oid, 'execute')`,
      )
      expect(usable).toEqual([])
      for (const call of [
        'tools.peek()',
        'public.peek()',
        `pg_read_file('postgresql.conf')`,
        `pg_ls_dir('.')`,
        `pg_stat_file('.')`,
      ])
        await expectRefused(reader, `select ${call}`)
      for (const call of [
        'lo_create(0)',
        'lo_creat(-1)',
        `lo_from_bytea(0, 'x')`,
        `lo_import('/etc/passwd')`,
        'pg_reload_conf()',
      ]) {
        await reader.client.query('begin read write')
        await expectRefused(reader, `select ${call}`)
        await reader.client.query('rollback')
      }
      const [{ oid }] = (await service.sql(`select lo_from_bytea(0, 'canary')::integer as oid`)) as [{ oid: number }]
      await expectRefused(reader, `select lo_get(${oid})`)
      await service.sql('select lo_unlink($1::oid)', [oid])
    } finally {
      await service.sql('drop schema tools cascade')
      await service.sql('drop function public.peek()')
    }
  })

  it('uses one schema, creates in none, and has no rights on databases, tablespaces, servers and other roles', async () => {
    const { reader, views } = await both()
    const schemas = await reader.rows(
      `select nspname as name from pg_namespace where has_schema_privilege(oid, 'usage') or has_schema_privilege(oid, 'create') order by 1`,
    )
    expect(names(schemas).filter(name => !['pg_catalog', 'information_schema'].includes(String(name)))).toEqual([
      views.schema,
    ])
    for (const text of [
      `select nspname from pg_namespace where has_schema_privilege(oid, 'create')`,
      `select datname from pg_database where has_database_privilege(oid, 'create')`,
      `select 1 where has_database_privilege(current_database(), 'temporary')`,
      `select spcname from pg_tablespace where has_tablespace_privilege(oid, 'create') and spcname <> 'pg_default'`,
      'select 1 from pg_auth_members where member = current_user::regrole',
      'select 1 from pg_roles where rolname = current_user and (rolsuper or rolcreaterole or rolcreatedb or rolbypassrls or rolreplication)',
      'select 1 from pg_class where relowner = current_user::regrole',
      'select 1 from pg_foreign_server union all select 1 from pg_foreign_data_wrapper',
    ])
      expect(await reader.rows(text), text).toEqual([])
  })

  it('is refused each table of the service, and each view of another organization', async () => {
    const { reader, others } = await both()
    const tables = await readTables(service)
    expect(tables.length).toBeGreaterThan(50)
    for (const table of tables)
      for (const text of [
        `table public.${table}`,
        `copy public.${table} to stdout`,
        `select count(*) from public.${table}`,
      ])
        await expectRefused(reader, text)
    for (const view of ['people', 'consents', 'changes', 'orders', 'companies'])
      for (const text of [`table ${others.schema}.${view}`, `copy (select * from ${others.schema}.${view}) to stdout`])
        await expectRefused(reader, text)
    await expectRefused(reader, `select * from ${others.schema}.people p join people o using (id)`)
    await expectRefused(reader, `select nextval('public.change_numbers')`)
  })

  it('can become nobody else, change nothing and make nothing, also in a transaction that may write', async () => {
    const { reader, views, others } = await both()
    await expectRefused(reader, `update people set first_name = 'x'`, /42501|25006/)
    await reader.client.query('set default_transaction_read_only = off')
    const [{ owner }] = (await service.sql('select current_user as owner')) as [{ owner: string }]
    const commands = [
      ...['set role', 'set session authorization'].flatMap(text =>
        [owner, others.role].map(name => `${text} "${name}"`),
      ),
      `alter role "${views.role}" superuser`,
      `grant "${owner}" to "${views.role}"`,
      `grant select on public.entities to "${views.role}"`,
      `alter view people owner to "${views.role}"`,
      'alter view people set (security_barrier = false)',
      `create or replace view people as select 1`,
      'create table t (a integer)',
      'create temp table t (a integer)',
      `create table ${views.schema}.t (a integer)`,
      'create table public.t (a integer)',
      'create schema mine',
      `create function ${views.schema}.f(text) returns boolean language sql as 'select true'`,
      `create function pg_temp.f(text) returns boolean cost 0.0001 language sql as 'select true'`,
      'create extension dblink',
      `insert into people (external_id) values ('x')`,
      `update people set first_name = 'x'`,
      'delete from people',
      'select * from people for update',
      ...['access exclusive', 'row exclusive'].map(mode => `do $$ begin lock table people in ${mode} mode; end $$`),
      'truncate people',
      'drop view people',
      `comment on view people is 'x'`,
      `do $$ begin execute 'create temp table t (a integer)'; end $$`,
      `do $$ begin perform 1 from public.entities; end $$`,
      `copy people to '/tmp/x'`,
      `copy people to program 'cat'`,
      'create publication p for all tables',
      `alter system set work_mem = '1GB'`,
      'analyze public.entities',
    ]
    for (const text of commands) await expectRefused(reader, text, /42501|42809|0A000|55000|42P16/)
    expect(await reader.rows('select count(*)::integer as count from people')).toEqual([{ count: 2 }])
  })

  it('is made without rights that PostgreSQL gives to every role, and leaves other roles theirs', async () => {
    await service.sql('create role kept_reader')
    await service.sql('grant select on public.stacks to kept_reader')
    try {
      await create(own)
      const [has] = await service.sql(
        `select has_schema_privilege('kept_reader', 'public', 'usage') as kept, has_schema_privilege(current_user, 'public', 'create') as owner,
           has_database_privilege(current_user, current_database(), 'temporary') as temporary`,
      )
      expect(has).toEqual({ kept: true, owner: true, temporary: true })
      const rights = { first_name: 'Ada' }
      expect((await own.send('PATCH', '/v1/people/ada', rights)).status).toBe(200)
    } finally {
      await service.sql('drop owned by kept_reader')
      await service.sql('drop role kept_reader')
    }
  })
})

describe('a condition of a query', () => {
  // Each condition would reveal the rows that PostgreSQL evaluates it on, by an error or by a side effect.
  const conditions = [
    `1 / (case when first_name like '%canary%' then 0 else 1 end) = 1`,
    `1 / (length(replace(coalesce(first_name, 'x'), 'canary', '')) / length(coalesce(first_name, 'x'))) = 1`,
    `set_config('leak.rows', coalesce(current_setting('leak.rows', true), '') || coalesce(external_id, '') || coalesce(first_name, ''), false) is not null`,
    `(case when external_id like '%canary%' then external_id::integer else 1 end) = 1`,
    `(case when attribute_values::text like '%canary%' then attribute_values::text::date end) is null`,
    `(case when email like '%canary%' then email::inet end) is null`,
    `xmlcomment(coalesce(first_name, '')) is not null`,
    `pg_input_is_valid(coalesce(first_name, ''), 'integer') or true`,
    `coalesce(first_name, '')::text collate "C" ~ '.*'`,
  ]

  it.each(conditions)('never sees a row of another organization: %s', async condition => {
    const { reader } = await both()
    const [{ version }] = (await reader.rows(`select current_setting('server_version_num')::integer as version`)) as [
      { version: number },
    ]
    if (condition.startsWith('pg_input') && version < 160_000) return
    for (const settings of [
      '',
      'set enable_indexscan = off; set enable_bitmapscan = off; set enable_seqscan = on',
      'set plan_cache_mode = force_generic_plan',
    ]) {
      if (settings) await reader.client.query(settings)
      for (const text of [
        `select external_id from people where ${condition} order by 1`,
        `select external_id from (select * from people) p where ${condition} order by 1`,
        `select p.external_id from people p cross join lateral (select 1 where ${condition}) x order by 1`,
        `select external_id from people where ${condition} and id is not null and version > 0 order by 1`,
      ])
        expect(names((await reader.rows(text)).map(({ external_id }) => ({ name: external_id })))).toEqual([
          'ada',
          'bob',
        ])
    }
    const leaked = await reader.rows(`select current_setting('leak.rows', true) as rows`)
    expect(JSON.stringify(leaked)).not.toMatch(/canary/)
  })

  it('shows in the message of a cast its own values only', async () => {
    const { reader } = await both()
    for (const view of ['people', 'consents', 'changes', 'orders'])
      for (const column of await reader.rows<{ name: string }>(
        `select attname as name from pg_attribute where attrelid = '${view}'::regclass and attnum > 0`,
      )) {
        const text = `select 1 from ${view} where "${column.name}"::text::bytea::text::macaddr is null`
        const message = await reader.rows(text).then(
          () => '',
          (error: Error) => JSON.stringify(error) + error.message,
        )
        expect(message, text).not.toMatch(/canary/)
      }
  })

  it('is tested on the rows of the organization alone, and EXPLAIN counts no others', async () => {
    const { reader } = await both()
    for (const view of ['people', 'consents', 'changes', 'orders']) {
      const plan = await reader.rows(`explain (analyze, verbose, costs off) select * from ${view}`)
      expect(JSON.stringify(plan), view).not.toMatch(/Rows Removed by (Filter|Index Recheck): [1-9]/)
      expect(JSON.stringify(plan), view).not.toMatch(/Seq Scan on public.(entities|changes|links)/)
    }
  })

  it('sees nothing in the statistics and sessions of others', async () => {
    await service.sql('analyze')
    const { reader } = await both()
    for (const table of ['pg_stats', 'pg_stats_ext', 'pg_stats_ext_exprs'])
      expect(
        await reader.rows(`select * from ${table} where schemaname not in ('pg_catalog', 'information_schema')`),
        table,
      ).toEqual([])
    const sessions = await reader.rows(
      `select query from pg_stat_activity where usename <> current_user and query <> ''`,
    )
    expect(new Set(sessions.map(({ query }) => query))).toEqual(new Set(['<insufficient privilege>']))
  })
})

it('the plan of a person is a look-up, and a count reads the rows of its organization, among many others', async () => {
  const [shop, many] = [await createShop(service), await createShop(service)]
  const insert = (id: number, count: number) =>
    service.sql(
      `insert into entities (organization_id, stack_id, id, external_id, active, version, created_at, updated_at)
       select $1, 0, gen_random_uuid(), 'p' || n, true, 1, now(), now() from generate_series(1, $2::integer) n`,
      [id, count],
    )
  await insert(many.id, 20_000)
  await insert(shop.id, 500)
  await service.sql('vacuum analyze entities')
  const { rows } = await read(shop)
  const explain = async (query: string) =>
    JSON.stringify(await rows(`explain (analyze, costs off, buffers off) ${query}`))
  const byName = await explain(`select * from people where external_id = 'p7'`)
  expect(byName).toMatch(/Index Scan using entities_organization_id_external_id_stack_id_key/)
  expect(byName).toMatch(/Index Cond: .*organization_id = \d+.*external_id = 'p7'/)
  const [{ id }] = (await rows(`select id from people where external_id = 'p7'`)) as [{ id: string }]
  const byId = await explain(`select * from people where id = '${id}'`)
  expect(byId).toMatch(/Index Scan using entities_pkey/)
  expect(byId).toMatch(/Index Cond: .*organization_id = \d+.*id = /)
  expect(await explain(`select * from consents where person_id = '${id}'`)).toMatch(
    /entities_pkey.*Index Cond: [^"]*id = /,
  )
  const count = await explain('select count(*) from people')
  expect(count).toMatch(/(Index Only|Index|Bitmap Heap) Scan[^"]* on entities[^"]*rows=500/)
  expect(count).not.toMatch(/Seq Scan|Rows Removed/)
})
