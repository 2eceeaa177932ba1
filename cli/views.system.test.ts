import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { openDatabase } from '../src/db/db.ts'
import { viewsRenewal } from '../src/sql-views/sql-views.ts'
import { runInProcess, useFolder } from '../test/support/command.ts'
import { createTestDatabase } from '../test/support/database.ts'
import { useOwnService } from '../test/support/service.ts'
import { useShop } from '../test/support/shop.ts'
import { expectRefused, useViews } from '../test/support/sql-views.ts'

const service = useOwnService()
const shop = useShop(service)
const folder = useFolder()
const { kith, connect, create } = useViews(service)

describe('kith views', () => {
  it('keeps no password, and takes one from a file or standard input', async () => {
    const { role, password } = await create(shop)
    const [stored] = await service.sql(
      'select rolpassword as text, rolconnlimit as connections from pg_authid where rolname = $1',
      [role],
    )
    expect(stored).toMatchObject({ text: expect.stringMatching(/^SCRAM-SHA-256\$4096:/), connections: 10 })
    expect(JSON.stringify(await service.sql('select * from sql_views'))).not.toContain(password)
    const file = join(folder, 'password')
    await writeFile(file, 'correct-horse-battery\n')
    const fromFile = await create(shop, '--schema', `file_${role}`, '--password-file', file)
    expect(fromFile).toEqual({ schema: `file_${role}`, role: `file_${role}` })
    expect(await (await connect(fromFile.role, 'correct-horse-battery')).rows('show statement_timeout')).toEqual([
      { statement_timeout: '1min' },
    ])
    const typed = await kith(
      ['create', '--org', shop.key, '--schema', `typed_${role}`, '--password-file', '-', '--json'],
      'a-typed-password',
    )
    expect([typed.code, typed.stdout]).toEqual([0, `{"schema":"typed_${role}","role":"typed_${role}"}\n`])
    expect(
      await (await connect(`typed_${role}`, 'a-typed-password')).rows('show default_transaction_read_only'),
    ).toEqual([{ default_transaction_read_only: 'on' }])
    const weak = await kith(['create', '--org', shop.key, '--schema', 'weak', '--password-file', '-'], 'short')
    expect([weak.code, weak.stderr]).toEqual([2, expect.stringContaining('12 to 200 printable ASCII characters')])
    const { stdout } = await kith(['list', '--format', 'json'])
    expect(
      JSON.parse(stdout).filter(({ organization }: { organization: string }) => organization === shop.key),
    ).toHaveLength(3)
  })

  it.each([
    [['--schema', 'public'], 2, 'cannot be that of the schema'],
    [['--schema', 'pg_mine'], 2, 'cannot be that of the schema'],
    [['--schema', 'a"; drop schema public; --'], 2, 'cannot be that of the schema'],
    [['--schema', 'x'.repeat(64)], 2, 'cannot be that of the schema'],
    [['--role', 'nobody_there'], 1, 'PostgreSQL has no role nobody_there.'],
    [['--role', 'a"b'], 1, 'PostgreSQL has no role a"b.'],
    [['--role', 'x', '--password-file', 'y'], 2, 'The role exists and has its password.'],
    [['--fields-of', 'nothing'], 1, 'There is no active role "nothing"'],
  ])('refuses %j', async (words, code, message) => {
    const result = await kith(['create', '--org', shop.key, ...words])
    expect([result.code, result.stderr]).toEqual([code, expect.stringContaining(message)])
    expect(await service.sql('select 1 from sql_views where organization_id = $1', [shop.id])).toEqual([])
  })

  it('refuses a name that is taken, and an organization that does not exist', async () => {
    const { schema } = await create(shop)
    expect((await kith(['create', '--org', shop.key])).stderr).toContain(`There is a schema ${schema} already.`)
    expect((await kith(['create', '--org', 'nobody'])).stderr).toContain('There is no organization "nobody"')
    expect((await kith(['drop', '--org', shop.key, '--schema', 'other', '--yes'])).stderr).toContain(
      'has no schema other',
    )
    await service.sql(`create role "taken_${schema}"`)
    try {
      expect((await kith(['create', '--org', shop.key, '--schema', `taken_${schema}`])).stderr).toContain(
        'Give it the views with --role',
      )
    } finally {
      await service.sql(`drop role "taken_${schema}"`)
    }
  })

  it('gives a role that exists its views, and refuses one that reaches more', async () => {
    const role = `given_${shop.key}`
    await service.sql(`create role ${role} login password 'given'`)
    try {
      for (const [grant, revoke, what] of [
        [
          `grant select (id) on public.entities to ${role}`,
          `revoke select (id) on public.entities from ${role}`,
          'entities',
        ],
        [
          `grant select on pg_catalog.pg_authid to ${role}`,
          `revoke all on pg_catalog.pg_authid from ${role}`,
          'pg_authid',
        ],
        [
          `grant execute on function pg_ls_dir(text) to ${role}`,
          `revoke all on function pg_ls_dir(text) from ${role}`,
          'pg_ls_dir',
        ],
        [`grant pg_read_all_data to ${role}`, `revoke pg_read_all_data from ${role}`, 'pg_read_all_data'],
        [`alter role ${role} createdb`, `alter role ${role} nocreatedb`, 'the attribute createdb'],
        [
          `grant create on schema public to ${role}`,
          `revoke all on schema public from ${role}`,
          'CREATE in the schema public',
        ],
        [
          `grant usage on sequence public.change_numbers to ${role}`,
          `revoke all on sequence public.change_numbers from ${role}`,
          'change_numbers',
        ],
      ] as const) {
        await service.sql(grant)
        const { code, stderr } = await kith(['create', '--org', shop.key, '--role', role])
        expect([code, stderr]).toEqual([1, expect.stringContaining(`The role ${role} also has `)])
        expect(stderr).toContain(what)
        expect(await service.sql('select 1 from sql_views where organization_id = $1', [shop.id])).toEqual([])
        await service.sql(revoke)
      }
      const { schema } = await create(shop, '--role', role)
      const reader = await connect(role, 'given')
      expect(await reader.rows(`select count(*)::integer as count from ${schema}.people`)).toEqual([{ count: 0 }])
      expect((await kith(['drop', '--org', shop.key, '--yes'])).code).toBe(0)
      await expectRefused(reader, `select * from ${schema}.people`, '42P01')
      expect(await service.sql('select 1 from pg_roles where rolname = $1', [role])).toHaveLength(1)
    } finally {
      await service.sql(`drop role ${role}`)
    }
  })

  it('drops the schema, the role and its sessions; so does the deletion of the organization', async () => {
    for (const drop of [
      () => kith(['drop', '--org', shop.key, '--yes']),
      async () => {
        await service.sql(`update organizations set deleted_at = now() - interval '1 minute' where id = $1`, [shop.id])
        return runInProcess(['org', 'delete', shop.key, '--yes'], { DATABASE_URL: service.databaseUrl })
      },
    ]) {
      const { role, password, schema } = await create(shop)
      const reader = await connect(role, password)
      await reader.client.query('begin')
      await reader.rows('select * from people')
      const { code, stderr } = await drop()
      expect([code, stderr]).toEqual([0, expect.any(String)])
      await expect(reader.rows('select 1')).rejects.toThrow()
      await expect(connect(role, password)).rejects.toThrow()
      const left = `select 1 from pg_roles where rolname = $1 union all select 1 from pg_namespace where nspname = $2 union all select 1 from sql_views where organization_id = $3`
      expect(await service.sql(left, [role, schema, shop.id])).toEqual([])
    }
  })

  it('says what is kept of a role that has something elsewhere, and lets it log in no more', async () => {
    const { role, password } = await create(shop)
    await service.sql(`grant select on public.stacks to "${role}"`)
    try {
      const { code, stderr } = await kith(['drop', '--org', shop.key, '--yes'])
      expect([code, stderr]).toEqual([0, expect.stringContaining(`The role ${role} is kept, and cannot log in`)])
      await expect(connect(role, password)).rejects.toThrow(/not permitted to log in/)
    } finally {
      await service.sql(`drop owned by "${role}"`)
      await service.sql(`drop role "${role}"`)
    }
  })

  it('refuses a database with Citus in one sentence', async () => {
    const { client } = await connect()
    await client.query('set allow_system_table_mods = on')
    await client.query(`insert into pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)
      values (99999, 'citus', 10, 11, false, '1')`)
    try {
      const { code, stderr } = await kith(['create', '--org', shop.key])
      expect([code, stderr]).toEqual([1, expect.stringContaining('Views need a database without Citus')])
    } finally {
      await client.query(`delete from pg_extension where extname = 'citus'`)
    }
  })
})

