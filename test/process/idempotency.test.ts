import { randomInt } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { query } from '../support/embedded-service.ts'
import { endProcesses, type Kith, launch, senderTo, tokenFrom } from '../support/process.ts'
import type { Reply, Send } from '../support/service.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
let environment: Record<string, string>
let token: string

beforeEach(async () => {
  database = await createTestDatabase()
  environment = { DATABASE_URL: database.url, LOG_LEVEL: 'warn' }
})

afterEach(async () => {
  await endProcesses()
  await database.drop()
})

async function startKith(): Promise<{ kith: Kith; send: Send }> {
  const kith = launch(environment)
  const address = await kith.ready
  token ??= await tokenFrom(environment)
  return { kith, send: senderTo(address, token) }
}

beforeEach(() => {
  token = undefined as unknown as string
})

function kill({ child, ended }: Kith) {
  child.kill('SIGKILL')
  return ended
}

const readReplayedHeader = ({ headers }: Reply) => headers.get('idempotency-replayed')
const readEntities = async () => query(database.url, 'select attributes from entities')

/** Sends a request until PostgreSQL has ended the killed service's transaction, which holds the key. */
async function sendAgain(send: Send, key: string, body: object): Promise<Reply> {
  for (;;) {
    const reply = await send('POST', '/v1/people', body, { 'Idempotency-Key': key })
    if (reply.status !== 409) return reply
    await setTimeout(10)
  }
}

/** Makes every COMMIT of a stored response wait for an advisory lock. */
const blockCommitsSql = `
  create function wait_for_test() returns trigger language plpgsql as
    'begin perform pg_advisory_xact_lock_shared(4242); return null; end';
  create constraint trigger hold after insert or update on idempotency_keys deferrable initially deferred
    for each row execute function wait_for_test()`

it('replays the response after kill -9 between COMMIT and the response, and writes only once', async () => {
  const { kith, send } = await startKith()
  const other = await startKith()
  await query(database.url, blockCommitsSql)
  const holder = new pg.Client({ connectionString: database.url })
  holder.on('error', () => {})
  await holder.connect()
  await holder.query('select pg_advisory_lock(4242)')
  const body = { attribute_values: { n: 1 } }
  const keyHeader = { 'Idempotency-Key': 'the key' }
  const unanswered = send('POST', '/v1/people', body, keyHeader).catch(() => 'no answer')
  const committingSql = `select query from pg_stat_activity where datname = current_database() and query = 'commit' and wait_event_type = 'Lock'`
  await expect.poll(() => query(database.url, committingSql)).toHaveLength(1)
  const repeated = other.send('POST', '/v1/people', body, keyHeader)
  await kill(kith)
  expect(await unanswered).toBe('no answer')
  expect(await readEntities()).toEqual([])
  await holder.end()
  await expect.poll(readEntities).toHaveLength(1)
  const waited = await repeated
  expect([waited.status, readReplayedHeader(waited)]).toEqual([201, 'true'])
  const next = await startKith()
  for (const { send } of [other, next]) {
    const again = await send('POST', '/v1/people', body, keyHeader)
    expect([again.status, readReplayedHeader(again), again.body.data.attribute_values]).toEqual([201, 'true', { n: 1 }])
  }
  expect(await readEntities()).toHaveLength(1)
})

it('writes once and replays the response when requests are sent again after kill -9 at random moments', async () => {
  const sent = new Map<string, { body: object; id?: string }>()
  const counts = { answered: 0, unanswered: 0, doneUnanswered: 0 }
  for (let round = 0; round < 4; round += 1) {
    const { kith, send } = await startKith()
    const killAfter = 20 + randomInt(60)
    let answered = 0
    let killed: Promise<unknown> | undefined
    const write = async (writer: number) => {
      for (let turn = 0; ; turn += 1) {
        const key = `${round} ${writer} ${turn}`
        const entry: { body: object; id?: string } = { body: { attribute_values: { key } } }
        sent.set(key, entry)
        const reply = await send('POST', '/v1/people', entry.body, { 'Idempotency-Key': key }).catch(() => undefined)
        if (!reply) return
        expect(reply.status).toBe(201)
        entry.id = reply.body.data.id
        if (++answered === killAfter) killed = kill(kith)
      }
    }
    await Promise.all(Array.from({ length: 6 }, (_, writer) => write(writer)))
    await killed
  }
  const storedKeys = new Set((await readEntities()).map(row => (row.attributes as { key: string }).key))
  const { send } = await startKith()
  for (const [key, { body, id }] of sent) {
    const again = await sendAgain(send, key, body)
    expect(again.status).toBe(201)
    if (id) expect([again.body.data.id, readReplayedHeader(again)]).toEqual([id, 'true'])
    counts[id ? 'answered' : 'unanswered'] += 1
    if (!id && storedKeys.has(key)) counts.doneUnanswered += 1
  }
  console.log(`idempotency, kill -9: ${JSON.stringify(counts)}`)
  const keys = (await readEntities()).map(row => (row.attributes as { key: string }).key)
  expect(keys.sort()).toEqual([...sent.keys()].sort())
})
