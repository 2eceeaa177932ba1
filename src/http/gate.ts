import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { performance } from 'node:perf_hooks'
import type { Config } from '../config.ts'
import type { Observer } from '../observer.ts'
import { isVersioned } from './admission.ts'
import { answererOf } from './busy.ts'
import { watchRest } from './connections.ts'
import { createOverload, type Overload, type Reason, tick_ms } from './overload.ts'
import { readTarget } from './target.ts'

/** Stands before all that a request costs: it is let in and held to be inside until it is over, or refused here. */
export type Gate = {
  /** Has a server's requests come through it. */
  guard(server: Server): void
  /** The work of a request goes on when its client has gone: it stays inside for as long. */
  hold(request: IncomingMessage, work: Promise<unknown>): void
}

type GateOptions = {
  config: Pick<Config, 'limits' | 'tls' | 'cors_origins'>
  /** The organization that an Authorization header is known to speak for, without asking anybody. */
  recall: (authorization: string) => number | undefined
  /** Whether connections end with the next answer. */
  isLast: () => boolean
  observer: Pick<Observer, 'overloaded'>
  /** Told once a second at most how many were refused since, and how many are inside. */
  report: (told: { refused: number; in_flight: number }) => void
}

type Place = { leave: () => void; work: Promise<unknown> | undefined }

/** A connection that may stay: whoever came by it and is inside, and for whom its last request spoke. */
type Kept = { inside: Set<Place>; authorization: string | undefined; holder: number | undefined }

// On the objects themselves: weak maps, looked into some times for each request, cost a GET 2 µs, half of it collecting.
const place_of = Symbol('place')
const kept_of = Symbol('kept')
type Placed = IncomingMessage & { [place_of]?: Place }
type Known = Socket & { [kept_of]?: Kept }

export function createGate({ config, recall, isLast, observer, report }: GateOptions): Gate {
  const { limits } = config
  const { in_flight: requests, in_flight_bytes: bytes, connections } = limits
  const overload = createOverload({ requests, bytes, connections })
  const answerBusy = answererOf(config)
  const clock = startClock(overload, report)

  const keep = keeperOf(overload, recall)

  function letIn(request: Placed, response: ServerResponse): Reason | undefined {
    const kept = keep(request.socket, request.headers.authorization)
    if (typeof kept === 'string') return kept
    const leave = overload.enter(kept.holder, bytesOf(request, limits))
    if (typeof leave === 'string') return leave
    const place: Place = { leave, work: undefined }
    request[place_of] = place
    kept.inside.add(place)
    response.on('close', () => finish(kept, place))
    return undefined
  }

  function refuses(request: IncomingMessage, response: ServerResponse): boolean {
    if (!isVersioned(readTarget(request.url ?? '/')) || request.method === 'OPTIONS') return false
    const reason = letIn(request, response)
    if (!reason) return false
    observer.overloaded(reason)
    clock.refused()
    if (!request.complete) response.once('close', () => request.complete || watchRest(request, limits))
    answerBusy(request, response, { closing: reason === 'connections' || isLast() })
    return true
  }

  return {
    hold: (request, work) => {
      const place = (request as Placed)[place_of]
      if (place) place.work = work
    },
    guard: server => {
      const handlers = server.listeners('request')
      server.removeAllListeners('request')
      server.on('request', (request, response) => {
        if (!refuses(request, response)) for (const handle of handlers) handle.call(server, request, response)
      })
      server.once('close', clock.stop)
      boundSockets(server, 2 * connections)
    },
  }
}

/** Lets connections stay, and knows of each who came by it and is inside. */
function keeperOf(overload: Overload, recall: GateOptions['recall']) {
  return (socket: Known, authorization: string | undefined): Kept | Reason => {
    const known = socket[kept_of]
    if (known?.holder !== undefined && known.authorization === authorization) return known
    const holder = authorization === undefined ? undefined : recall(authorization)
    if (known) return Object.assign(known, { authorization, holder })
    const leave = overload.keep(holder)
    if (typeof leave === 'string') return leave
    const kept = { inside: new Set<Place>(), authorization, holder }
    socket[kept_of] = kept
    // An answer that waits for those before it hears nothing of the end of its connection: it is told.
    socket.once('close', () => {
      leave()
      for (const place of kept.inside) finish(kept, place)
    })
    return kept
  }
}

function finish({ inside }: Kept, place: Place) {
  if (!inside.delete(place)) return
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

function startClock({ tick, held }: Overload, report: GateOptions['report']) {
  let ticks = 0
  let refused = 0
  let before = performance.eventLoopUtilization()
  const timer = setInterval(() => {
    const now = performance.eventLoopUtilization()
    tick(performance.eventLoopUtilization(now, before).utilization)
    before = now
    ticks += 1
    if (ticks % report_ticks > 0 || refused === 0) return
    report({ refused, in_flight: held.requests })
    refused = 0
  }, tick_ms).unref()
  return {
    refused: () => {
      refused += 1
    },
    stop: () => clearInterval(timer),
  }
}

/** What the body may come to be. Of a stream no more is held at a time than of a batch. */
function bytesOf({ headers }: IncomingMessage, { body_bytes, batch_bytes }: Config['limits']): number {
  if (headers['transfer-encoding'] !== undefined) return body_bytes
  const length = headers['content-length']
  return length === undefined ? 0 : Math.min(Number(length) || 0, batch_bytes)
}
