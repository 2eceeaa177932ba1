import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../test/support/database.ts'
import { type Database, openDatabase, statement } from '../db/db.ts'
import { isLockTimeout, isUniqueViolation } from '../db/pg-errors.ts'
import { runIdempotent, type StoredResponse } from './run-idempotent.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
let db: Database
beforeAll(async () => {
  database = await createTestDatabase()
  db = openDatabase(database.url, { connections: 6, statementTimeoutMs: 11_000 })
  await db.query(statement('', 'create table counters (id integer primary key, n integer not null)'), [])
})
afterAll(async () => {
  await db.close()
  await database.drop()
})
beforeEach(async () => {
  await db.query(statement('', 'truncate idempotency_keys'), [])
  await db.query(statement('', 'truncate counters'), [])
  await db.query(statement('', 'insert into counters values (1, 0), (2, 0)'), [])
})

const add = statement('', 'update counters set n = n + 1 where id = $1')
const insert = statement('', 'insert into counters values ($1, 0)')
const counters = async () =>
  (await db.query<{ n: number }>(statement('', 'select n from counters order by id'), [])).map(({ n }) => n)
const keys = async () => (await db.query(statement('', 'select 1 from idempotency_keys'), [])).length

const kept: StoredResponse = { status: 200, headers: {}, body: 'true' }
const never = new AbortController().signal
const run = (number: number, work: (db: Database) => Promise<StoredResponse>, signal = never) =>
  runIdempotent(
    db,
    { organization_id: 1, id: Buffer.alloc(32, number), request_sha256: Buffer.alloc(32, 7) },
    work,
    signal,
  )
const addOne = (to: Database, id: number, options = {}) => to.transaction(tx => tx.query(add, [id]), options)

describe('work under a key', () => {
  test('may fail in one of its transactions and try again: the failed part alone is undone', async () => {
    await run(1, async joined => {
      await addOne(joined, 1)
      const failing = joined.transaction(async tx => {
        await tx.query(add, [2])
        await tx.query(insert, [1])
      })
      await expect(failing).rejects.toSatisfy(isUniqueViolation)
      await addOne(joined, 1)
      return kept
    })
    expect([await counters(), await keys()]).toEqual([[2, 0], 1])
  })

  test('may wait for locks as long as each of its transactions says, not as the key does', async () => {
    const waited = await db.transaction(async other => {
      await other.query(add, [1])
      return run(1, async joined => {
        await expect(addOne(joined, 1, { lockTimeoutMs: 20 })).rejects.toSatisfy(isLockTimeout)
        const [unlimited] = await joined.transaction(tx =>
          tx.query<{ lock_timeout: string }>(statement('', 'show lock_timeout'), []),
        )
        await addOne(joined, 2)
        return { ...kept, body: JSON.stringify(unlimited) }
      })
    })
    expect([waited.kept.body, await counters()]).toEqual(['{"lock_timeout":"0"}', [1, 1]])
  })

  test('is undone with its key when it throws, and when it goes on after a statement outside of its transactions failed', async () => {
    const throwing = run(1, async joined => {
      await addOne(joined, 1)
      throw new Error('no more')
    })
    await expect(throwing).rejects.toThrow('no more')
    const goingOn = run(1, async joined => {
      await addOne(joined, 1)
      await joined.query(insert, [1]).catch(() => {})
      await addOne(joined, 2).catch(() => {})
      return kept
    })
    await expect(goingOn).rejects.toSatisfy(isUniqueViolation)
    expect([await counters(), await keys()]).toEqual([[0, 0], 0])
  })

  test('that a deadlock ends is run again from its beginning, whatever it has made of the error', async () => {
    let arrived = 0
    let bothHere = () => {}
    const both = new Promise<void>(resolve => {
      bothHere = resolve
    })
    let runs = 0
    const work = (first: number, then: number) => async (joined: Database) => {
      runs += 1
      await addOne(joined, first)
      if (++arrived === 2) bothHere()
      await both
      await addOne(joined, then).catch(() => {})
      return kept
    }
    await Promise.all([run(1, work(1, 2)), run(2, work(2, 1))])
    expect([await counters(), await keys()]).toEqual([[2, 2], 2])
    // Once more, or again: on a busy machine who begins anew may take its first row before the other has come by it.
    expect(runs).toBeGreaterThan(2)
  })

  test('that runs out of time leaves nothing, and the key is free', async () => {
    const ending = new AbortController()
    const timely = run(
      1,
      async joined => {
        await addOne(joined, 1)
        ending.abort(new Error('time is over'))
        await joined.query(statement('', 'select pg_sleep(10)'), [])
        return kept
      },
      ending.signal,
    )
    await expect(timely).rejects.toThrow('time is over')
    expect([await counters(), await keys()]).toEqual([[0, 0], 0])
    await run(1, async joined => {
      await addOne(joined, 1)
      return kept
    })
    expect(await counters()).toEqual([1, 0])
  })

  test('that is asked for while it runs, or once more, is not begun', async () => {
    const begun = run(1, async joined => {
      await expect(run(1, () => Promise.reject(new Error('begun twice')))).rejects.toMatchObject({
        refusal: { status: 409 },
      })
      await addOne(joined, 1)
      return kept
    })
    expect(await begun).toEqual({ kept, replayed: false })
    expect(await run(1, () => Promise.reject(new Error('begun twice')))).toEqual({ kept, replayed: true })
  })
})
