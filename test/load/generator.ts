import { setTimeout } from 'node:timers/promises'
import { type Answer, Connection } from './connection.ts'
import { Latencies } from './latencies.ts'
import type { Figures, Load } from './load.ts'
import { createRequests } from './requests.ts'

const patienceMs = 15_000

/** Sends the load and waits for its answers. */
export async function generate(load: Load): Promise<Figures> {
  const { hostname, port } = new URL(load.address)
  const nextRequest = createRequests(load)
  const { counts, note, figures } = createTally()
  const idle: Connection[] = []
  const open = new Set<Connection>()
  const waiting: number[] = []
  let waitingFrom = 0
  let ended = false

  const closed = (connection: Connection) => {
    if (!open.delete(connection)) return
    const at = idle.indexOf(connection)
    if (at >= 0) idle.splice(at, 1)
  }
  const connectOne = () => {
    const connection = new Connection({ host: hostname, port: Number(port) }, closed)
    open.add(connection)
    return connection
  }
  const most = load.rate === undefined ? load.connections : load.mostConnections
  let mostOpen = 0

  function send(connection: Connection, dueAt: number) {
    connection.send(nextRequest(), (answer, used) => {
      note(answer, performance.now() - dueAt)
      carryOn(open.has(used) ? used : undefined)
    })
  }

  /** A connection is free, or one has closed and may be replaced. */
  function carryOn(connection: Connection | undefined) {
    if (load.rate === undefined) {
      if (!ended) begin(performance.now(), connection)
    } else if (waitingFrom < waiting.length) {
      const dueAt = waiting[waitingFrom++]!
      send(connection ?? connectOne(), dueAt)
    } else if (connection) idle.push(connection)
  }

  function begin(dueAt: number, free = idle.pop()) {
    counts.due += 1
    const connection = free ?? (open.size < most ? connectOne() : undefined)
    if (connection) send(connection, dueAt)
    else waiting.push(dueAt)
    mostOpen = Math.max(mostOpen, open.size)
  }

  for (let index = 0; index < load.connections; index += 1) idle.push(connectOne())
  const began = performance.now()
  if (load.rate === undefined) while (idle.length > 0) begin(began)
  if (load.rate === undefined) await setTimeout(load.seconds * 1_000)
  else await keepTo(load.rate, load.seconds, began, counts, begin)
  ended = true
  const tookMs = performance.now() - began
  for (const until = performance.now() + patienceMs; counts.done < counts.due && performance.now() < until; )
    await setTimeout(5)
  for (const connection of open) connection.destroy()
  return figures(tookMs / 1_000, mostOpen)
}

/** Begins each request when it is due. */
async function keepTo(
  rate: number,
  seconds: number,
  began: number,
  counts: { due: number },
  begin: (dueAt: number) => void,
): Promise<void> {
  for (let now = began; now < began + seconds * 1_000; now = performance.now()) {
    while (counts.due < ((now - began) / 1_000) * rate) begin(began + (counts.due / rate) * 1_000)
    // A loop that spins would take a whole core from the service.
    await setTimeout(1)
  }
}

/** Keeps what became of the requests. */
function createTally() {
  const answered = new Latencies()
  const refused = new Latencies()
  const counts = { due: 0, done: 0, broken: 0, withoutRetryAfter: 0 }
  const others: Record<string, number> = {}
  return {
    counts,
    note: (answer: Answer, ms: number): void => {
      counts.done += 1
      if (!answer) counts.broken += 1
      else if (answer.status === 200 || answer.status === 201) answered.add(ms)
      else if (answer.status === 429 || answer.status === 503) {
        refused.add(ms)
        if (!answer.retryAfter) counts.withoutRetryAfter += 1
      } else others[answer.status] = (others[answer.status] ?? 0) + 1
    },
    figures: (seconds: number, connections: number): Figures => {
      const { due, done, broken, withoutRetryAfter } = counts
      const summaries = { answered: answered.summary(), refused: refused.summary() }
      return { seconds, due, ...summaries, withoutRetryAfter, others, broken, unanswered: due - done, connections }
    },
  }
}
