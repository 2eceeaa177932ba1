import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { query } from '../support/embedded-service.ts'
import { endProcesses, launch, senderTo } from '../support/process.ts'
import type { Send } from '../support/service.ts'
import { tell } from './report.ts'
import { isPartial, rounds } from './rounds.ts'
import { makeWorld } from './world.ts'

const requestMs = isPartial ? 2_000 : 10_000
const answeredLateMs = 1_000
const goneWithinMs = 1_000

let database: Awaited<ReturnType<typeof createTestDatabase>>
let address: string
beforeAll(async () => {
  database = await createTestDatabase()
  const limit = { KITH_LIMIT_REQUEST_MS: String(requestMs) }
  address = await launch({ DATABASE_URL: database.url, LOG_LEVEL: 'warn', ...limit }).ready
})
afterAll(async () => {
  await endProcesses()
  // Nothing of what was answered 504 has been done meanwhile, either.
  expect(await query(database.url, `select * from changes where after::text like '%too late%'`)).toEqual([])
  await database.drop()
})

/** Somebody else's transaction, which what is asked has to wait for. */
async function hold(text: string) {
  const client = new pg.Client({ connectionString: database.url })
  await client.connect()
  await client.query('begin')
  await client.query(text)
  const blocked = `select from pg_stat_activity where (select pg_backend_pid()) = any(pg_blocking_pids(pid)) or
    exists (select from unnest(pg_blocking_pids(pid)) b where (select pg_backend_pid()) = any(pg_blocking_pids(b)))`
  return {
    blocked: async () => {
      await client.query('select pg_stat_clear_snapshot()')
      return (await client.query(blocked)).rowCount ?? 0
    },
    release: async () => {
      await client.query('rollback')
      await client.end()
    },
  }
}

type Held = { lock: (organization_id: number) => string; ask: (send: Send) => ReturnType<Send> }

const lockAda = (organization_id: number) =>
  `select from entities where organization_id = ${organization_id} and external_id = 'ada' for update`
const takeName = (organization_id: number) =>
  `insert into entities (organization_id, stack_id, id, external_id, active, version, created_at, updated_at)
   values (${organization_id}, 0, gen_random_uuid(), 'grace', true, 1, now(), now())`
const late = { first_name: 'too late' }

const writes: Held[] = [
  { lock: lockAda, ask: send => send('PATCH', '/v1/people/ada', late) },
  {
    lock: lockAda,
    ask: send =>
      send('POST', '/v1/people/batch', {
        atomic: true,
        operations: [
          { op: 'create', body: late },
          { op: 'patch', external_id: 'ada', body: late },
        ],
      }),
  },
  {
    lock: takeName,
    ask: send => send('POST', '/v1/people', { external_id: 'grace', ...late }, { 'Idempotency-Key': 'k' }),
  },
  { lock: takeName, ask: send => send('POST', '/v1/people/upsert', { external_id: 'grace', ...late }) },
]

/** Asks for what is held, and holds the answer and the server's list of statements to the promise. */
async function expectGivenUp(
  what: string,
  round: number,
  held: Awaited<ReturnType<typeof hold>>,
  ask: () => ReturnType<Send>,
) {
  const started = performance.now()
  let waited = 0
  const asked = ask()
  while (waited === 0 && performance.now() - started < requestMs) waited = await held.blocked()
  expect(waited).toBeGreaterThan(0)
  const { status, body } = await asked
  const answered = performance.now()
  while ((await held.blocked()) > 0 && performance.now() - answered < 2 * goneWithinMs);
  const measured = { answered_ms: answered - started, gone_after_ms: performance.now() - answered }
  tell(what, round, measured)
  expect([status, body.error]).toEqual([504, 'operation_failed'])
  expect(measured.answered_ms).toBeGreaterThan(requestMs - 50)
  expect(measured.answered_ms).toBeLessThan(requestMs + answeredLateMs)
  expect(measured.gone_after_ms).toBeLessThan(goneWithinMs)
}

describe(`a write that takes longer than ${requestMs / 1_000} s`, () => {
  it.concurrent.each(rounds(16))('is 504, gone from the database, and never done: round %i', async round => {
    const { lock, ask } = writes[round % writes.length]!
    const world = await makeWorld(database.url, address)
    const send = senderTo(address, world.token)
    await send('POST', '/v1/people', { external_id: 'ada' })
    const held = await hold(lock(world.organization_id))
    await expectGivenUp('a write past its time', round, held, () => ask(send))
    await held.release()
    expect((await send('PATCH', '/v1/people/ada', { first_name: 'Ada' })).status).toBe(200)
    const changes = `select operation, version from changes where subject = 'entity' and organization_id = ${world.organization_id} order by sequence`
    expect(await query(database.url, changes)).toEqual([
      { operation: 'create', version: 1 },
      { operation: 'update', version: 2 },
    ])
  })
})

describe(`a read that takes longer than ${requestMs / 1_000} s`, () => {
  it.each(rounds(4))('is 504, and gone from the database: round %i', async round => {
    const world = await makeWorld(database.url, address)
    const send = senderTo(address, world.token)
    await send('POST', '/v1/people', { external_id: 'ada' })
    const held = await hold('lock table links in access exclusive mode')
    const [byName, list] = [() => send('GET', '/v1/people/ada'), () => send('POST', '/v1/people/list', {})]
    await expectGivenUp('a read past its time', round, held, round % 2 === 0 ? byName : list)
    await held.release()
    expect((await send('GET', '/v1/people/ada')).status).toBe(200)
  })
})
