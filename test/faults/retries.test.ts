import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { query, until } from '../support/embedded-service.ts'
import { endProcesses, launch, lockPerson, senderTo } from '../support/process.ts'
import type { Reply, Send } from '../support/service.ts'
import { printRound } from './report.ts'
import { rounds } from './rounds.ts'
import { makeWorld } from './world.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
let send: Send
beforeAll(async () => {
  database = await createTestDatabase()
  const name = new URL(database.url).pathname.slice(1)
  // PostgreSQL aborts the transaction that detects the deadlock. A short timeout makes that kith's transaction.
  await query(database.url, `alter database ${name} set deadlock_timeout = '500ms'`)
  const address = await launch({ DATABASE_URL: database.url, LOG_LEVEL: 'warn' }).ready
  const world = await makeWorld(database.url, address)
  send = senderTo(address, world.token)
  // The declared index becomes ready in the background. A write with the older definitions would be decided again.
  const unready = 'select from attributes where indexed and not index_ready'
  await until(async () => (await query(database.url, unready)).length === 0)
  for (const external_id of ['ada', 'bob']) await send('POST', '/v1/people', { external_id })
  await query(database.url, failingTriggerSql)
})
afterAll(async () => {
  await endProcesses()
  await database.drop()
})

/**
 * Lets the first attempts to append to the change log fail. The table `failing` has their number. A sequence counts attempts, because it
 * keeps counting when a transaction is rolled back.
 */
const failingTriggerSql = `
  create table failing (times integer, code text);
  create sequence attempts;
  create function fail_some() returns trigger language plpgsql as
    $$begin
      if nextval('attempts') <= (select times from failing) then
        raise exception 'as often as the test says' using errcode = (select code from failing);
      end if;
      return null;
    end$$;
  create trigger fail_some before insert on changes for each statement execute function fail_some()`

const failTimes = (times: number, code: string) =>
  query(
    database.url,
    `delete from failing; insert into failing values (${times}, '${code}'); alter sequence attempts restart`,
  )

async function readAttempts(): Promise<number> {
  const [row] = await query(database.url, 'select last_value::integer as n, is_called from attempts')
  return row!.is_called ? (row!.n as number) : 0
}

const countMarked = async (mark: string) =>
  (await query(database.url, `select from changes where after->'attribute_values'->>'mark' like '${mark}%'`)).length

const requestCases: [name: string, writes: number, sendRequest: (mark: string) => Promise<Reply>][] = [
  ['a PATCH', 1, mark => send('PATCH', '/v1/people/ada', { attribute_values: { mark } })],
  ['a create', 1, mark => send('POST', '/v1/people', { attribute_values: { mark } })],
  [
    'a create under an Idempotency-Key',
    1,
    mark => send('POST', '/v1/people', { attribute_values: { mark } }, { 'Idempotency-Key': mark }),
  ],
  ['a batch', 3, mark => send('POST', '/v1/people/batch', { operations: upserts(mark) })],
  ['an atomic batch', 3, mark => send('POST', '/v1/people/batch', { operations: upserts(mark), atomic: true })],
]

const upserts = (mark: string) =>
  [1, 2, 3].map(number => ({
    op: 'upsert',
    external_id: `upserted ${number}`,
    body: { attribute_values: { mark: `${mark} ${number}` } },
  }))

const transientFailures = 3
const permanentFailures = 1_000_000
/** Ten attempts, and for a batch also ten for each part that it is split into. */
const maxAttempts = 60

describe.each([
  ['a serialization failure', '40001'],
  ['a deadlock', '40P01'],
])('%s', (fault, code) => {
  it.each(requestCases)('does not fail %s if a retry succeeds', async (requestName, writes, sendRequest) => {
    const mark = `${requestName} ${code} passes`
    await failTimes(transientFailures, code)
    const { status } = await sendRequest(mark)
    printRound(`${fault} of ${requestName}`, 1, { attempts: await readAttempts(), status })
    expect(status).toBeLessThan(300)
    expect(await readAttempts()).toBe(transientFailures + 1)
    expect(await countMarked(mark)).toBe(writes)
  })

  it.each(requestCases)(
    'ends %s with 503 after a bounded number of failed attempts',
    async (requestName, _, sendRequest) => {
      const mark = `${requestName} ${code} stays`
      await failTimes(permanentFailures, code)
      const { status, headers, body } = await sendRequest(mark)
      const attempts = await readAttempts()
      printRound(`${fault} of ${requestName}`, 1, { attempts, status })
      expect(attempts).toBeLessThan(maxAttempts)
      await failTimes(0, code)
      expect([status, body.error, headers.get('Retry-After')]).toEqual([503, 'operation_failed', '1'])
      expect(await readAttempts()).toBe(0)
      expect(await countMarked(mark)).toBe(0)
      expect((await sendRequest(mark)).status).toBeLessThan(300)
    },
  )
})

describe('a deadlock with another database client', () => {
  it.each(rounds(20))('is retried until it succeeds: round %i', async round => {
    const mark = `deadlock ${round}`
    await failTimes(0, '40001')
    const other = new pg.Client({ connectionString: database.url })
    await other.connect()
    await other.query(`set deadlock_timeout = '60s'; begin`)
    const lock = (external_id: string) =>
      other.query('select from entities where external_id = $1 for update', [external_id])
    const watcher = await lockPerson(database.url, 'ada')
    await lock('bob')
    const patches = ['ada', 'bob'].map(external_id => ({
      op: 'patch',
      external_id,
      body: { attribute_values: { mark } },
    }))
    const reply = send('POST', '/v1/people/batch', { operations: patches, atomic: round % 2 === 0 })
    await expect.poll(watcher.waiting, { interval: 5 }).toBe(1)
    await watcher.release()
    await other.query('select pg_sleep(0.05)')
    // Here kith has locked ada and waits for bob.
    const started = performance.now()
    await lock('ada')
    printRound('a real deadlock', round, { victim_after_ms: performance.now() - started })
    await other.query('rollback')
    await other.end()
    expect((await reply).status).toBe(200)
    expect(await countMarked(mark)).toBe(2)
  })
})
