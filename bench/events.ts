import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { serverVersion } from './database.ts'
import { median, percentile, type Run } from './measure.ts'
import { patchAtRate } from './paced.ts'
import { printMachine } from './report.ts'
import { rows } from './rows.ts'
import { type BenchTarget, measureLoad, measureService, withPostgres } from './run.ts'
import { createToken } from './tokens.ts'
import { type Usage, withUsage } from './usage.ts'

const bounds = { p50Ms: 20, p99Ms: 250, memoryMb: 100, patchRatio: 0.9 }

const checkout = fileURLToPath(new URL('..', import.meta.url))
const clientsProgram = fileURLToPath(new URL('event-clients.ts', import.meta.url))
const print = (line = '') => process.stdout.write(`${line}\n`)
const patchRow = rows.find(({ name }) => name === 'patch')!

/** The service collects garbage within 10 seconds after its last load. Then its memory is read. */
const idleMs = 11_000
/** The longest wait for the last events after the last acknowledgement. */
const patienceMs = 10_000

type Follower = { target: BenchTarget; token: string; perSecond: number; clients: number }

async function readHead({ target, token }: Follower): Promise<number> {
  const response = await fetch(`${target.service.address}/v1/changes?limit=1`, {
    headers: { Authorization: `Bearer ${token}` },
  })
  if (!response.ok) throw new Error(`The head could not be read: ${await response.text()}`)
  return ((await response.json()) as { data: { head: number } }).data.head
}

/** Opens a stream of events. `onEvent` receives the request id of each change and the time of its arrival. */
async function followEvents(follower: Follower, onEvent: (requestId: string, atMs: number) => void) {
  const { address } = follower.target.service
  const headers = { Authorization: `Bearer ${follower.token}`, Accept: 'text/event-stream' }
  const request = get(`${address}/v1/changes?after=${await readHead(follower)}`, { headers, agent: false })
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  let rest = ''
  response.setEncoding('utf8').on('data', (part: string) => {
    const atMs = performance.now()
    const blocks = `${rest}${part}`.split('\n\n')
    rest = blocks.pop()!
    for (const block of blocks) {
      const requestId = /"request_id":"([^"]*)"\}$/.exec(block)?.[1]
      if (requestId !== undefined) onEvent(requestId, atMs)
    }
  })
  response.on('error', () => {})
  return () => request.destroy()
}

type Latencies = { p50Ms: number; p99Ms: number }
type PacedFigures = Run & { p99Ms: number; events: Latencies }

/** Writes at the rate, and measures the time from each acknowledgement to its event at one client. An event may come first. */
async function measureLatency(follower: Follower, seconds: number): Promise<PacedFigures> {
  const { target, perSecond } = follower
  const [acknowledged, arrived] = [new Map<string, number>(), new Map<string, number>()]
  const close = await followEvents(follower, (requestId, atMs) => arrived.set(requestId, atMs))
  try {
    const { people } = target.large
    const figures = await patchAtRate(target.service, { people, perSecond, seconds }, (requestId, atMs) =>
      acknowledged.set(requestId, atMs),
    )
    const untilMs = performance.now() + patienceMs
    const missing = () => [...acknowledged.keys()].filter(requestId => !arrived.has(requestId)).length
    while (missing() > 0 && performance.now() < untilMs) await setTimeout(20)
    if (missing() > 0) throw new Error(`${missing()} of ${acknowledged.size} writes had no event.`)
    const times = [...acknowledged].map(([requestId, atMs]) => Math.max(0, arrived.get(requestId)! - atMs))
    return { ...figures, events: { p50Ms: percentile(times, 0.5), p99Ms: percentile(times, 0.99) } }
  } finally {
    close()
  }
}

type Clients = { tookMs: number; stop(): Promise<{ bytes: number; closed: number }> }

