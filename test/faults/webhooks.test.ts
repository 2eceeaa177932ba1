import { setTimeout } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { runInProcess } from '../support/command.ts'
import { createTestDatabase } from '../support/database.ts'
import { query } from '../support/embedded-service.ts'
import { readMetrics } from '../support/metrics.ts'
import { endProcesses, type Kith, launch, senderTo } from '../support/process.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { compareWithDeliveries } from './against-deliveries.ts'
import { check, formatFindings } from './checker.ts'
import type { Journal } from './journal.ts'
import { resolveUnknownOutcomes, startLoad } from './load.ts'
import { runOutage } from './outage.ts'
import { type OwnPostgres, startOwnPostgres } from './own-postgres.ts'
import { lastErrors, printRound } from './report.ts'
import { createRandom, rounds } from './rounds.ts'
import { readStored } from './stored.ts'
import { makeWorld, shortenDeadlockTimeout, type World } from './world.ts'

/** Another process takes over when the lease of 6 seconds has ended, and it searches four times a second. */
const maxTakeoverMs = 10_000
const patience = { timeout: 60_000, interval: 100 }

let database: Awaited<ReturnType<typeof createTestDatabase>>
let environment: Record<string, string>
const receivers: Receiver[] = []
beforeAll(async () => {
  database = await createTestDatabase()
  await shortenDeadlockTimeout(database.url)
  environment = environmentOf(database.url)
})
afterEach(async () => {
  for (const receiver of receivers.splice(0)) await receiver.close()
})
afterAll(async () => {
  await endProcesses()
  await database.drop()
})

const environmentOf = (url: string) => ({
  DATABASE_URL: url,
  KITH_WEBHOOK_ALLOW: '127.0.0.0/8',
  LOG_LEVEL: 'warn',
})

/** Starts a receiver that takes up to 10 ms for each request, and creates a webhook for all people and records. */
async function startWebhook({ token }: World, address: string): Promise<Receiver> {
  const receiver = await startReceiver()
  receivers.push(receiver)
  const random = createRandom('receiver')
  receiver.answer = async response => {
    await setTimeout(random.below(10))
    response.writeHead(204).end()
  }
  const body = { url: receiver.url, events: ['person.*', 'record.*'] }
  const created = await senderTo(address, token)('POST', '/v1/webhooks', body)
  if (created.status !== 201) throw new Error(JSON.stringify(created.body))
  return receiver
}

/** Waits until a receiver has got this number of requests. */
const waitForRequests = (receiver: Receiver, count: number) =>
  expect.poll(() => receiver.received.length, patience).toBeGreaterThanOrEqual(count)

/** Waits until no change of the world is left to deliver. Returns the time in milliseconds. */
async function waitForDeliveries({ databaseUrl, organization_id }: World): Promise<number> {
  const started = performance.now()
  const text = `select from followers f join change_heads h using (organization_id)
    where organization_id = ${organization_id} and f.name = 'webhooks' and (h.sequence > f.sequence or exists (
      select from webhook_deliveries d
      where d.organization_id = f.organization_id and d.webhook_id = f.id and d.status = 'waiting'))`
  await expect.poll(async () => (await query(databaseUrl, text)).length, patience).toBe(0)
  return performance.now() - started
}

/** Checks what is stored and what was delivered. */
async function expectAllDelivered(world: World, journal: Journal, address: string, receiver: Receiver, kith: Kith) {
  const stored = await readStored(world.databaseUrl, world.organization_id)
  const findings = [...(await check(world, journal, address)), ...compareWithDeliveries(stored, receiver.received)]
  expect(formatFindings(findings), lastErrors(kith)).toEqual([])
}

/** Measurements of a round: the changes, and the requests that delivered them. */
const measured = ({ received }: Receiver) => ({
  changes: new Set(received.map(({ id }) => id)).size,
  requests: received.length,
  restores: new Set(received.filter(({ event }) => event.data.operation === 'restore').map(({ id }) => id)).size,
})

