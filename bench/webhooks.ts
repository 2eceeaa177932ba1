import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { serverVersion } from './database.ts'
import { loadService } from './load.ts'
import { percentile, type Run } from './measure.ts'
import { patchAtRate } from './paced.ts'
import { printPlatform } from './report.ts'
import { rows } from './rows.ts'
import { type BenchTarget, measureLoad, withPostgres } from './run.ts'
import { createToken } from './tokens.ts'
import type { Usage } from './usage.ts'

const minDeliveriesPerSecond = 500

const checkout = fileURLToPath(new URL('..', import.meta.url))
const print = (line = '') => process.stdout.write(`${line}\n`)
const patchRow = rows.find(({ name }) => name === 'patch')!

/** The time after its activation in which a webhook is not measured yet. */
const warmUpMs = 2_000
/** A backlog for this rate lasts longer than a measurement. */
const maxDeliveriesPerSecond = 2_000
/** The longest wait for the rest of the deliveries. */
const patienceMs = 120_000

type Delivered = { atMs: number; requestId: string }

/** A receiver on loopback that accepts everything. It keeps the first arrival of each message. */
async function startReceiver() {
  const delivered = new Map<string, Delivered>()
  let repeated = 0
  const server = createServer(async (request, response) => {
    const body = await text(request)
    response.writeHead(204).end()
    const id = String(request.headers['webhook-id'])
    if (delivered.has(id)) repeated += 1
    else delivered.set(id, { atMs: performance.now(), requestId: /"request_id":"([^"]*)"/.exec(body.slice(-200))![1]! })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    delivered,
    countRepeated: () => repeated,
    stop: async () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
type Receiver = Awaited<ReturnType<typeof startReceiver>>

type Sender = { target: BenchTarget; token: string }

async function send({ target, token }: Sender, method: string, path: string, body?: object) {
  const response = await fetch(`${target.service.address}/v1${path}`, {
    method,
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  })
  const answer = (await response.json()) as { data: Record<string, number> }
  if (!response.ok) throw new Error(`${method} ${path}: ${JSON.stringify(answer)}`)
  return answer.data
}

const readHead = async (sender: Sender) => (await send(sender, 'GET', '/changes?limit=1')).head!

async function waitUntilDelivered({ delivered }: Receiver, count: number) {
  const untilMs = performance.now() + patienceMs
  while (delivered.size < count && performance.now() < untilMs) await setTimeout(50)
  if (delivered.size < count) throw new Error(`${count - delivered.size} of ${count} changes were not delivered.`)
}

type Pace = { perSecond: number; seconds: number }

/** Creates a webhook, and writes changes while it is inactive. Returns its id, and a function that counts what it has to deliver. */
async function createBacklog(sender: Sender, receiver: Receiver, backlog: number) {
  const { target } = sender
  const webhook = { url: receiver.url, events: ['person.updated'], active: false }
  const { id } = await send(sender, 'POST', '/webhooks', webhook)
  const first = await readHead(sender)
  while ((await readHead(sender)) - first < backlog) await loadService(target.service, patchRow, target.large, 1)
  // The activation is a change that the webhook does not send.
  return { id, countChanges: async () => (await readHead(sender)) - first - 1 }
}

/** Measures the deliveries of a webhook with a backlog, beside paced writes. Then those of one that keeps up. Prints both. */
async function measureWebhook(sender: Sender, receiver: Receiver, { perSecond, seconds }: Pace): Promise<void> {
  const { target } = sender
  const { people } = target.large
  const load = (duration: number, onAnswer?: (requestId: string, atMs: number) => void) =>
    patchAtRate(target.service, { people, perSecond, seconds: duration }, onAnswer)
  const backlog = maxDeliveriesPerSecond * (seconds + warmUpMs / 1_000)
  const { id, countChanges } = await createBacklog(sender, receiver, backlog)
  printPaced('without deliveries', await measureLoad(target, () => load(seconds)))
  await send(sender, 'PATCH', `/webhooks/${id}`, { active: true })
  await load(warmUpMs / 1_000)
  const [countBefore, fromMs] = [receiver.delivered.size, performance.now()]
  const beside = await measureLoad(target, () => load(seconds))
  const deliveriesPerSecond = (receiver.delivered.size - countBefore) / ((performance.now() - fromMs) / 1_000)
  if (receiver.delivered.size >= (await countChanges())) throw new Error('The backlog ended during the measurement.')
  const verdict = deliveriesPerSecond >= minDeliveriesPerSecond ? 'met' : 'NOT MET'
  printPaced('beside a backlog', beside)
  print(
    `  deliveries ${deliveriesPerSecond.toFixed(0)}/s beside ${perSecond} PATCH/s (at least ${minDeliveriesPerSecond}): ${verdict}`,
  )
  const drainedFromMs = performance.now()
  await waitUntilDelivered(receiver, await countChanges())
  const drainSeconds = (performance.now() - drainedFromMs) / 1_000
  print(
    `  the rest of the backlog took ${drainSeconds.toFixed(1)} s; ${receiver.countRepeated()} messages arrived twice`,
  )
  const acknowledged = new Map<string, number>()
  const live = await measureLoad(target, () => load(seconds, (requestId, atMs) => acknowledged.set(requestId, atMs)))
  await waitUntilDelivered(receiver, await countChanges())
  printPaced('live', live)
  const arrivals = new Map([...receiver.delivered.values()].map(({ requestId, atMs }) => [requestId, atMs]))
  const times = [...acknowledged].map(([requestId, atMs]) => Math.max(0, arrivals.get(requestId)! - atMs))
  print(
    `  acknowledgement to delivery p50 ${percentile(times, 0.5).toFixed(1)} ms, p99 ${percentile(times, 0.99).toFixed(1)} ms`,
  )
}

function printPaced(name: string, { rate, p50Ms, p99Ms, usage }: Run & { p99Ms: number; usage: Usage }) {
  const patches = `PATCH ${rate.toFixed(0)}/s, p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms`
  const cpu = `CPU: kith ${usage.service.toFixed(0)} %, PostgreSQL ${usage.postgres.toFixed(0)} %; kith at most ${usage.servicePeakMb.toFixed(0)} MB`
  print(`  ${name.padEnd(20)} ${patches}; ${cpu}`)
}

/** Measures the deliveries of a webhook to a local receiver, beside writes. */
async function main() {
  const { values } = parseArgs({
    options: {
      people: { type: 'string', default: '100000' },
      rate: { type: 'string', default: '500' },
      seconds: { type: 'string', default: '10' },
    },
  })
  const [people, perSecond, seconds] = [Number(values.people), Number(values.rate), Number(values.seconds)]
  const options = { people, rounds: 1, seconds, workers: 1, rows: [patchRow] }
  await withPostgres(options, async ({ addTarget, acquire }) => {
    const receiver = await acquire(startReceiver, started => started.stop())
    const target = await addTarget(checkout, 'bench', { KITH_WEBHOOK_ALLOW: '127.0.0.0/8' })
    const scope = 'webhooks:read webhooks:write changes:read people:read'
    const sender = { target, token: await createToken(checkout, target.service, scope) }
    printPlatform(await serverVersion(target.service))
    await measureWebhook(sender, receiver, { perSecond, seconds })
  })
}

await main()
