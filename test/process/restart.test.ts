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
let balancers: Balancer[] = []

beforeEach(async () => {
  database = await createTestDatabase()
  environment = { DATABASE_URL: database.url }
})

afterEach(async () => {
  for (const balancer of balancers.splice(0)) await balancer.stop()
  await endProcesses()
  await database.drop()
})

const pollOptions = { timeout: 20_000 }

/** The results of the clients: identifiers of created people, the number of 503s, other statuses and socket errors. */
type ClientLog = { stored: string[]; refused: number; faults: string[] }

/**
 * A client that creates people one by one while `shouldContinue` is true and the service listens. At a 503 it stops,
 * or, with `retries`, sends the request again after Retry-After.
 */
async function keepCreating(
  send: Send,
  name: string,
  clientLog: ClientLog,
  { shouldContinue = (): boolean => true, retries = false, pauseMs = 0 } = {},
) {
  for (let index = 0; shouldContinue(); index += 1) {
    if (pauseMs > 0) await setTimeout(pauseMs)
    const external_id = `${name}-${index}`
    try {
      let reply = await send('POST', '/v1/people', { external_id })
      for (; reply.status === 503; reply = await send('POST', '/v1/people', { external_id })) {
        clientLog.refused += 1
        if (!retries) return
        await setTimeout(1_000 * Number(reply.headers.get('Retry-After')))
      }
      if (reply.status === 201) clientLog.stored.push(external_id)
      else clientLog.faults.push(`${reply.status}`)
    } catch (error) {
      const { code, message } = (error as { cause?: { code?: string; message?: string } }).cause ?? {}
      if (code === 'ECONNREFUSED') return
      clientLog.faults.push(code ?? message ?? String(error))
    }
  }
}

const createClientLog = (): ClientLog => ({ stored: [], refused: 0, faults: [] })

async function expectStored(stored: string[]) {
  const rows = await query(database.url, `select external_id from entities where external_id <> 'ada'`)
  expect(rows.map(({ external_id }) => external_id).toSorted()).toEqual(stored.toSorted())
}

it('answers fifty requests that are in flight at SIGTERM, and exits with 0', async () => {
  const kith = launch(environment)
  const send = senderTo(await kith.ready, await tokenFrom(environment))
  const people = names('p', 50)
  for (const external_id of ['ada', ...people]) await send('POST', '/v1/people', { external_id })
  const lock = await lockPerson(database.url, 'ada')
  const lockedPatch = send('PATCH', '/v1/people/ada', { first_name: 'Ada' })
  await expect.poll(lock.waiting).toBe(1)
  const answers = people.map((name, index) =>
    index % 2 === 0
      ? send('PATCH', `/v1/people/${name}`, { first_name: name })
      : send('POST', '/v1/people/filter', { filter: { external_id: name } }),
  )
  kith.child.kill('SIGTERM')
  await expect.poll(() => kith.output.stdout).toContain('draining')
  await lock.release()
  const statuses = (await Promise.all([lockedPatch, ...answers])).map(({ status }) => status)
  expect(new Set(statuses)).toEqual(new Set([200]))
  expect(await kith.ended).toBe(0)
})

describe.each([1, 2])('SIGTERM under load with %i workers', workers => {
  it('interrupts no request, and stores exactly the acknowledged writes', async () => {
    const kith = launch(environment, ['serve', '--workers', `${workers}`])
    const send = senderTo(await kith.ready, await tokenFrom(environment))
    const clientLog = createClientLog()
    const clients = names('c', 30).map(name => keepCreating(send, name, clientLog))
    await expect.poll(() => clientLog.stored.length, pollOptions).toBeGreaterThan(200)
    expect(await terminate(kith)).toBe(0)
    await Promise.all(clients)
    expect(clientLog.faults).toEqual([])
    await expectStored(clientLog.stored)
  }, 60_000)
})

/** Clients that sent without a pause would take the processors from the services that start. 20 clients send 200 requests/s. */
const [clientsPerBalancer, pauseMs] = [10, 100]

/** Starts two services and replaces them one by one while clients create people through each of the balancers. */
async function restartRolling(balancers: Balancer[], clientLogs: ClientLog[]) {
  const addService = async (kith: Kith) => {
    const address = await kith.ready
    for (const { services } of balancers) services.add(address)
    for (const { ready } of balancers) await expect.poll(() => ready.has(address), pollOptions).toBe(true)
  }
  const first = [launch(environment), launch(environment)]
  for (const kith of first) await addService(kith)
  const token = await tokenFrom(environment)
  let isFinished = false
  const clients = balancers.flatMap(({ address }, index) => {
    const options = { shouldContinue: () => !isFinished, retries: index > 0, pauseMs }
    const clientNames = names(`c${index}-`, clientsPerBalancer)
    return clientNames.map(name => keepCreating(senderTo(address, token), name, clientLogs[index]!, options))
  })
  for (const old of first) {
    for (const clientLog of clientLogs) {
      const count = clientLog.stored.length
      await expect.poll(() => clientLog.stored.length, pollOptions).toBeGreaterThan(count + 50)
    }
    await addService(launch(environment))
    expect(await terminate(old)).toBe(0)
    for (const { services } of balancers) services.delete(await old.ready)
  }
  isFinished = true
  await Promise.all(clients)
}

describe('a rolling restart of two services', () => {
  it('refuses no request behind an HTTP proxy, and loses none behind a TCP balancer if clients retry after Retry-After', async () => {
    balancers = [await startBalancer('request'), await startBalancer('connection')]
    const clientLogs = [createClientLog(), createClientLog()] as const
    await restartRolling(balancers, [...clientLogs])
    const [proxied, balanced] = clientLogs
    expect([proxied.faults, proxied.refused]).toEqual([[], 0])
    expect(balanced.faults).toEqual([])
    await expectStored(clientLogs.flatMap(({ stored }) => stored))
  }, 240_000)
})
