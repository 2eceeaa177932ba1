import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { query, until } from '../support/embedded-service.ts'
import { endProcesses, launch, lockPerson, senderTo } from '../support/process.ts'
import type { Reply, Send } from '../support/service.ts'
import { tell } from './report.ts'
import { rounds } from './rounds.ts'
import { makeWorld } from './world.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
let send: Send
beforeAll(async () => {
  database = await createTestDatabase()
  const name = new URL(database.url).pathname.slice(1)
  // The service finds its deadlocks first: whoever finds one is its victim.
  await query(database.url, `alter database ${name} set deadlock_timeout = '500ms'`)
  const address = await launch({ DATABASE_URL: database.url, LOG_LEVEL: 'warn' }).ready
  const world = await makeWorld(database.url, address)
  send = senderTo(address, world.token)
  // The index that is declared becomes ready in the background, and whoever does not know that yet begins once more.
  const unready = 'select from attributes where indexed and not index_ready'
  await until(async () => (await query(database.url, unready)).length === 0)
  for (const external_id of ['ada', 'bob']) await send('POST', '/v1/people', { external_id })
  await query(database.url, failByTrigger)
})
afterAll(async () => {
  await endProcesses()
  await database.drop()
})

/** Every attempt to append to the change log fails, as often as `failing` says: a sequence counts what is rolled back, too. */
const failByTrigger = `
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

async function attemptsMade(): Promise<number> {
  const [row] = await query(database.url, 'select last_value::integer as n, is_called from attempts')
  return row!.is_called ? (row!.n as number) : 0
}

const marked = async (mark: string) =>
  (await query(database.url, `select from changes where after->'attribute_values'->>'mark' like '${mark}%'`)).length

const asks: [what: string, writes: number, ask: (mark: string) => Promise<Reply>][] = [
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

const few = 3
const forEver = 1_000_000
/** Ten, and of a batch as many of each of its parts, which it is run again in. */
const attemptsAtMost = 60

describe.each([
  ['a serialization failure', '40001'],
  ['a deadlock', '40P01'],
])('%s', (fault, code) => {
  it.each(asks)('that passes is not noticed by %s', async (what, writes, ask) => {
    const mark = `${what} ${code} passes`
    await failTimes(few, code)
    const { status } = await ask(mark)
    tell(`${fault} of ${what}`, 1, { attempts: await attemptsMade(), status })
    expect(status).toBeLessThan(300)
    expect(await attemptsMade()).toBe(few + 1)
    expect(await marked(mark)).toBe(writes)
  })

  it.each(asks)('that stays ends %s after a bounded number of attempts, as 503', async (what, _, ask) => {
    const mark = `${what} ${code} stays`
    await failTimes(forEver, code)
    const { status, headers, body } = await ask(mark)
    const attempts = await attemptsMade()
    tell(`${fault} of ${what}`, 1, { attempts, status })
    expect(attempts).toBeLessThan(attemptsAtMost)
    await failTimes(0, code)
    expect([status, body.error, headers.get('Retry-After')]).toEqual([503, 'operation_failed', '1'])
    expect(await attemptsMade()).toBe(0)
    expect(await marked(mark)).toBe(0)
    expect((await ask(mark)).status).toBeLessThan(300)
  })
})

describe('a real deadlock with another program', () => {
  it.each(rounds(20))('is waited out: round %i', async round => {
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
    const asked = send('POST', '/v1/people/batch', { operations: patches, atomic: round % 2 === 0 })
    await expect.poll(watcher.waiting, { interval: 5 }).toBe(1)
    await watcher.release()
    await other.query('select pg_sleep(0.05)')
    // By now the service has ada and waits for bob.
    const started = performance.now()
    await lock('ada')
    tell('a real deadlock', round, { victim_after_ms: performance.now() - started })
    await other.query('rollback')
    await other.end()
    expect((await asked).status).toBe(200)
    expect(await marked(mark)).toBe(2)
  })
})