describe('kith killed during deliveries', () => {
  let startNext = startService
  afterAll(endProcesses)

  it.each(rounds(20))(
    'delivers every change at least once, in order per entity, and no other: round %i of kill -9',
    async round => {
      const random = createRandom('deliveries', round)
      const { kith, address } = await startNext()
      const world = await makeWorld(database.url, address)
      const receiver = await startWebhook(world, address)
      const load = startLoad({ world, addresses: [address], seedParts: ['deliveries', round], stopsOnDisconnect: true })
      await load.waitForAcknowledged(20 + random.below(120))
      await waitForRequests(receiver, 1 + random.below(40))
      kith.child.kill('SIGKILL')
      await Promise.all([load.stop(), kith.ended])
      const restarted = await startService()
      startNext = async () => restarted
      await resolveUnknownOutcomes({ journal: load.journal, world, address: restarted.address })
      const catch_up_ms = await waitForDeliveries(world)
      printRound(
        'kill -9 of the service during deliveries',
        round,
        { catch_up_ms, ...measured(receiver) },
        load.journal,
      )
      await expectAllDelivered(world, load.journal, restarted.address, receiver, restarted.kith)
    },
  )

  async function startService() {
    const kith = launch(environment)
    return { kith, address: await kith.ready }
  }
})

describe('PostgreSQL killed during deliveries', () => {
  let postgres: OwnPostgres
  let kith: Kith
  let address: string
  beforeAll(async () => {
    postgres = await startOwnPostgres()
    kith = launch(environmentOf(postgres.url))
    address = await kith.ready
  })
  afterAll(async () => {
    await postgres.stop()
    await endProcesses()
  })

  it.each(rounds(20))(
    'delivers every change at least once, in order per entity, and no other: round %i of kill -9',
    async round => {
      const random = createRandom('deliveries and database', round)
      const world = await makeWorld(postgres.url, address)
      const receiver = await startWebhook(world, address)
      const requests = 1 + random.below(40)
      const begin = async () => {
        await waitForRequests(receiver, requests)
        await postgres.kill(round % 2 === 0 ? 'postmaster' : 'all')
      }
      const seedParts = ['deliveries and database', round]
      const outage = { begin, end: postgres.start, durationMs: random.below(1_500) }
      const { journal } = await runOutage({ world, address, seedParts, ...outage })
      await resolveUnknownOutcomes({ journal, world, address })
      const catch_up_ms = await waitForDeliveries(world)
      printRound('kill -9 of PostgreSQL during deliveries', round, { catch_up_ms, ...measured(receiver) }, journal)
      await expectAllDelivered(world, journal, address, receiver, kith)
      expect(kith.child.exitCode ?? kith.child.signalCode).toBeNull()
    },
  )
})

describe('two kith processes on one database', () => {
  it.each(rounds(5))('never both make an attempt to deliver a change: round %i', async round => {
    const [one, other] = [launch(environment), launch(environment)]
    const addresses = [await one.ready, await other.ready]
    const world = await makeWorld(database.url, addresses[0]!)
    const webhooks = []
    for (let count = 0; count < 4; count += 1) webhooks.push(await startWebhook(world, addresses[0]!))
    for (const receiver of webhooks) failSome(receiver)
    const load = startLoad({ world, addresses, seedParts: ['attempts', round], clients: 8 })
    const owners = new Set<unknown>()
    let turn = 0
    await expect
      .poll(async () => {
        turn += 1
        await releaseWebhook(world, addresses[turn % 2]!, 1 + (turn % webhooks.length))
        for (const { owner } of await query(database.url, ownersSql(world))) owners.add(owner)
        return owners.size
      }, patience)
      .toBe(2)
    await load.waitForAcknowledged(60)
    await load.stop()
    await waitForDeliveries(world)
    const text = `select webhook_id, sequence::integer, attempts from webhook_deliveries
      where organization_id = ${world.organization_id} order by webhook_id, sequence`
    const made = webhooks.flatMap(({ received }, index) =>
      [...Map.groupBy(received, ({ sequence }) => sequence)]
        .map(([sequence, requests]) => ({ webhook_id: index + 1, sequence, attempts: requests.length }))
        .toSorted((a, b) => a.sequence - b.sequence),
    )
    expect(made).toEqual(await query(database.url, text))
    printRound('two services', round, { attempts: webhooks.flatMap(({ received }) => received).length }, load.journal)
    for (const receiver of webhooks) await expectAllDelivered(world, load.journal, addresses[0]!, receiver, one)
    for (const { child, ended } of [one, other]) {
      child.kill('SIGKILL')
      await ended
    }
  })

  const ownersSql = ({ organization_id }: World) =>
    `select owner from followers where organization_id = ${organization_id} and name = 'webhooks' and owner is not null`

  /** Pauses and activates a webhook. Under load, its process keeps it otherwise, and the other one claims none. */
  async function releaseWebhook({ token }: World, address: string, id: number) {
    for (const active of [false, true]) {
      const { status } = await senderTo(address, token)('PATCH', `/v1/webhooks/${id}`, { active })
      expect(status).toBe(200)
    }
  }

  /** Lets a receiver refuse the first attempt of each 40th change. */
  function failSome(receiver: Receiver) {
    const refused = new Set<string>()
    const { answer } = receiver
    receiver.answer = (response, request) => {
      if (request.sequence % 40 !== 0 || refused.has(request.id)) return answer(response, request)
      refused.add(request.id)
      response.writeHead(500).end()
    }
  }

  it.each(rounds(5))('take over within seconds when one dies, and deliver every change: round %i', async round => {
    const random = createRandom('takeover', round)
    const dying = launch(environment)
    const address = await dying.ready
    const world = await makeWorld(database.url, address)
    const receiver = await startWebhook(world, address)
    const { answer } = receiver
    const held = Promise.withResolvers<string>()
    // The first request has no answer. The process that waits for it keeps its lease.
    receiver.answer = (_, { id }) => held.resolve(id)
    const load = startLoad({
      world,
      addresses: [address],
      seedParts: ['takeover', round],
      clients: 4,
      stopsOnDisconnect: true,
    })
    const first = await held.promise
    const taken = Promise.withResolvers<number>()
    receiver.answer = (response, request) => {
      if (request.id === first) taken.resolve(performance.now())
      return answer(response, request)
    }
    const surviving = launch(environment)
    const nextAddress = await surviving.ready
    await load.waitForAcknowledged(20 + random.below(60))
    dying.child.kill('SIGKILL')
    const killed = performance.now()
    await Promise.all([load.stop(), dying.ended])
    const takeover_ms = (await taken.promise) - killed
    await resolveUnknownOutcomes({ journal: load.journal, world, address: nextAddress })
    await waitForDeliveries(world)
    printRound('one of two services during deliveries', round, { takeover_ms, ...measured(receiver) }, load.journal)
    await expectAllDelivered(world, load.journal, nextAddress, receiver, surviving)
    expect(takeover_ms).toBeLessThan(maxTakeoverMs)
    surviving.child.kill('SIGKILL')
    await surviving.ended
  })
})

