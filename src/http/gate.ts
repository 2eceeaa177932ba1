import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { performance } from 'node:perf_hooks'
import type { Config } from '../config.ts'
import { isVersioned } from './admission.ts'
import { answererOf } from './busy.ts'
import { watchRest } from './connections.ts'
import { createOverload, type Overload, type Reason, tick_ms } from './overload.ts'
import { readTarget } from './target.ts'

type Refusals = Record<Reason, number>

/** Stands before all that a request costs: it is let in and held to be inside until it is over, or refused here. */
export type Gate = {
  /** Has a server's requests come through it. */
  guard(server: Server): void
  /** The work of a request goes on when its client has gone: it stays inside for as long. */
  hold(request: IncomingMessage, work: Promise<unknown>): void
  /** Requests refused so far, by reason. */
  readonly refusals: Readonly<Refusals>
}

type GateOptions = {
  config: Pick<Config, 'limits' | 'tls' | 'cors_origins'>
  /** The organization that an Authorization header is known to speak for, without asking anybody. */
  recall: (authorization: string) => number | undefined
  /** Whether connections end with the next answer. */
  isLast: () => boolean
  /** Told once a second at most how many were refused since, and how many are inside. */
  report: (told: { refused: number; in_flight: number }) => void
}

type Place = { leave: () => void; work: Promise<unknown> | undefined }

export function createGate({ config, recall, isLast, report }: GateOptions): Gate {
  const { limits } = config
  const { in_flight: requests, in_flight_bytes: bytes, connections } = limits
  const overload = createOverload({ requests, bytes, connections })
  const refusals: Refusals = { requests: 0, bytes: 0, slow: 0, busy: 0, connections: 0 }
  const places = new WeakMap<IncomingMessage, Place>()
  const keep = keeperOf(overload)
  const answerBusy = answererOf(config)
  const clock = startClock(overload, refusals, report)

  function letIn(request: IncomingMessage, response: ServerResponse): Reason | undefined {
    const { authorization } = request.headers
    const holder = authorization === undefined ? undefined : recall(authorization)
    const of_connection = keep(request.socket, holder)
    if (typeof of_connection === 'string') return of_connection
    const leave = overload.enter(holder, bytesOf(request, limits))
    if (typeof leave === 'string') return leave
    const place: Place = { leave, work: undefined }
    places.set(request, place)
    of_connection.add(place)
    response.once('close', () => finish(of_connection, place))
    return undefined
  }

  function refuses(request: IncomingMessage, response: ServerResponse): boolean {
    if (!isVersioned(readTarget(request.url ?? '/')) || request.method === 'OPTIONS') return false
    const reason = letIn(request, response)
    if (!reason) return false
    refusals[reason] += 1
    if (!request.complete) response.once('close', () => request.complete || watchRest(request, limits))
    answerBusy(request, response, { closing: reason === 'connections' || isLast() })
    return true
  }

  return {
    refusals,
    hold: (request, work) => {
      const place = places.get(request)
      if (place) place.work = work
    },
    guard: server => {
      const handlers = server.listeners('request')
      server.removeAllListeners('request')
      server.on('request', (request, response) => {
        if (!refuses(request, response)) for (const handle of handlers) handle.call(server, request, response)
      })
      server.once('close', () => clearInterval(clock))
      boundSockets(server, 2 * connections)
    },
  }
}

/** Lets connections stay, and knows of each who came by it and is inside. */
function keeperOf(overload: Overload) {
  const inside = new WeakMap<Socket, Set<Place>>()
  return (socket: Socket, holder: number | undefined): Set<Place> | Reason => {
    const known = inside.get(socket)
    if (known) return known
    const kept = overload.keep(holder)
    if (typeof kept === 'string') return kept
    const of_connection = new Set<Place>()
    inside.set(socket, of_connection)
    // An answer that waits for those before it hears nothing of the end of its connection: it is told.
    socket.once('close', () => {
      kept()
      for (const place of of_connection) finish(of_connection, place)
    })
    return of_connection
  }
}

function finish(of_connection: Set<Place>, place: Place) {
  if (!of_connection.delete(place)) return
  if (place.work) place.work.then(place.leave, place.leave)
  else place.leave()
}

/** Whoever has asked nothing yet belongs to nobody, and is counted here only. */
function boundSockets(server: Server, most: number) {
  let open = 0
  server.on('connection', (socket: Socket) => {
    open += 1
    socket.once('close', () => {
      open -= 1
    })
    if (open > most) socket.destroy()
  })
}

/** A report a second at most. */
const report_ticks = 1_000 / tick_ms

function startClock({ tick, held }: Overload, refusals: Refusals, report: GateOptions['report']): NodeJS.Timeout {
  let ticks = 0
  let reported = 0
  let before = performance.eventLoopUtilization()
  return setInterval(() => {
    const now = performance.eventLoopUtilization()
    tick(performance.eventLoopUtilization(now, before).utilization)
    before = now
    ticks += 1
    const refused = Object.values(refusals).reduce((total, count) => total + count, 0)
    if (ticks % report_ticks > 0 || refused === reported) return
    report({ refused: refused - reported, in_flight: held.requests })
    reported = refused
  }, tick_ms).unref()
}

/** What the body may come to be. Of a stream no more is held at a time than of a batch. */
function bytesOf({ headers }: IncomingMessage, { body_bytes, batch_bytes }: Config['limits']): number {
  if (headers['transfer-encoding'] !== undefined) return body_bytes
  const length = headers['content-length']
  return length === undefined ? 0 : Math.min(Number(length) || 0, batch_bytes)
}
