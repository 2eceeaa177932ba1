import { setTimeout } from 'node:timers/promises'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createTestDatabase } from '../../test/support/database.ts'
import { query } from '../../test/support/embedded-service.ts'
import { awaitPipelined, type Database, openDatabase, parseTimestamp, statement } from './db.ts'
import { isUnavailable, unavailability } from './pg-errors.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
/** The pool has one connection, so the next statement sees the state that a test leaves on it. */
let db: Database

beforeAll(async () => {
  database = await createTestDatabase()
  db = openDatabase(database.url, { connections: 1, statementTimeoutMs: 10_000, application_name: 'subject' })
  await query(database.url, 'create table notes (id integer primary key, text text not null)')
})

afterAll(async () => {
  await db.close()
  await database.drop()
})

beforeEach(() => query(database.url, 'delete from notes'))

const insert = statement('insert_note', 'insert into notes values ($1, $2)')
const broken = statement('divide', 'select 1 / $1::integer as quotient')
const sleep = statement('sleep', 'select pg_sleep($1)')
const session = statement(
  'session',
  `select current_setting('lock_timeout') as lock_timeout, pg_current_xact_id_if_assigned() is null as no_transaction`,
)
const ownPidSql = statement('own_pid', 'select pg_backend_pid() as pid')
const notes = () => query(database.url, 'select id, text from notes order by id')

/** Expects the connection to be outside any transaction, with its initial settings. */
const expectClean = async () =>
  expect(await db.query(session, [])).toEqual([{ lock_timeout: '0', no_transaction: true }])

describe('a transaction', () => {
  it('commits when its work is done, or when the work itself sends COMMIT', async () => {
    expect(await db.transaction(async tx => tx.query(insert, [1, 'a']))).toEqual([])
    await db.transaction(tx => awaitPipelined([tx.query(insert, [2, 'b']), tx.query(insert, [3, 'c']), tx.commit()]))
    expect(await notes()).toHaveLength(3)
  })

  it('stores nothing if one of its rows is refused, and leaves the connection clean', async () => {
    const twice = db.transaction(tx =>
      awaitPipelined([tx.query(insert, [1, 'a']), tx.query(insert, [1, 'b']), tx.query(insert, [2, 'c']), tx.commit()]),
    )
    await expect(twice).rejects.toMatchObject({ code: '23505', table: 'notes' })
    expect(await notes()).toEqual([])
    await expectClean()
  })

  it('rolls back and rejects with the error that its work throws, and leaves the connection clean', async () => {
    const thrown = new Error('decided otherwise')
    const work = db.transaction(
      async tx => {
        await tx.query(insert, [1, 'a'])
        throw thrown
      },
      { lockTimeoutMs: 70 },
    )
    await expect(work).rejects.toBe(thrown)
    expect(await notes()).toEqual([])
    await expectClean()
  })

  it('rejects when the server answers COMMIT with ROLLBACK, even if the work ignored the error', async () => {
    for (const commits of [true, false]) {
      const work = db.transaction(async tx => {
        await tx.query(insert, [1, 'a'])
        await tx.query(broken, [0]).catch(() => {})
        if (commits) await tx.commit()
      })
      await expect(work).rejects.toThrow('the transaction ended in ROLLBACK')
      expect(await notes()).toEqual([])
      await expectClean()
    }
  })

  it('reports the first error of a flush in order, and does not run the rest', async () => {
    const work = db.transaction(tx =>
      awaitPipelined([tx.query(insert, [1, 'a']), tx.query(broken, [0]), tx.query(insert, [2, null]), tx.commit()]),
    )
    await expect(work).rejects.toMatchObject({ code: '22012' })
    expect(await notes()).toEqual([])
    await expectClean()
  })

  it('limits its wait for a lock, but not that of the next transaction', async () => {
    await db.transaction(tx => tx.query(insert, [1, 'a']))
    const other = await db.connect()
    await other.query('begin; lock table notes')
    const work = db.transaction(tx => tx.query(insert, [2, 'b']), { lockTimeoutMs: 20 })
    await expect(work).rejects.toMatchObject({ code: '55P03' })
    await expectClean()
    await other.end()
  })
})

describe('awaitPipelined', () => {
  it('throws the first rejection in order of the statements, after all have settled', async () => {
    let settled = 0
    const later = async (error?: Error) => {
      await new Promise(setImmediate)
      settled++
      if (error) throw error
    }
    const [first, second] = [new Error('first'), new Error('second')]
    await expect(awaitPipelined([later(), later(first), Promise.reject(second), later()])).rejects.toBe(first)
    expect(settled).toBe(3)
    await expect(awaitPipelined([])).resolves.toBeUndefined()
  })
})

