import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { query } from '../support/embedded-service.ts'
import { endProcesses, launch, senderTo } from '../support/process.ts'
import type { Send } from '../support/service.ts'
import { printRound } from './report.ts'
import { isPartial, rounds } from './rounds.ts'
import { makeWorld } from './world.ts'

const requestMs = isPartial ? 2_000 : 10_000
const maxLatenessMs = 1_000
const maxCancelMs = 1_000

let database: Awaited<ReturnType<typeof createTestDatabase>>
let address: string
beforeAll(async () => {
  database = await createTestDatabase()
  const limit = { KITH_LIMIT_REQUEST_MS: String(requestMs) }
  address = await launch({ DATABASE_URL: database.url, LOG_LEVEL: 'warn', ...limit }).ready
})
afterAll(async () => {
  await endProcesses()
  // No write that got 504 was done afterwards.
  expect(await query(database.url, `select * from changes where after::text like '%too late%'`)).toEqual([])
  await database.drop()
})

/** Opens a transaction of another client, which holds a lock that the request needs. */
async function holdLock(text: string) {
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

type BlockedWrite = { lock: (organization_id: number) => string; sendRequest: (send: Send) => ReturnType<Send> }

const lockPersonSql = (organization_id: number) =>
  `select from entities where organization_id = ${organization_id} and external_id = 'ada' for update`
const takeNameSql = (organization_id: number) =>
  `insert into entities (organization_id, stack_id, id, external_id, active, version, created_at, updated_at)
   values (${organization_id}, 0, gen_random_uuid(), 'grace', true, 1, now(), now())`
const lateBody = { first_name: 'too late' }

const writes: BlockedWrite[] = [
  { lock: lockPersonSql, sendRequest: send => send('PATCH', '/v1/people/ada', lateBody) },
  {
    lock: lockPersonSql,
    sendRequest: send =>
      send('POST', '/v1/people/batch', {
        atomic: true,
        operations: [
          { op: 'create', body: lateBody },
          { op: 'patch', external_id: 'ada', body: lateBody },
        ],
      }),
  },
  {
    lock: takeNameSql,
    sendRequest: send => send('POST', '/v1/people', { external_id: 'grace', ...lateBody }, { 'Idempotency-Key': 'k' }),
  },
  { lock: takeNameSql, sendRequest: send => send('POST', '/v1/people/upsert', { external_id: 'grace', ...lateBody }) },
]

/** Sends a request that waits for the lock. Expects a 504 in time, and that its statement is cancelled on the server. */
async function expectTimeout(
  requestName: string,
  round: number,
  lockHolder: Awaited<ReturnType<typeof holdLock>>,
  sendRequest: () => ReturnType<Send>,
) {
  const started = performance.now()
  let blockedCount = 0
  const reply = sendRequest()
  while (blockedCount === 0 && performance.now() - started < requestMs) blockedCount = await lockHolder.blocked()
  expect(blockedCount).toBeGreaterThan(0)
  const { status, body } = await reply
  const answeredAt = performance.now()
  while ((await lockHolder.blocked()) > 0 && performance.now() - answeredAt < 2 * maxCancelMs);
  const measured = { answered_ms: answeredAt - started, gone_after_ms: performance.now() - answeredAt }
  printRound(requestName, round, measured)
  expect([status, body.error]).toEqual([504, 'operation_failed'])
  expect(measured.answered_ms).toBeGreaterThan(requestMs - 50)
  expect(measured.answered_ms).toBeLessThan(requestMs + maxLatenessMs)
  expect(measured.gone_after_ms).toBeLessThan(maxCancelMs)
}

describe(`a write that takes longer than ${requestMs / 1_000} s`, () => {
  it.concurrent.each(rounds(16))(
    'returns 504, is cancelled in the database, and is never done: round %i',
    async round => {
      const { lock, sendRequest } = writes[round % writes.length]!
      const world = await makeWorld(database.url, address)
      const send = senderTo(address, world.token)
      await send('POST', '/v1/people', { external_id: 'ada' })
      const lockHolder = await holdLock(lock(world.organization_id))
      await expectTimeout('a write past its time', round, lockHolder, () => sendRequest(send))
      await lockHolder.release()
      expect((await send('PATCH', '/v1/people/ada', { first_name: 'Ada' })).status).toBe(200)
      const changes = `select operation, version from changes where subject = 'entity' and organization_id = ${world.organization_id} order by sequence`
      expect(await query(database.url, changes)).toEqual([
        { operation: 'create', version: 1 },
        { operation: 'update', version: 2 },
      ])
    },
  )
})

describe(`a read that takes longer than ${requestMs / 1_000} s`, () => {
  it.each(rounds(4))('returns 504 and is cancelled in the database: round %i', async round => {
    const world = await makeWorld(database.url, address)
    const send = senderTo(address, world.token)
    await send('POST', '/v1/people', { external_id: 'ada' })
    const lockHolder = await holdLock('lock table links in access exclusive mode')
    const [byName, list] = [() => send('GET', '/v1/people/ada'), () => send('POST', '/v1/people/list', {})]
    await expectTimeout('a read past its time', round, lockHolder, round % 2 === 0 ? byName : list)
    await lockHolder.release()
    expect((await send('GET', '/v1/people/ada')).status).toBe(200)
  })
})