it('a service whose role may not create roles or schemas says what an administrator runs, and goes on with --role', async () => {
  const owner = `svc_${process.pid}`
  const database = await createTestDatabase({ tables: false })
  const name = new URL(database.url).pathname.slice(1)
  await service.sql(`create role ${owner} login password 'svc'`)
  const admin = new pg.Client({ connectionString: database.url })
  await admin.connect()
  const url = new URL(database.url)
  url.username = owner
  url.password = 'svc'
  const run = (...words: string[]) => runInProcess(words, { DATABASE_URL: url.href })
  const login = `${owner}_reader`
  try {
    await admin.query(`grant connect, temporary on database ${name} to ${owner}`)
    await admin.query(`grant all on schema public to ${owner}`)
    expect((await run('org', 'create', 'acme')).code).toBe(0)
    const first = await run('views', 'create', '--org', 'acme', '--schema', login)
    expect(first.stderr).toContain(
      `The database role of the service may not create roles: let an administrator run \`create role "${login}" login connection limit 10 password '…'\`, and run the command again with --role ${login}.`,
    )
    await admin.query(`create role ${login} login connection limit 10 password 'reader'`)
    const second = await run('views', 'create', '--org', 'acme', '--role', login)
    expect(second.stderr).toContain(
      `may not make schemas in the database ${name}: let an administrator run \`grant create on database "${name}" to "${owner}"\``,
    )
    await admin.query(`grant create on database "${name}" to "${owner}"`)
    const third = await run('views', 'create', '--org', 'acme', '--role', login)
    expect(third.stderr).toContain(`The role ${login} also has TEMPORARY in the database ${name}`)
    await admin.query(`revoke temporary on database ${name} from public`)
    const fourth = await run('views', 'create', '--org', 'acme', '--role', login)
    expect([fourth.code, fourth.stderr]).toEqual([0, expect.stringContaining('Made the schema kith_acme')])
    url.username = login
    url.password = 'reader'
    const reader = new pg.Client({ connectionString: url.href })
    await reader.connect()
    const { rows } = await reader.query('select count(*)::integer as count from kith_acme.people')
    expect(rows).toEqual([{ count: 0 }])
    await reader.end()
    const db = openDatabase(Object.assign(new URL(url), { username: owner, password: 'svc' }).href, {
      connections: 1,
      statementTimeoutMs: 10_000,
    })
    await viewsRenewal(db)(new AbortController().signal)
    await db.close()
    expect(
      (
        await runInProcess(['org', 'delete', 'acme', '--yes'], {
          DATABASE_URL: Object.assign(new URL(url), { username: owner, password: 'svc' }).href,
        })
      ).code,
    ).toBe(0)
  } finally {
    await admin.end()
    await database.drop()
    await service.sql(`drop role if exists ${login}`)
    await service.sql(`drop role ${owner}`)
  }
}, 60_000)

