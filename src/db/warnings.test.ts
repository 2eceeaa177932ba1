import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createTestDatabase } from '../../test/support/database.ts'
import { query } from '../../test/support/embedded-service.ts'
import { awaitPipelined, type Database, openDatabase, statement } from './db.ts'
import { OutcomeUnknown } from './pg-errors.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
/** The pool has one connection, so the next statement sees the state that a test leaves on it. */
let db: Database

beforeAll(async () => {
  database = await createTestDatabase()
  db = openDatabase(database.url, { connections: 1, statementTimeoutMs: 10_000 })
  await query(database.url, 'create table notes (id integer primary key, text text not null)')
})
afterAll(async () => {
  await db.close()
  await database.drop()
})
beforeEach(() => query(database.url, 'delete from notes'))

const insert = statement('insert_note', 'insert into notes values ($1, $2)')
const notes = () => query(database.url, 'select id, text from notes order by id')

describe('a warning', () => {
  const warn = statement('', `do $$begin raise warning 'of a statement'; end$$`)
  const deferred = `
    create function warn_at_commit() returns trigger language plpgsql as
      'begin raise warning ''at commit''; return null; end';
    create constraint trigger warn_at_commit after insert on notes deferrable initially deferred
      for each row when (new.text = 'doubtful') execute function warn_at_commit()`
  const doubtful = [1, 'doubtful']

  it('of a statement does not make its COMMIT or the next one uncertain', async () => {
    await db.transaction(tx =>
      awaitPipelined([tx.query(warn, []), tx.query(insert, [2, 'b']), tx.query(warn, []), tx.commit()]),
    )
    await db.query(warn, [])
    await db.transaction(async tx => tx.query(insert, [3, 'c']))
    await db.transaction(async () => {})
    expect(await notes()).toHaveLength(2)
  })

  it('of a COMMIT, or of a statement that commits by itself, is an unknown outcome, and the connection stays usable', async () => {
    await query(database.url, deferred)
    const commits = [
      () => db.transaction(tx => tx.query(insert, doubtful)),
      () => db.transaction(tx => awaitPipelined([tx.query(insert, doubtful), tx.commit()])),
      () => db.query(insert, doubtful),
    ]
    for (const commit of commits) {
      await query(database.url, 'delete from notes')
      await expect(commit()).rejects.toBeInstanceOf(OutcomeUnknown)
      expect(await notes()).toHaveLength(1)
      await db.transaction(async tx => tx.query(insert, [2, 'sure']))
    }
    await query(database.url, 'drop trigger warn_at_commit on notes')
  })

  it('of Citus that a shard may not have committed is an unknown outcome too', async () => {
    await query(
      database.url,
      `create function fail_at_commit() returns trigger language plpgsql as
         'begin raise ''could not commit transaction for shard 102008 on at least one active node''; end';
       create constraint trigger fail_at_commit after insert on notes deferrable initially deferred
         for each row when (new.text = 'doubtful') execute function fail_at_commit()`,
    )
    for (const commit of [
      () => db.transaction(tx => tx.query(insert, doubtful)),
      () => db.transaction(tx => awaitPipelined([tx.query(insert, doubtful), tx.commit()])),
      () => db.query(insert, doubtful),
    ])
      await expect(commit()).rejects.toBeInstanceOf(OutcomeUnknown)
    await query(database.url, 'drop trigger fail_at_commit on notes')
  })

  it('is received even if the database sets client_min_messages to error', async () => {
    const name = new URL(database.url).pathname.slice(1)
    await query(database.url, `alter database ${name} set client_min_messages = error`)
    const other = openDatabase(database.url, { connections: 1, statementTimeoutMs: 1_000 })
    const [row] = await other.query(statement('', 'show client_min_messages'), [])
    expect(row).toEqual({ client_min_messages: 'warning' })
    await other.close()
    await query(database.url, `alter database ${name} reset client_min_messages`)
  })
})
