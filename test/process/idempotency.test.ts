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

async function startOne(): Promise<{ kith: Kith; send: Send }> {
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

const replayed = ({ headers }: Reply) => headers.get('idempotency-replayed')
const written = async () => query(database.url, 'select attributes from entities')

/** Sends it until the connection of the one that was killed has let go of the key. */
async function sendAgain(send: Send, key: string, body: object): Promise<Reply> {
  for (;;) {
    const reply = await send('POST', '/v1/people', body, { 'Idempotency-Key': key })
    if (reply.status !== 409) return reply
    await setTimeout(10)
  }
}

/** Every COMMIT of a kept answer waits for this lock. */
const holdCommits = `
  create function wait_for_test() returns trigger language plpgsql as
    'begin perform pg_advisory_xact_lock_shared(4242); return null; end';
  create constraint trigger hold after update on idempotency_keys deferrable initially deferred
    for each row execute function wait_for_test()`

it('kill -9 between COMMIT and the answer: after a restart the same key is answered, and the write was done once', async () => {
  const { kith, send } = await startOne()
  const other = await startOne()
  await query(database.url, holdCommits)
  const holder = new pg.Client({ connectionString: database.url })
  await holder.connect()
  await holder.query('select pg_advisory_lock(4242)')
  const body = { attribute_values: { n: 1 } }
  const keyed = { 'Idempotency-Key': 'the key' }
  const unanswered = send('POST', '/v1/people', body, keyed).catch(() => 'no answer')
  const committing = `select query from pg_stat_activity where datname = current_database() and query = 'commit' and wait_event_type = 'Lock'`
  await expect.poll(() => query(database.url, committing)).toHaveLength(1)
  const running = await other.send('POST', '/v1/people', body, keyed)
  expect([running.status, running.headers.get('retry-after')]).toEqual([409, '1'])
  await kill(kith)
  expect(await unanswered).toBe('no answer')
  expect(await written()).toEqual([])
  await holder.end()
  await expect.poll(written).toHaveLength(1)
  const next = await startOne()
  for (const { send } of [other, next]) {
    const again = await send('POST', '/v1/people', body, keyed)
    expect([again.status, replayed(again), again.body.data.attribute_values]).toEqual([201, 'true', { n: 1 }])
  }
  expect(await written()).toHaveLength(1)
})

it('kill -9 at any time, four times: what is sent again under its key is done once, and answered as it was', async () => {
  const sent = new Map<string, { body: object; id?: string }>()
  const tell = { answered: 0, unanswered: 0, done_unanswered: 0 }
  for (let round = 0; round < 4; round += 1) {
    const { kith, send } = await startOne()
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
  const done = new Set((await written()).map(row => (row.attributes as { key: string }).key))
  const { send } = await startOne()
  for (const [key, { body, id }] of sent) {
    const again = await sendAgain(send, key, body)
    expect(again.status).toBe(201)
    if (id) expect([again.body.data.id, replayed(again)]).toEqual([id, 'true'])
    tell[id ? 'answered' : 'unanswered'] += 1
    if (!id && done.has(key)) tell.done_unanswered += 1
  }
  console.log(`idempotency, kill -9: ${JSON.stringify(tell)}`)
  const keys = (await written()).map(row => (row.attributes as { key: string }).key)
  expect(keys.sort()).toEqual([...sent.keys()].sort())
})