describe('a connection that is lost', () => {
  const terminate = (pid: unknown) => query(database.url, `select pg_terminate_backend(${pid}, 5000)`)

  it('fails only its own transaction, and the process keeps running', async () => {
    for (const running of [true, false]) {
      const work = db.transaction(async tx => {
        const [{ pid }] = (await tx.query(ownPidSql, [])) as [{ pid: number }]
        await tx.query(insert, [1, 'a'])
        const slow = running ? tx.query(sleep, [60]) : Promise.resolve([])
        await Promise.all([terminate(pid), slow])
        await tx.query(insert, [2, 'b'])
      })
      const error = await work.catch(error => error)
      expect(isUnavailable(error)).toBe(true)
      expect(await notes()).toEqual([])
      await expectClean()
    }
  })

  it('is replaced by another one if it was idle', async () => {
    const [{ pid }] = (await db.query(ownPidSql, [])) as [{ pid: number }]
    await terminate(pid)
    await expect.poll(() => db.query(ownPidSql, []).catch(() => [])).toHaveLength(1)
    expect(await db.query(ownPidSql, [])).not.toEqual([{ pid }])
  })
})

describe('the 503 for a temporary database error', () => {
  it.each([
    ['25006', 'The database is read-only (a standby). It accepts no writes.'],
    ['53100', 'The database has no disk space left.'],
    ['40001', 'The request conflicted with other work in the database. Retry.'],
    ['57P03', 'The database cannot be reached at the moment.'],
  ])('of code %s says: %s', async (code, message) => {
    const raise = statement('', `do $$begin raise exception 'quotes a value' using errcode = '${code}'; end$$`)
    const error = await db.query(raise, []).catch(error => error)
    expect(unavailability(error)).toEqual({
      code: 'operation_failed',
      status: 503,
      message,
      details: [],
      headers: { 'Retry-After': '1' },
    })
  })
})

it('is unavailable while the name of its server is not found, whether the name servers say so or do not answer', async () => {
  const away = openDatabase('postgresql://nobody.invalid/kith', { connections: 1, statementTimeoutMs: 10_000 })
  const error = await away.query(ownPidSql, []).catch(error => error)
  await away.close()
  expect(['ENOTFOUND', 'EAI_AGAIN']).toContain(error.code)
  for (const code of ['ENOTFOUND', 'EAI_AGAIN'])
    expect(isUnavailable(Object.assign(new Error(error.message), { code }))).toBe(true)
})

describe('a signal that aborts', () => {
  const reason = new Error('the time is over')
  // The error of a cancelled statement is sent before its connection counts as idle.
  const active = () =>
    query(
      database.url,
      `select query from pg_stat_activity where application_name = 'subject' and wait_event = 'PgSleep'`,
    )

  it('cancels the running statement on the server, and then rejects with its reason', async () => {
    for (const run of [
      (signal: AbortSignal) => db.query(sleep, [60], signal),
      (signal: AbortSignal) => db.transaction(tx => tx.query(sleep, [60]), { signal }),
      (signal: AbortSignal) => db.transaction(tx => awaitPipelined([tx.query(sleep, [60]), tx.commit()]), { signal }),
    ]) {
      const controller = new AbortController()
      const running = run(controller.signal)
      await expect.poll(active).toEqual([{ query: expect.stringContaining('pg_sleep') }])
      controller.abort(reason)
      await expect(running).rejects.toBe(reason)
      expect(await active()).toEqual([])
      await expectClean()
    }
  })

  it('ends the wait for a connection, and a connection that arrives later is not lost', async () => {
    let end = () => {}
    const ended = new Promise<void>(resolve => {
      end = resolve
    })
    const owner = db.transaction(() => ended)
    const controller = new AbortController()
    const waiting = db.query(ownPidSql, [], controller.signal)
    controller.abort(reason)
    await expect(waiting).rejects.toBe(reason)
    await expect(db.query(ownPidSql, [], AbortSignal.abort(reason))).rejects.toBe(reason)
    end()
    await owner
    await expectClean()
  })

  it('cancels even if the server accepts no more connections', async () => {
    const role = `lonely_${process.pid}`
    await query(database.url, `create role ${role} login password 'lonely' connection limit 1`)
    const url = new URL(database.url)
    Object.assign(url, { username: role, password: 'lonely' })
    const lonely = openDatabase(url.href, { connections: 1, statementTimeoutMs: 10_000, application_name: 'subject' })
    try {
      const controller = new AbortController()
      const running = lonely.query(sleep, [60], controller.signal)
      await expect.poll(active).toEqual([{ query: expect.stringContaining('pg_sleep') }])
      await expect(lonely.connect()).rejects.toMatchObject({ code: '53300' })
      controller.abort(reason)
      await expect(running).rejects.toBe(reason)
      expect(await active()).toEqual([])
    } finally {
      await lonely.close()
      await query(database.url, `drop role ${role}`)
    }
  })

  it('never cancels the next statement on the connection, however late it aborts', async () => {
    for (let turn = 0; turn < 40; turn++) {
      const controller = new AbortController()
      const running = db.transaction(tx => tx.query(sleep, [0.004]), { signal: controller.signal })
      const outcome = running.then(
        () => 'done',
        error => error,
      )
      // The abort comes before, at or after the end of the statement.
      await setTimeout(turn % 8)
      controller.abort(reason)
      expect(['done', reason]).toContain(await outcome)
      expect(await db.query(sleep, [0.002])).toHaveLength(1)
    }
    await expectClean()
  })

  it('leaves no transaction open, even if it cancels the COMMIT', async () => {
    const errors: unknown[] = []
    while (errors.length < 5) {
      const [{ pid } = { pid: 0 }] = await db.query<{ pid: number }>(ownPidSql, [])
      let isCancelling = true
      const text = `select pg_cancel_backend(${pid}) from generate_series(1, 20000)`
      const cancelling = query(database.url, text).finally(() => {
        isCancelling = false
      })
      while (isCancelling)
        await db.transaction(tx => tx.commit()).catch(error => errors.push(error.code ?? error.message))
      await cancelling
    }
    expect([...new Set(errors)]).toEqual(['57014'])
    await expectClean()
  })
})