/** Opens many streams at once from another process. Throws if one is refused. */
async function openClients(follower: Follower, query: string): Promise<Clients> {
  const { target, token, clients } = follower
  const after = await readHead(follower)
  const words = ['--address', target.service.address, '--query', `after=${after}${query}`, '--clients', `${clients}`]
  const child = spawn(process.execPath, [clientsProgram, ...words], {
    env: { PATH: process.env.PATH, TOKEN: token },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const readLine = async () => JSON.parse((await lines.next()).value ?? '{}')
  const { opened, tookMs, refused } = await readLine()
  if (opened !== clients) {
    child.kill()
    throw new Error(`${opened} of ${clients} streams opened: ${refused}`)
  }
  return {
    tookMs,
    stop: async () => {
      child.kill('SIGTERM')
      return readLine()
    },
  }
}

async function withClients<T>(follower: Follower, query: string, work: () => Promise<T>) {
  const clients = await openClients(follower, query)
  const closing = async () => {
    const counts = await clients.stop()
    // The service notices the closed connections.
    await setTimeout(500)
    return counts
  }
  let result: T
  try {
    result = await work()
  } catch (error) {
    await closing()
    throw error
  }
  const { bytes, closed } = await closing()
  if (closed > 0) throw new Error(`${closed} streams ended early.`)
  return { result, bytes, tookMs: clients.tookMs }
}

const readMemoryMb = async (target: BenchTarget) => (await withUsage(target, () => setTimeout(idleMs))).usage.serviceMb

/** Alternates PATCHes of 64 connections without and with clients whose filter matches nothing, and compares the memory. */
async function compareQuiet(follower: Follower, rounds: number) {
  const { target } = follower
  const load = async () => {
    const { rate, usage } = await measureService(target, patchRow)
    const patchUs = (usage.service * 1e4) / rate
    return { rate, patchUs, peakMb: usage.servicePeakMb, idleMb: await readMemoryMb(target) }
  }
  type Figures = Awaited<ReturnType<typeof load>>
  const [without, beside]: [Figures[], Figures[]] = [[], []]
  let openMs = 0
  const loadBeside = async () => {
    const { result, tookMs } = await withClients(follower, '&operation=delete', load)
    openMs = Math.max(openMs, tookMs)
    beside.push(result)
  }
  await measureService(target, patchRow, 2)
  for (let round = 0; round < rounds; round += 1) {
    if (round % 2 === 1) await loadBeside()
    without.push(await load())
    if (round % 2 === 0) await loadBeside()
  }
  const of = (key: keyof Figures) =>
    [median(without.map(one => one[key])), median(beside.map(one => one[key]))] as const
  return { rate: of('rate'), patchUs: of('patchUs'), peakMb: of('peakMb'), idleMb: of('idleMb'), openMs }
}

type BusyFigures = PacedFigures & { usage: Usage; bytes: number }

/** Alternates paced PATCHes without and with clients that receive every change. One more client measures the events. */
async function compareBusy(follower: Follower, rounds: number, seconds: number) {
  const load = () => measureLoad(follower.target, () => measureLatency(follower, seconds))
  const [without, beside]: [BusyFigures[], BusyFigures[]] = [[], []]
  for (let round = 0; round < rounds; round += 1) {
    without.push({ ...(await load()), bytes: 0 })
    const { result, bytes } = await withClients(follower, '', load)
    beside.push({ ...result, bytes })
  }
  return { without, beside }
}

const formatMs = (ms: number) => `${ms.toFixed(1)} ms`

function printBusy(name: string, all: BusyFigures[]) {
  const of = (value: (one: BusyFigures) => number) => median(all.map(value))
  const events = `events p50 ${formatMs(of(one => one.events.p50Ms))}, p99 ${formatMs(of(one => one.events.p99Ms))}`
  const patches = `PATCH ${of(one => one.rate).toFixed(0)}/s, p50 ${formatMs(of(one => one.p50Ms))}, p99 ${formatMs(of(one => one.p99Ms))}`
  const [service, postgres] = [of(one => one.usage.service), of(one => one.usage.postgres)]
  const servicePeakMb = of(one => one.usage.servicePeakMb)
  const cpu = `CPU: kith ${service.toFixed(0)} %, PostgreSQL ${postgres.toFixed(0)} %; kith at most ${servicePeakMb.toFixed(0)} MB`
  print(
    `  ${name.padEnd(16)} ${patches}; ${events}; ${(of(one => one.bytes) / 1e6).toFixed(0)} MB to the clients; ${cpu}`,
  )
}

type Part = (follower: Follower, rounds: number, seconds: number) => Promise<void>

const latencyPart: Part = async (follower, rounds, seconds) => {
  const all: PacedFigures[] = []
  for (let round = 0; round < rounds; round += 1) all.push(await measureLatency(follower, seconds))
  const p50Ms = median(all.map(({ events }) => events.p50Ms))
  const p99Ms = median(all.map(({ events }) => events.p99Ms))
  print(`latency: from an acknowledgement to the event of one client, beside ${follower.perSecond} PATCH/s`)
  print(
    `  p50 ${formatMs(p50Ms)} (${formatBound(p50Ms, bounds.p50Ms)}), p99 ${formatMs(p99Ms)} (${formatBound(p99Ms, bounds.p99Ms)})`,
  )
}

const quietPart: Part = async (follower, rounds) => {
  const { clients } = follower
  const { rate, patchUs, peakMb, idleMb, openMs } = await compareQuiet(follower, rounds)
  print(
    `quiet: PATCH of ${patchRow.connections} connections, without and with ${clients} clients whose filter matches nothing`,
  )
  print(`  ${clients} streams that connect at once are open after at most ${openMs} ms`)
  printRatio(rate)
  print(`  kith's CPU for a PATCH: ${patchUs[0].toFixed(0)} µs, ${patchUs[1].toFixed(0)} µs`)
  for (const [name, [without, beside]] of Object.entries({ idle: idleMb, 'at most': peakMb })) {
    const more = beside - without
    print(
      `  memory ${name} ${without.toFixed(0)} MB, ${beside.toFixed(0)} MB: ${more.toFixed(0)} MB more (${formatBound(more, bounds.memoryMb)})`,
    )
  }
}

const busyPart: Part = async (follower, rounds, seconds) => {
  const { clients, perSecond } = follower
  const { without, beside } = await compareBusy(follower, rounds, seconds)
  print(`busy: ${perSecond} PATCH/s, without and with ${clients} clients that receive every change`)
  printBusy('1 client', without)
  printBusy(`${clients} clients`, beside)
  printRatio([median(without.map(({ rate }) => rate)), median(beside.map(({ rate }) => rate))])
}

const parts: Record<string, Part> = { latency: latencyPart, quiet: quietPart, busy: busyPart }

const formatBound = (value: number, max: number) => `at most ${max}: ${value <= max ? 'met' : 'NOT MET'}`

function printRatio([without, beside]: readonly [number, number]) {
  const ratio = beside / without
  const verdict = ratio >= bounds.patchRatio ? 'met' : 'NOT MET'
  print(
    `  PATCH ${without.toFixed(0)}/s, ${beside.toFixed(0)}/s: ratio ${ratio.toFixed(2)} (at least ${bounds.patchRatio}: ${verdict})`,
  )
}

/** Measures server-sent events: their latency beside writes, and what many clients cost. */
async function main() {
  const { values } = parseArgs({
    options: {
      people: { type: 'string', default: '100000' },
      clients: { type: 'string', default: '1000' },
      rate: { type: 'string', default: '500' },
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '5' },
      only: { type: 'string', default: Object.keys(parts).join() },
    },
  })
  const [clients, perSecond] = [Number(values.clients), Number(values.rate)]
  const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)]
  const options = { people: Number(values.people), rounds, seconds, workers: 1, rows: [patchRow] }
  await withPostgres(options, async ({ addTarget }) => {
    const target = await addTarget(checkout, 'bench')
    const token = await createToken(checkout, target.service, 'changes:read people:read')
    const follower = { target, token, perSecond, clients }
    printMachine(options, [], await serverVersion(target.service))
    await measureLatency(follower, 2)
    for (const name of values.only.split(',')) {
      print()
      await parts[name]!(follower, rounds, seconds)
    }
  })
}

await main()
