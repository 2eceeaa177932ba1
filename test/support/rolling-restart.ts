import { setTimeout } from 'node:timers/promises'
import { expect } from 'vitest'
import { type Balancer, startBalancer } from './balancer.ts'
import { query } from './embedded-service.ts'
import { type Kith, senderTo, terminate } from './process.ts'
import type { Send } from './service.ts'
import { names } from './writes.ts'

const pollOptions = { timeout: 20_000 }

/** The results of the clients: identifiers of created people, the number of 503s, other statuses and socket errors. */
export type ClientLog = { stored: string[]; refused: number; faults: string[] }

export const createClientLog = (): ClientLog => ({ stored: [], refused: 0, faults: [] })

/**
 * A client that creates people one by one while `shouldContinue` is true and the service listens. At a 503 it stops,
 * or, with `retries`, sends the request again after Retry-After.
 */
export async function keepCreating(
  send: Send,
  name: string,
  clientLog: ClientLog,
  { shouldContinue = (): boolean => true, retries = false, pauseMs = 0 } = {},
): Promise<void> {
  for (let index = 0; shouldContinue(); index += 1) {
    if (pauseMs > 0) await setTimeout(pauseMs)
    const external_id = `${name}-${index}`
    const person = { external_id, email: `${external_id}@example.org`, attribute_values: { city: name } }
    try {
      let reply = await send('POST', '/v1/people', person)
      for (; reply.status === 503; reply = await send('POST', '/v1/people', person)) {
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

/** Expects that the database has these people and no other. */
export async function expectStored(url: string, stored: string[], others: string[] = []): Promise<void> {
  const rows = await query(url, 'select external_id from entities')
  expect(rows.map(({ external_id }) => external_id).toSorted()).toEqual([...stored, ...others].toSorted())
}

/** Clients that sent without a pause would take the processors from the services that start. 20 clients send 200 requests/s. */
const [clientsPerBalancer, pauseMs] = [10, 100]

type RollingRestart = {
  /** Starts a service that is replaced. */
  launchOld(): Kith
  /** Starts one that replaces it. */
  launchNew(): Kith
  /** Makes a token once the first services are ready. */
  makeToken(): Promise<string>
}

/**
 * Starts two services and replaces them one by one, while clients create people by an HTTP proxy and by a balancer of TCP connections.
 * Expects that the proxy's clients see no refusal, and the others none but 503 with Retry-After. Returns the people who were acknowledged.
 */
export async function restartRolling({ launchOld, launchNew, makeToken }: RollingRestart): Promise<string[]> {
  const balancers = [await startBalancer('request'), await startBalancer('connection')]
  try {
    return await replaceAll(balancers, { launchOld, launchNew, makeToken })
  } finally {
    for (const balancer of balancers) await balancer.stop()
  }
}

async function replaceAll(balancers: Balancer[], { launchOld, launchNew, makeToken }: RollingRestart) {
  const addService = async (kith: Kith) => {
    const address = await kith.ready
    for (const { services } of balancers) services.add(address)
    for (const { ready } of balancers) await expect.poll(() => ready.has(address), pollOptions).toBe(true)
  }
  const first = [launchOld(), launchOld()]
  for (const kith of first) await addService(kith)
  const token = await makeToken()
  const clientLogs = balancers.map(createClientLog)
  let isFinished = false
  const clients = balancers.flatMap(({ address }, index) => {
    const options = { shouldContinue: () => !isFinished, retries: index > 0, pauseMs }
    const clientNames = names(`c${index}-`, clientsPerBalancer)
    return clientNames.map(name => keepCreating(senderTo(address, token), name, clientLogs[index]!, options))
  })
  const waitForWrites = async () => {
    for (const clientLog of clientLogs) {
      const count = clientLog.stored.length
      await expect.poll(() => clientLog.stored.length, pollOptions).toBeGreaterThan(count + 50)
    }
  }
  for (const old of first) {
    await waitForWrites()
    await addService(launchNew())
    await waitForWrites()
    expect(await terminate(old)).toBe(0)
    for (const { services } of balancers) services.delete(await old.ready)
  }
  isFinished = true
  await Promise.all(clients)
  const [proxied, balanced] = clientLogs
  expect(proxied).toMatchObject({ faults: [], refused: 0 })
  expect(balanced).toMatchObject({ faults: [] })
  return clientLogs.flatMap(({ stored }) => stored)
}