describe('a follower that fails on one change', () => {
  it('is named by the log, a metric and kith doctor, stops no other follower, and passes over nothing', async () => {
    const kith = launch(environment)
    const address = await kith.ready
    const world = await makeWorld(database.url, address)
    const [broken, other] = [await startWebhook(world, address), await startWebhook(world, address)]
    const { organization_id, token } = world
    await query(
      database.url,
      `create function fail() returns trigger language plpgsql as $$ begin
         if new.organization_id = ${organization_id} and new.webhook_id = 1 and new.type = 'person.deleted' then
           raise exception 'this change cannot be delivered';
         end if;
         return new;
       end $$;
       create trigger fail before insert on webhook_deliveries for each row execute function fail()`,
    )
    const send = senderTo(address, token)
    const typesOf = ({ received }: Receiver) => received.map(({ event }) => event.type)
    const types = ['person.created', 'person.deleted', 'person.restored', 'person.updated']
    const { id } = (await send('POST', '/v1/people', { external_id: 'ada' })).body.data
    await expect.poll(() => typesOf(broken), patience).toEqual(types.slice(0, 1))
    await send('DELETE', '/v1/people/ada')
    await send('POST', `/v1/people/internal/${id}/restore`)
    await send('PATCH', '/v1/people/ada', { first_name: 'Ada' })
    await expect.poll(() => typesOf(other), patience).toEqual(types)
    const failures = 'kith_follower_failures_total{follower="webhooks"}'
    await expect.poll(async () => (await readMetrics(address)).value(failures), patience).toBeGreaterThan(0)
    const line = kith.output.stdout.split('\n').find(text => text.includes('"task":"follow"'))
    expect(JSON.parse(line!)).toMatchObject({ level: 40, follower: 'webhooks', organization_id, id: 1 })
    const findings = async () => {
      const { stdout } = await runInProcess(['doctor', '--json'], environment)
      const report = JSON.parse(stdout) as { findings: { check: string; verdict: string; message: string }[] }
      return report.findings.filter(({ check }) => check === 'followers')
    }
    expect(await findings()).toMatchObject([
      { verdict: 'warning', message: expect.stringMatching(/^webhooks 1 of round_\w+ fails after change \d+: /) },
    ])
    await query(database.url, 'drop trigger fail on webhook_deliveries')
    await expect.poll(() => typesOf(broken), patience).toEqual(types)
    await expect.poll(findings, patience).toMatchObject([{ verdict: 'ok' }])
    kith.child.kill('SIGKILL')
    await kith.ended
  })
})
