import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { performance } from 'node:perf_hooks'
import type { Config } from '../config.ts'
import type { Observer } from '../observer.ts'
import { isVersioned } from './admission.ts'
import { answererOf } from './busy.ts'
import { byTurns } from './by-turns.ts'
import { most_at_once, watchRest } from './connections.ts'
import { createOverload, type Inside, type Overload, type Reason, tick_ms } from './overload.ts'
import { takeShortcut } from './shortcut.ts'
import { readTarget } from './target.ts'

/** Stands before all that a request costs: it is let in and held to be inside until it is over, or refused here. */
export type Gate = {
  /** Has a server's requests come through it. */
  guard(server: Server): void
  /** The work of a request goes on when its client has gone: it stays inside for as long. */
  hold(request: IncomingMessage, work: Promise<unknown>): void
  /** Its connection is done with a request, answered or not. */
  leave(response: ServerResponse): void
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

/** A refusal costs 30 to 45 µs, and a neighbour's request takes some turns: in each it would wait for all of a thousand. */
const refusals_a_turn = 32

type Refused = { request: IncomingMessage; response: ServerResponse; closing: boolean }

type Place = { inside: Inside | undefined; work: Promise<unknown> | undefined }

/**
 * A connection that may stay: whoever came by it and is inside, for whom the last request spoke, refusals on their way, and
 * once there was one, the last request, for the shortcut's sake.
 */
type Kept = {
  places: Place[]
  authorization: string | undefined
  holder: number | undefined
  unheard: number
  shortcut: boolean
  last: IncomingMessage | undefined
}

// On the objects themselves: weak maps, looked into some times for each request, cost a GET 2 µs, half of it collecting.
const place_of = Symbol('place')
const kept_of = Symbol('kept')
type Placed = IncomingMessage & { [place_of]?: Place }
type Known = Socket & { [kept_of]?: Kept }

export function createGate({ config, recall, isLast, observer, report }: GateOptions): Gate {
  const { limits } = config
  const { in_flight: requests, in_flight_bytes: bytes, connections } = limits
  const overload = createOverload({ requests, bytes, connections })
  const clock = startClock(overload, report)
  const finish = finisherOf(overload)
  const keep = keeperOf(overload, recall, finish)
  const busy = answererOf(config)

  function tell(reason: Reason | 'connection') {
    observer.overloaded(reason)
    clock.refused()
  }

  /** By turns. By the end of a turn what was sent together has been read together, a body with its request. */
  const refuseInTurn = byTurns<Refused>(refusals_a_turn, ({ request, response, closing }) => {
    const { socket }: { socket: Known } = request
    if (socket.destroyed) return
    response.once('close', () => {
      const kept = socket[kept_of]
      if (!kept) return
      kept.unheard -= 1
      shorten(socket, kept)
    })
    if (!request.complete) watchRest(request, limits)
    busy.answer(request, response, { closing: closing || isLast() })
  })

  /** Whoever was refused once is refused next time for a third of the cost. */
  function shorten(socket: Socket, kept: Kept) {
    if (kept.shortcut || kept.holder === undefined || socket.destroyed) return
    kept.shortcut = true
    takeShortcut(socket, {
      last: () => kept.last,
      isIdle: () => kept.places.length + kept.unheard + socket.writableLength === 0,
      answers: ({ authorization, request_id, bytes }) => {
        if (authorization !== kept.authorization || isLast()) return false
        const reason = overload.refuse(kept.holder, Math.min(bytes, limits.batch_bytes))
        if (!reason) return false
        tell(reason)
        socket.write(busy.text(request_id), 'latin1')
        return true
      },
    })
  }

  function letIn(request: Placed): Reason | undefined {
    const kept = keep(request.socket, request.headers.authorization)
    if (typeof kept === 'string') return kept
    // One more than may be under way on a connection ends it, and those behind that one are not begun (connections.ts).
    if (kept.places.length > most_at_once) return undefined
    const inside = overload.enter(kept.holder, bytesOf(request, limits))
    if (typeof inside === 'string') return inside
    const place: Place = { inside, work: undefined }
    request[place_of] = place
    kept.places.push(place)
    return undefined
  }

  function refuses(request: IncomingMessage, response: ServerResponse): boolean {
    if (!isVersioned(readTarget(request.url ?? '/')) || request.method === 'OPTIONS') return false
    const kept = (request.socket as Known)[kept_of]
    if (kept?.shortcut) kept.last = request
    // Who goes on sending before it has heard a no hears one more, and the connection ends: what else it sends is not begun.
    if (kept && kept.unheard > 1) return true
    const reason = kept && kept.unheard > 0 ? 'connection' : letIn(request)
    if (!reason) return false
    tell(reason)
    const stays = (request.socket as Known)[kept_of]
    if (stays) stays.unheard += 1
    refuseInTurn({ request, response, closing: reason === 'connection' || reason === 'connections' })
    if (reason === 'connection') request.socket.pause()
    return true
  }

  return {
    hold: (request, work) => {
      const place = (request as Placed)[place_of]
      if (place) place.work = work
    },
    leave: ({ req: request, writableFinished }) => {
      const { [place_of]: place }: Placed = request
      if (place) finish((request.socket as Known)[kept_of]!, place, writableFinished)
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

type Finish = (kept: Kept, place: Place, answered: boolean) => void

/** Lets connections stay, and knows of each who came by it and is inside. */
function keeperOf(overload: Overload, recall: GateOptions['recall'], finish: Finish) {
  return (socket: Known, authorization: string | undefined): Kept | Reason => {
    const known = socket[kept_of]
    if (known?.holder !== undefined && known.authorization === authorization) return known
    const holder = authorization === undefined ? undefined : recall(authorization)
    if (known) return Object.assign(known, { authorization, holder })
    const leave = overload.keep(holder)
    if (typeof leave === 'string') return leave
    const kept: Kept = { places: [], authorization, holder, unheard: 0, shortcut: false, last: undefined }
    socket[kept_of] = kept
    // An answer that waits for those before it hears nothing of the end of its connection: it is told.
    socket.once('close', () => {
      leave()
      for (const place of [...kept.places]) finish(kept, place, false)
    })
    return kept
  }
}

/** Lets a request out, once: with its answer, or where it was not answered, when its work has ended. */
function finisherOf(overload: Overload): Finish {
  return ({ places }, place, answered) => {
    const { inside, work } = place
    if (!inside) return
    place.inside = undefined
    places.splice(places.indexOf(place), 1)
    if (answered || !work) return overload.leave(inside)
    const leave = () => overload.leave(inside)
    work.then(leave, leave)
  }
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
