import { randomUUID } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { runInProcess } from '../../test/support/command.ts'
import { createTestDatabase } from '../../test/support/database.ts'
import { query } from '../../test/support/embedded-service.ts'
import type { Finding } from '../operations/doctor/finding.ts'
import { migrate, requireMigrated } from './migrate.ts'

let url: string
let drop: () => Promise<void>

beforeEach(async () => {
  ;({ url, drop } = await createTestDatabase())
  await query(url, 'drop schema public cascade; create schema public')
})

afterEach(() => drop())

/** The migrations of this checkout, in order. */
async function files(): Promise<string[]> {
  const names = await readdir(new URL('../../migrations/', import.meta.url))
  return names
    .filter(name => /^\d{4}_.*\.sql$/.test(name))
    .map(name => name.replace('.sql', ''))
    .sort()
}

const tables = () => query(url, `select tablename from pg_tables where schemaname = 'public' order by tablename`)
const recorded = async () => (await query(url, 'select name from migrations order by id')).map(({ name }) => name)

it('migrates an empty database to the newest version, and then does nothing', async () => {
  expect(await migrate(url)).toEqual(await files())
  const migrated = await tables()
  expect(migrated).toContainEqual({ tablename: 'entities' })
  expect(await migrate(url)).toEqual([])
  expect(await tables()).toEqual(migrated)
  expect(await recorded()).toEqual(await files())
})

it('runs each migration once when several processes start together', async () => {
  const ran = await Promise.all([1, 2, 3, 4].map(() => migrate(url)))
  expect(ran.flat()).toEqual(await files())
  expect(await recorded()).toEqual(await files())
})

it('leaves nothing behind when it fails, so that it can be repeated', async () => {
  await query(url, 'create table links (somebody text)')
  await expect(migrate(url)).rejects.toThrow(/links/)
  expect((await tables()).filter(({ tablename }) => tablename !== 'migrations')).toEqual([{ tablename: 'links' }])
  await query(url, 'drop table links')
  expect(await migrate(url)).toEqual(await files())
})

it('refuses a new database whose encoding is not UTF8, and the doctor finds it', async () => {
  const name = `bytes_${randomUUID().slice(0, 8)}`
  await query(url, `create database ${name} encoding 'SQL_ASCII' locale 'C' template template0`)
  const other = new URL(url)
  other.pathname = `/${name}`
  try {
    const advice = `Make it anew: create database ${name} encoding 'UTF8' template template0`
    await expect(migrate(other.href)).rejects.toThrow(`has the encoding SQL_ASCII, and kith needs UTF8. ${advice}`)
    const { stdout } = await runInProcess(['doctor'], { DATABASE_URL: other.href })
    expect(stdout).toMatch(/wrong {4}database +the encoding of the database is SQL_ASCII, and kith needs UTF8/)
  } finally {
    await query(url, `drop database ${name}`)
  }
})

it('makes the tables in the schema public, also if the role has a schema of its name', async () => {
  const [{ role }] = (await query(url, 'select current_user as role')) as [{ role: string }]
  await query(url, `create schema "${role}"`)
  expect(await migrate(url, 2)).toHaveLength(2)
  await migrate(url)
  expect(await query(url, `select from pg_tables where schemaname = '${role}'`)).toEqual([])
})

it('is not ended by a timeout that the database sets', async () => {
  await query(url, `alter database ${new URL(url).pathname.slice(1)} set statement_timeout = '20ms'`)
  // Each definition takes 30 ms.
  await query(
    url,
    `create function slow() returns event_trigger language plpgsql as $$ begin perform pg_sleep(0.03); end $$`,
  )
  await query(url, 'create event trigger slow_down on ddl_command_end execute function slow()')
  expect(await migrate(url, 1)).toHaveLength(1)
})

it('runs the pending migrations in one transaction', async () => {
  expect(await migrate(url, 3)).toEqual((await files()).slice(0, 3))
  const first = await tables()
  await query(url, 'create table webhooks (somebody text)')
  await expect(migrate(url)).rejects.toThrow(/webhooks/)
  await query(url, 'drop table webhooks')
  expect(await tables()).toEqual(first)
  expect(await migrate(url)).toEqual((await files()).slice(3))
})

it('says in the catalogue what a row of each table is, in one sentence', async () => {
  await migrate(url)
  const described = await query(
    url,
    `select c.relname as name, obj_description(c.oid, 'pg_class') as sentence from pg_class c
     where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and c.relname <> 'migrations' order by c.relname`,
  )
  expect(described.length).toBeGreaterThan(40)
  expect(described.filter(({ sentence }) => !/^[A-Z][^.]+\.$/.test(`${sentence}`))).toEqual([])
})

it('refuses a database of an earlier beta in one sentence that says how to carry the data over, and changes nothing', async () => {
  await query(url, 'create table migrations (id serial primary key, name varchar not null, run_on timestamp not null)')
  await query(
    url,
    `insert into migrations (name, run_on) values ('0001_house', now()), ('0002_filters', now()), ('9999_later', now())`,
  )
  const before = await tables()
  for (const attempt of [() => migrate(url), () => migrate(url, 1), () => requireMigrated(url)])
    await expect(attempt()).rejects.toThrow(
      /^An earlier beta of kith made the database, [^.]*kith export[^.]*empty database or data folder[^.]*kith import[^.]* docs\/scale\.md describes\.$/,
    )
  expect(await tables()).toEqual(before)
})

it('says which right the role lacks, as the doctor does', async () => {
  const role = `powerless_${randomUUID().slice(0, 8)}`
  // As in the schema public of PostgreSQL 15 and later: every role may use it, and only the owner of the database
  // creates tables.
  await query(url, `create role ${role} login password 'powerless'; grant usage on schema public to ${role}`)
  const asRole = new URL(url)
  asRole.username = role
  asRole.password = 'powerless'
  const doctor = async () => {
    const { code, stdout } = await runInProcess(['doctor', '--json'], { DATABASE_URL: asRole.href })
    const findings: Finding[] = JSON.parse(stdout).findings
    return [code, findings.find(({ check }) => check === 'migrations')?.message]
  }
  try {
    const grant = `grant usage, create on schema public to ${role}`
    await expect(migrate(asRole.href)).rejects.toThrow(
      `The role ${role} may not create tables. Run, as the owner of the database: ${grant}`,
    )
    expect(await doctor()).toEqual([1, `the role ${role} may not create tables`])
    await migrate(url)
    await query(url, `grant select on all tables in schema public to ${role}`)
    expect(await doctor()).toEqual([1, `the role ${role} may not write the tables of kith`])
  } finally {
    await query(url, `drop owned by ${role}; drop role ${role}`)
  }
})
