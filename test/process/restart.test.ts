import { setTimeout } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Balancer, startBalancer } from '../support/balancer.ts'
import { createTestDatabase } from '../support/database.ts'
import { query } from '../support/embedded-service.ts'
import { endProcesses, type Kith, launch, lockPerson, senderTo, terminate, tokenFrom } from '../support/process.ts'
import type { Send } from '../support/service.ts'
import { names } from '../support/writes.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
let environment: Record<string, string>
let balancer: Balancer | undefined

beforeEach(async () => {
  database = await createTestDatabase()
  environment = { DATABASE_URL: database.url }
})

afterEach(async () => {
  await balancer?.stop()
  balancer = undefined
  await endProcesses()
  await database.drop()
})

const patience = { timeout: 20_000 }

/** What clients were answered, and what they met instead of an answer. */
type Journal = { stored: string[]; refused: number; faults: string[] }

/**
 * A client that creates one person after the other until `goOn` says no, or until nobody listens. At a 503 it stops, or
 * with `again` sends the request again after Retry-After.
 */
async function keepCreating(send: Send, name: string, goOn: () => boolean, journal: Journal, again = false) {
  for (let index = 0; goOn(); index += 1) {
    const external_id = `${name}-${index}`
    try {
      let reply = await send('POST', '/v1/people', { external_id })
      for (; reply.status === 503; reply = await send('POST', '/v1/people', { external_id })) {
        journal.refused += 1
        if (!again) return
        await setTimeout(1_000 * Number(reply.headers.get('Retry-After')))
      }
      if (reply.status === 201) journal.stored.push(external_id)
      else journal.faults.push(`${reply.status}`)
    } catch (error) {
      const { code, message } = (error as { cause?: { code?: string; message?: string } }).cause ?? {}
      if (code === 'ECONNREFUSED') return
      journal.faults.push(code ?? message ?? String(error))
    }
  }
}

const startJournal = (): Journal => ({ stored: [], refused: 0, faults: [] })

async function expectStored({ stored }: Journal) {
  const rows = await query(database.url, `select external_id from entities where external_id <> 'ada'`)
  expect(rows.map(({ external_id }) => external_id).toSorted()).toEqual(stored.toSorted())
}

it('SIGTERM with fifty requests in flight: all are answered and stored, and the exit code is 0', async () => {
  const kith = launch(environment)
  const send = senderTo(await kith.ready, await tokenFrom(environment))
  const people = names('p', 50)
  for (const external_id of ['ada', ...people]) await send('POST', '/v1/people', { external_id })
  const lock = await lockPerson(database.url, 'ada')
  const held = send('PATCH', '/v1/people/ada', { first_name: 'Ada' })
  await expect.poll(lock.waiting).toBe(1)
  const answers = people.map((name, index) =>
    index % 2 === 0
      ? send('PATCH', `/v1/people/${name}`, { first_name: name })
      : send('POST', '/v1/people/filter', { filter: { external_id: name } }),
  )
  kith.child.kill('SIGTERM')
  await expect.poll(() => kith.said.stdout).toContain('draining')
  await lock.release()
  const statuses = (await Promise.all([held, ...answers])).map(({ status }) => status)
  expect(new Set(statuses)).toEqual(new Set([200]))
  expect(await kith.ended).toBe(0)
})

describe.each([1, 2])('SIGTERM under load with %i workers', workers => {
  it('cuts off no request: each is answered, and what is stored is what was acknowledged', async () => {
    const kith = launch(environment, ['serve', '--workers', `${workers}`])
    const send = senderTo(await kith.ready, await tokenFrom(environment))
    const journal = startJournal()
    const clients = names('c', 30).map(name => keepCreating(send, name, () => true, journal))
    await expect.poll(() => journal.stored.length, patience).toBeGreaterThan(200)
    expect(await terminate(kith)).toBe(0)
    await Promise.all(clients)
    expect(journal.faults).toEqual([])
    await expectStored(journal)
  }, 60_000)
})

/** Puts two services behind the balancer, and replaces one after the other while clients create people. */
async function restartRolling(balanced: Balancer, journal: Journal, again: boolean) {
  const { services, ready, address } = balanced
  const join = async (kith: Kith) => {
    services.add(await kith.ready)
    return kith.ready
  }
  const first = [launch(environment), launch(environment)]
  for (const kith of first) await join(kith)
  const send = senderTo(address, await tokenFrom(environment))
  await expect.poll(() => ready.size, patience).toBe(2)
  let over = false
  const clients = names('c', 20).map(name => keepCreating(send, name, () => !over, journal, again))
  for (const old of first) {
    const count = journal.stored.length
    await expect.poll(() => journal.stored.length, patience).toBeGreaterThan(count + 100)
    const fresh = launch(environment)
    const address = await join(fresh)
    await expect.poll(() => ready.has(address), patience).toBe(true)
    expect(await terminate(old)).toBe(0)
    services.delete(await old.ready)
  }
  over = true
  await Promise.all(clients)
}

describe('a rolling restart of two services', () => {
  it('behind a proxy refuses and loses no request', async () => {
    balancer = await startBalancer('request')
    const journal = startJournal()
    await restartRolling(balancer, journal, false)
    expect([journal.faults, journal.refused]).toEqual([[], 0])
    await expectStored(journal)
  }, 240_000)

  it('behind a balancer of connections loses no request of clients that heed Retry-After', async () => {
    balancer = await startBalancer('connection')
    const journal = startJournal()
    await restartRolling(balancer, journal, true)
    expect(journal.faults).toEqual([])
    await expectStored(journal)
  }, 240_000)
})