it('a restored copy on the same server gives the role nothing, and its drop leaves the role to the original', async () => {
  const { role, password, schema } = await create(shop)
  const file = join(folder, 'copy.kith-backup')
  expect((await runInProcess(['backup', file], { DATABASE_URL: service.databaseUrl })).code).toBe(0)
  const database = await createTestDatabase({ tables: false })
  const copy = { DATABASE_URL: database.url }
  try {
    const restored = await runInProcess(['restore', file], copy)
    expect([restored.code, restored.stderr]).toEqual([0, expect.any(String)])
    expect((await runInProcess(['views', 'renew', '--org', shop.key], copy)).code).toBe(0)
    expect((await runInProcess(['views', 'list', '--json'], copy)).stdout).toContain('"state":"without role"')
    const url = new URL(database.url)
    Object.assign(url, { username: role, password })
    const reader = new pg.Client({ connectionString: url.href })
    await reader.connect()
    await expect(reader.query(`select * from "${schema}".people`)).rejects.toThrow('permission denied')
    await reader.end()
    expect((await runInProcess(['views', 'drop', '--org', shop.key, '--yes'], copy)).code).toBe(0)
    const original = await connect(role, password)
    expect(await original.rows('select count(*)::integer as count from people')).toEqual([{ count: 0 }])
  } finally {
    await database.drop()
  }
}, 60_000)
