import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { contextOf } from '../../src/db/context.ts'
import { openDatabase, statement } from '../../src/db/db.ts'
import { auditLedger } from '../../src/ledger/audit.ts'
import { createTestDatabase } from '../support/database.ts'
import { query } from '../support/embedded-service.ts'
import { findCanaries } from '../support/person-canaries.ts'
import { endProcesses, launch, senderTo } from '../support/process.ts'
import type { Send } from '../support/service.ts'
import { expectSuccess } from '../support/shop.ts'
import { lastErrors, printRound } from './report.ts'
import { createRandom, rounds } from './rounds.ts'
import { makeWorld } from './world.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
let environment: Record<string, string>
beforeAll(async () => {
  database = await createTestDatabase()
  environment = { DATABASE_URL: database.url, LOG_LEVEL: 'warn' }
})
afterAll(async () => {
  await endProcesses()
  await database.drop()
})

const changes = 12
const links = 8

/** The tables at which an erasure is stopped, in the order in which it comes to them. Without one, it is killed after a while. */
const stages = [
  ...['links', 'aliases', 'merges', 'ledger_entries', 'consent_history', 'idempotency_keys', 'terms'],
  ...['change_heads', 'erasures', 'tombstones', undefined],
]

/** A person with a log, answers, and links in both directions. Returns the texts that only this person has. */
async function createPerson(send: Send, name: string) {
  const [email, secret] = [`${name}@example.com`, `secret of ${name}`]
  const body = { external_id: name, email, email_consent: true, attribute_values: { tag: secret } }
  const { id } = (await expectSuccess(send('POST', '/v1/people', body))).body.data
  const patches = Array.from({ length: changes }, (_, n) => ({
    ...{ op: 'patch', external_id: name },
    body: { first_name: `${secret} ${n}`, attribute_values: { owns: [`${name} order ${n}`] } },
  }))
  const quotes = Array.from({ length: links }, (_, n) => ({
    ...{ op: 'upsert', external_id: `friend-${n}` },
    body: { attribute_values: { friends: n % 2 === 0 ? [name] : [] } },
  }))
  await expectSuccess(send('POST', '/v1/people/batch', { operations: patches }))
  await expectSuccess(send('POST', '/v1/people/batch', { operations: quotes }))
  return { id: id as string, texts: { email, secret } }
}

describe('kith killed while it erases a person', () => {
  let startNext = startService

  it.each(rounds(20))(
    'erases all or nothing, and the same when asked again: round %i of kill -9',
    { timeout: 120_000 },
    async round => {
      const random = createRandom('erasure', round)
      const { kith, address } = await startNext()
      const { token, organization_id } = await makeWorld(database.url, address)
      const send = senderTo(address, token)
      const name = `person-${round}-x`
      const { id, texts } = await createPerson(send, name)
      const before = (await expectSuccess(send('GET', `/v1/people/internal/${id}/history?limit=100`))).body.data.items
      const stage = stages[(round - 1) % stages.length]
      const release = stage ? await lockTable(stage) : undefined
      const erasing = send('POST', `/v1/people/${name}/erase`, { reason: 'test' }).catch(() => undefined)
      if (release) await waitForLock()
      else await setTimeout(random.below(400))
      kith.child.kill('SIGKILL')
      await release?.()
      const [reply] = await Promise.all([erasing, kith.ended])
      const restarted = await startService()
      startNext = async () => restarted
      const again = senderTo(restarted.address, token)
      const db = openDatabase(database.url, { connections: 2, statementTimeoutMs: 30_000 })
      const sql = <R extends Record<string, unknown>>(text: string) => db.query<R>(statement('', text), [])
      try {
        const read = await again('GET', `/v1/people/internal/${id}`)
        const after = (await expectSuccess(again('GET', `/v1/people/internal/${id}/history?limit=100`))).body.data.items
        const isErased = after[0].operation === 'erase'
        printRound('kill -9 of an erasure', round, {
          stopped_at: stage ?? 'some time',
          replied: reply !== undefined,
          erased: isErased,
        })
        if (isErased) {
          expect(read.status).toBe(404)
          expect(await findCanaries({ sql }, texts)).toEqual([])
        } else {
          expect(reply?.status ?? 0).not.toBe(200)
          expect([read.status, after]).toEqual([200, before])
        }
        const erased = (await expectSuccess(again('POST', `/v1/people/internal/${id}/erase`, { reason: 'test' }))).body
          .data
        expect(erased).toMatchObject({ completed: true, erasure: { person_id: id } })
        if (reply?.status === 200) expect(erased).toEqual(reply.body.data)
        expect(await findCanaries({ sql }, texts)).toEqual([])
        expect((await again('POST', '/v1/people', { external_id: name })).body.reason).toBe('erased')
        expect((await auditLedger(contextOf(db, organization_id))).findings, lastErrors(kith)).toEqual([])
      } finally {
        await db.close()
      }
    },
  )

  /** Locks a table in a transaction of its own. The returned function ends it. */
  async function lockTable(table: string): Promise<() => Promise<void>> {
    const client = new pg.Client({ connectionString: database.url })
    await client.connect()
    await client.query(`begin; lock table ${table} in access exclusive mode`)
    return () => client.end()
  }

  const waitForLock = () =>
    expect
      .poll(() => query(database.url, 'select 1 from pg_locks where not granted limit 1'), { timeout: 20_000 })
      .toHaveLength(1)

  async function startService() {
    const kith = launch(environment)
    return { kith, address: await kith.ready }
  }
})
