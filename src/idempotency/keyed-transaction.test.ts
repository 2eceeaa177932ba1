import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createTestDatabase } from '../../test/support/database.ts'
import { contextOf } from '../db/context.ts'
import { type Database, openDatabase, statement } from '../db/db.ts'
import type { StoredResponse } from '../route/call.ts'
import { keyedTransaction } from './keyed-transaction.ts'

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

const response: StoredResponse = { status: 200, headers: {}, body: 'true' }
const never = new AbortController().signal
const run = (number: number, work: (db: Database) => Promise<StoredResponse>, signal = never) =>
  keyedTransaction(
    contextOf(db, 1),
    { id: Buffer.alloc(32, number), request_sha256: Buffer.alloc(32, 7) },
    within => work(within.db),
    signal,
  )
const addOne = (to: Database, id: number, options = {}) => to.transaction(tx => tx.query(add, [id]), options)

describe('work with an Idempotency-Key', () => {
  it('sees what it has stored, and waits for locks as long as other work, not as the claim of the key does', async () => {
    const waited = await db.transaction(async other => {
      await other.query(add, [1])
      return run(1, async within => {
        await addOne(within, 2)
        const [counter] = await within.query<{ n: number }>(statement('', 'select n from counters where id = 2'), [])
        const [limit] = await within.transaction(tx => tx.query(statement('', 'show lock_timeout'), []))
        return { ...response, body: JSON.stringify({ ...counter, ...limit }) }
      })
    })
    expect([waited.response.body, await counters()]).toEqual(['{"n":1,"lock_timeout":"0"}', [1, 1]])
  })

  it('keeps a refusal without what was stored before it, also after a statement that failed', async () => {
    const refusal: StoredResponse = { status: 409, headers: {}, body: '{}' }
    const refused = (number: number, then: (within: Database) => Promise<unknown>) =>
      run(number, async within => {
        await addOne(within, 1)
        await then(within)
        return refusal
      })
    await refused(1, async () => {})
    await refused(2, within => within.query(insert, [1]).catch(() => {}))
    expect([await counters(), await keys()]).toEqual([[0, 0], 2])
    expect(await run(2, () => Promise.reject(new Error('started twice')))).toEqual({
      response: refusal,
      replayed: true,
    })
  })

  it('is rolled back with its key when it throws, or when a statement fails, even if it ignored the error', async () => {
    const throwing = run(1, async within => {
      await addOne(within, 1)
      throw new Error('no more')
    })
    await expect(throwing).rejects.toThrow('no more')
    const goingOn = run(1, async within => {
      await addOne(within, 1)
      await within.query(insert, [1]).catch(() => {})
      await addOne(within, 2).catch(() => {})
      return response
    })
    await expect(goingOn).rejects.toMatchObject({ code: '23505' })
    expect([await counters(), await keys()]).toEqual([[0, 0], 0])
  })

  it('runs again from the start after a deadlock, even if it ignored the error', async () => {
    let arrived = 0
    let bothHere = () => {}
    const both = new Promise<void>(resolve => {
      bothHere = resolve
    })
    let runs = 0
    const work = (first: number, then: number) => async (within: Database) => {
      runs += 1
      await addOne(within, first)
      if (++arrived === 2) bothHere()
      await both
      await addOne(within, then).catch(() => {})
      return response
    }
    await Promise.all([run(1, work(1, 2)), run(2, work(2, 1))])
    expect([await counters(), await keys()]).toEqual([[2, 2], 2])
    // On a busy machine, a restarted run may lock its first row before the other run does, and deadlock again.
    expect(runs).toBeGreaterThan(2)
  })

  it('leaves nothing behind when its deadline passes, and the key is free', async () => {
    const ending = new AbortController()
    const timely = run(
      1,
      async within => {
        await addOne(within, 1)
        ending.abort(new Error('time is over'))
        await within.query(statement('', 'select pg_sleep(10)'), [])
        return response
      },
      ending.signal,
    )
    await expect(timely).rejects.toThrow('time is over')
    expect([await counters(), await keys()]).toEqual([[0, 0], 0])
    await run(1, async within => {
      await addOne(within, 1)
      return response
    })
    expect(await counters()).toEqual([1, 0])
  })

  it('is not started again while it runs or after it has finished', async () => {
    const running = run(1, async within => {
      await expect(run(1, () => Promise.reject(new Error('started twice')))).rejects.toMatchObject({
        refusal: { status: 409 },
      })
      await addOne(within, 1)
      return response
    })
    expect(await running).toEqual({ response, replayed: false })
    expect(await run(1, () => Promise.reject(new Error('started twice')))).toEqual({ response, replayed: true })
  })
})
