import { setImmediate } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { createTestDatabase } from '../../test/support/database.ts'
import { query } from '../../test/support/embedded-service.ts'
import { type Database, openDatabase, statement } from './db.ts'
import { openSnapshot, type Snapshot } from './snapshot.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
let db: Database
let snapshot: Snapshot

beforeAll(async () => {
  database = await createTestDatabase()
  db = openDatabase(database.url, { connections: 1, statementTimeoutMs: 10_000 })
})
afterAll(async () => {
  await db.close()
  await database.drop()
})
beforeEach(async () => {
  snapshot = await openSnapshot(db)
  return () => snapshot.close()
})

const copy = (select: string) => statement('', `copy (${select}) to stdout (format binary)`)

/** All copied rows. The COPY pauses after each row for which `enough` returns true. */
async function takeAll(select: string, enough = () => false) {
  const taken: string[] = []
  const copying = snapshot.copy(copy(select), (bytes, start) => {
    taken.push(bytes.toString('utf8', start))
    return enough()
  })
  while (await copying.readOn());
  return taken
}

it('passes on whole rows in order, whatever they contain and however often the reader pauses', async () => {
  const select = `select case when n % 7 = 0 then repeat('long ü' || n, 30000) else 'row "' || n || '" \\ ' || chr(10) end
    from generate_series(1, 500) n`
  const expected = (await query(database.url, `select text from (${select}) as all_of (text)`)).map(({ text }) => text)
  expect(await takeAll(select)).toEqual(expected)
  let taken = 0
  expect(await takeAll(select, () => taken++ % 3 === 0)).toEqual(expected)
  expect(await takeAll('select text from (values (null)) as none (text) where false')).toEqual([])
  expect(await takeAll(`select ''`)).toEqual([''])
})

it('reads no further while the reader is paused', async () => {
  let taken = 0
  const copying = snapshot.copy(copy(`select repeat('x', 1000) from generate_series(1, 100000)`), () => {
    taken += 1
    return true
  })
  expect(await copying.readOn()).toBe(true)
  const before = taken
  for (let turn = 0; turn < 200; turn += 1) await setImmediate()
  expect(taken).toBe(before)
  expect(taken).toBeLessThan(1_000)
  await copying.readOn()
  expect(taken).toBeGreaterThan(before)
})

it('reports a database error after the rows before it, and an error of the reader at once', async () => {
  await expect(takeAll('select (6 / (3 - n))::text from generate_series(1, 5) n')).rejects.toMatchObject({
    code: '22012',
  })
  const other = await openSnapshot(db)
  const copying = other.copy(copy('select n::text from generate_series(1, 5) n'), () => {
    throw new Error('cannot take it')
  })
  await expect(copying.readOn()).rejects.toThrow('cannot take it')
  await expect(copying.readOn()).rejects.toThrow('cannot take it')
  await other.close()
})

it('ends a running COPY when the snapshot is closed, even while nothing is read', async () => {
  const running = () =>
    query(database.url, `select 1 from pg_stat_activity where query like 'copy (select repeat%' and state = 'active'`)
  for (const enough of [true, false]) {
    const other = await openSnapshot(db)
    const copying = other.copy(copy(`select repeat('x', 1000) from generate_series(1, 10000000)`), () => enough)
    const read = copying.readOn().catch((error: Error) => error)
    if (enough) await read
    await other.close()
    if (!enough) expect(await read).toBeInstanceOf(Error)
    await expect.poll(running, { timeout: 10_000 }).toEqual([])
  }
})

it('shows all reads the state of the database at the first read', async () => {
  await query(database.url, 'create table seen (text text)')
  await query(database.url, `insert into seen values ('first')`)
  expect(await snapshot.query(statement('count_seen', 'select count(*)::integer as count from seen'), [])).toEqual([
    { count: 1 },
  ])
  await query(database.url, `insert into seen values ('later')`)
  expect(await takeAll('select text from seen')).toEqual(['first'])
})