it('the server ends a statement after statement_timeout', async () => {
  const impatient = openDatabase(database.url, { connections: 1, statementTimeoutMs: 500 })
  await expect(impatient.query(sleep, [60], new AbortController().signal)).rejects.toMatchObject({ code: '57014' })
  await impatient.close()
})

it('applies options of the URL, except where they contradict the options that kith needs', async () => {
  const url = new URL(database.url)
  url.searchParams.set('options', '-c timezone=Asia/Kolkata -c datestyle=German -c work_mem=5MB')
  const withOptions = openDatabase(url.href, { connections: 1, statementTimeoutMs: 1_000 })
  const names = ['TimeZone', 'DateStyle', 'work_mem', 'enable_seqscan']
  const text = `select name, current_setting(name) as setting from unnest($1::text[]) as u(name)`
  expect((await withOptions.query(statement('', text), [names])).map(({ setting }) => setting)).toEqual([
    'UTC',
    'ISO, DMY',
    '5MB',
    'off',
  ])
  await withOptions.close()
})

describe('values read from the database', () => {
  it('are numbers for 64-bit integers, and texts in UTC for timestamps', async () => {
    const text = `select 9007199254740991::bigint as wide, timestamptz '2027-01-15 10:00:00.5+02' as moment, null::bigint as nothing`
    expect(await db.query(statement('', text), [])).toEqual([
      { wide: 9007199254740991, moment: '2027-01-15T08:00:00.500Z', nothing: null },
    ])
  })

  it('format every timestamp as JavaScript does, without microseconds', async () => {
    const moments = fc.date({
      min: new Date('0001-01-01T00:00:00Z'),
      max: new Date('9999-12-31T23:59:59.999Z'),
      noInvalidDate: true,
    })
    const sample = fc.sample(fc.tuple(moments, fc.integer({ min: 0, max: 999 })), 500)
    const texts = sample.map(([moment, micros]) => moment.toISOString().replace('Z', `${micros}`.padStart(3, '0')))
    const rows = await db.query(
      statement(
        '',
        `select (t || 'Z')::timestamptz as moment from unnest($1::text[]) with ordinality as u(t, n) order by n`,
      ),
      [texts],
    )
    expect(rows.map(({ moment }) => moment)).toEqual(sample.map(([moment]) => moment.toISOString()))
  })

  it('accept any number of fractional digits in a timestamp', () => {
    expect(parseTimestamp('2027-01-15 08:00:00+00')).toBe('2027-01-15T08:00:00.000Z')
    expect(parseTimestamp('2027-01-15 08:00:00.12+00')).toBe('2027-01-15T08:00:00.120Z')
    expect(parseTimestamp('2027-01-15 08:00:00.999999+00')).toBe('2027-01-15T08:00:00.999Z')
  })
})
