import { readdir } from 'node:fs/promises'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createTestDatabase } from '../../test/support/database.ts'
import { query } from '../../test/support/embedded-service.ts'
import { migrate } from './migrate.ts'

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
