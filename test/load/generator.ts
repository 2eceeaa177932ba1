import { setTimeout } from 'node:timers/promises'
import { Connection, type LoadResponse } from './connection.ts'
import { Latencies } from './latencies.ts'
import type { Figures, Load } from './load.ts'
import { createRequests } from './requests.ts'

const drainTimeoutMs = 15_000

/** Sends the load and waits for its responses, up to 15 s after its end. */
export async function generate(load: Load): Promise<Figures> {
  const { hostname, port } = new URL(load.address)
  const nextRequest = createRequests(load)
  const { counts, recordResponse, figures } = createCounters()
  const idle: Connection[] = []
  const open = new Set<Connection>()
  const dueTimes: number[] = []
  let nextDue = 0
  let hasEnded = false

  const onClose = (connection: Connection) => {
    if (!open.delete(connection)) return
    const index = idle.indexOf(connection)
    if (index >= 0) idle.splice(index, 1)
  }
  const connectOne = () => {
    const connection = new Connection({ host: hostname, port: Number(port) }, onClose)
    open.add(connection)
    return connection
  }
  const connectionLimit = load.rate === undefined ? load.connections : load.maxConnections
  let peakConnections = 0

  function send(connection: Connection, dueAt: number) {
    connection.send(nextRequest(), (response, used) => {
      recordResponse(response, performance.now() - dueAt)
      reuseConnection(open.has(used) ? used : undefined)
    })
  }

  /** Sends the next request on a free connection, or on a new one if it has closed. */
  function reuseConnection(connection: Connection | undefined) {
    if (load.rate === undefined) {
      if (!hasEnded) startRequest(performance.now(), connection)
    } else if (nextDue < dueTimes.length) {
      const dueAt = dueTimes[nextDue++]!
      send(connection ?? connectOne(), dueAt)
    } else if (connection) idle.push(connection)
  }

  function startRequest(dueAt: number, free = idle.pop()) {
    counts.due += 1
    const connection = free ?? (open.size < connectionLimit ? connectOne() : undefined)
    if (connection) send(connection, dueAt)
    else dueTimes.push(dueAt)
    peakConnections = Math.max(peakConnections, open.size)
  }

  for (let index = 0; index < load.connections; index += 1) idle.push(connectOne())
  const startedAt = performance.now()
  if (load.rate === undefined) while (idle.length > 0) startRequest(startedAt)
  if (load.rate === undefined) await setTimeout(load.seconds * 1_000)
  else await paceRequests(load.rate, load.seconds, startedAt, counts, startRequest)
  hasEnded = true
  const tookMs = performance.now() - startedAt
  for (const deadline = performance.now() + drainTimeoutMs; counts.done < counts.due && performance.now() < deadline; )
    await setTimeout(5)
  for (const connection of open) connection.destroy()
  return figures(tookMs / 1_000, peakConnections)
}

/** Starts each request when it is due. */
async function paceRequests(
  rate: number,
  seconds: number,
  startedAt: number,
  counts: { due: number },
  startRequest: (dueAt: number) => void,
): Promise<void> {
  for (let now = startedAt; now < startedAt + seconds * 1_000; now = performance.now()) {
    while (counts.due < ((now - startedAt) / 1_000) * rate) startRequest(startedAt + (counts.due / rate) * 1_000)
    // A busy loop would take a whole core from kith.
    await setTimeout(1)
  }
}

/** Creates the counters and latencies of a load. */
function createCounters() {
  const answered = new Latencies()
  const refused = new Latencies()
  const counts = { due: 0, done: 0, broken: 0, withoutRetryAfter: 0 }
  const others: Record<string, number> = {}
  return {
    counts,
    recordResponse: (response: LoadResponse, ms: number): void => {
      counts.done += 1
      if (!response) counts.broken += 1
      else if (response.status === 200 || response.status === 201) answered.add(ms)
      else if (response.status === 429 || response.status === 503) {
        refused.add(ms)
        if (!response.retryAfter) counts.withoutRetryAfter += 1
      } else others[response.status] = (others[response.status] ?? 0) + 1
    },
    figures: (seconds: number, connections: number): Figures => {
      const { due, done, broken, withoutRetryAfter } = counts
      const summaries = { answered: answered.summary(), refused: refused.summary() }
      return { seconds, due, ...summaries, withoutRetryAfter, others, broken, unanswered: due - done, connections }
    },
  }
}
