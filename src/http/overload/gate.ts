import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { performance } from 'node:perf_hooks'
import type { Config } from '../../config.ts'
import type { Observer } from '../../observer.ts'
import { parseTarget } from '../input/request-target.ts'
import { isVersioned } from '../pipeline/admission.ts'
import { clientAddress } from '../server/server.ts'
import { isBehindUpgrade } from '../server/upgrade.ts'
import { coalesceChunks } from './chunk-coalescing.ts'
import { maxPipelined } from './connection-limits.ts'
import {
  admitterOf,
  type ConnectionState,
  connectionStateKey,
  connectionStateOf,
  releaseSlot,
  type Slot,
  slotKey,
  type TrackedRequest,
  type TrackedSocket,
} from './connection-state.ts'
import { loadShedder } from './load-shedder.ts'
import { createOverload, type Overload, type Reason, type Tenant, tickMs } from './overload.ts'
import { overloadResponder } from './overload-response.ts'

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
  config: Pick<Config, 'limits' | 'tls' | 'corsOrigins' | 'behindProxy'>
  /** The organization that an Authorization header is known to speak for, without asking anybody. */
  recall: (authorization: string) => number | undefined
  /** Whether connections end with the next answer. */
  isLast: () => boolean
  observer: Pick<Observer, 'overloaded'>
  /** Told once a second at most how many were refused since, and how many are inside. */
  report: (told: { refused: number; inFlight: number }) => void
}

/**
 * Requests outside `/v1` that a process carries out at a time, apart from those below it. One client's address has half of
 * them at most. Each holds at most the body of a token request, 16 KiB.
 */
const openRequests = 128

/** Always answered: a balancer takes a process out that refuses its probes, and these and preflights cost as little as a refusal. */
const isProbe = ({ method }: IncomingMessage, url: string) =>
  method === 'OPTIONS' || /^\/(healthz|readyz)([?#]|$)/.test(url)

export function createGate({ config, recall, isLast, observer, report }: GateOptions): Gate {
  const { limits } = config
  const { inFlight: requests, inFlightBytes: bytes, connections } = limits
  const overload = createOverload({ requests, bytes, connections })
  const open = createOpenShare()
  const clock = startClock([overload, open], report)
  const keep = admitterOf(overload, recall)
  const tell = (reason: Reason | 'connection') => {
    observer.overloaded(reason)
    clock.refused()
  }
  const refuse = loadShedder({ limits, overload, busy: overloadResponder(config), isLast, tell })

  function letIn(request: TrackedRequest): Reason | undefined {
    const kept = keep(request.socket, request.headers.authorization)
    if (typeof kept === 'string') return kept
    return enter(request, kept, { of: overload, holder: kept.holder, bytes: bytesOf(request, limits) })
  }

  function letInOpen(request: TrackedRequest): Reason | undefined {
    const holder = clientAddress(request, config.behindProxy)
    return enter(request, connectionStateOf(request.socket), { of: open, holder, bytes: 0 })
  }

  function refuses(request: IncomingMessage, response: ServerResponse): boolean {
    const url = parseTarget(request.url ?? '/')
    if (isProbe(request, url)) return false
    const kept = (request.socket as TrackedSocket)[connectionStateKey]
    if (kept?.shortened) kept.last = request
    // Who goes on sending before it has heard a no hears one more, and the connection ends: what else it sends is not begun.
    if (kept && kept.unheard > 1) return true
    const reason = kept && kept.unheard > 0 ? 'connection' : isVersioned(url) ? letIn(request) : letInOpen(request)
    if (!reason) return false
    tell(reason)
    refuse({ request, response, closing: reason === 'connection' || reason === 'connections' })
    if (reason === 'connection') request.socket.pause()
    return true
  }

  return {
    hold: (request, work) => {
      const place = (request as TrackedRequest)[slotKey]
      if (place) place.work = work
    },
    leave: ({ req: request, writableFinished }) => {
      const { [slotKey]: place }: TrackedRequest = request
      if (place) releaseSlot((request.socket as TrackedSocket)[connectionStateKey]!, place, writableFinished)
    },
    guard: server => {
      askFirst(server, refuses)
      server.once('close', clock.stop)
      boundSockets(server, 2 * connections)
    },
  }
}

/**
 * The share of what lies outside `/v1`. A place comes free after the turn of the event loop in which its answer left: 24,000
 * answers of 160 kB left in the turns in which they were asked for, one after the other, and took 20 seconds.
 */
function createOpenShare(): Overload {
  const overload = createOverload({ requests: openRequests, bytes: Infinity, connections: Infinity })
  return { ...overload, leave: inside => void setImmediate(overload.leave, inside) }
}

/** By which share a request comes in, and what it holds of it. */
type Entrance = { of: Overload; holder: Tenant; bytes: number }

function enter(request: TrackedRequest, kept: ConnectionState, { of, holder, bytes }: Entrance): Reason | undefined {
  // One more than may be under way on a connection ends it, and those behind that one are not begun (connections.ts).
  if (kept.places.length > maxPipelined) return undefined
  const inside = of.enter(holder, bytes)
  if (typeof inside === 'string') return inside
  const place: Slot = { inside, overload: of, work: undefined }
  request[slotKey] = place
  kept.places.push(place)
  return undefined
}

function askFirst(server: Server, refuses: (request: IncomingMessage, response: ServerResponse) => boolean) {
  const handlers = server.listeners('request')
  server.removeAllListeners('request')
  server.on('request', (request, response) => {
    if (isBehindUpgrade(request, response)) return
    coalesceChunks(request)
    if (!refuses(request, response)) for (const handle of handlers) handle.call(server, request, response)
  })
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
const reportTicks = 1_000 / tickMs

function startClock(overloads: Overload[], report: GateOptions['report']) {
  let ticks = 0
  let refused = 0
  let before = performance.eventLoopUtilization()
  const timer = setInterval(() => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, before)
    for (const overload of overloads) overload.tick(utilization)
    before = now
    ticks += 1
    if (ticks % reportTicks > 0 || refused === 0) return
    report({ refused, inFlight: overloads.reduce((sum, { held }) => sum + held.requests, 0) })
    refused = 0
  }, tickMs).unref()
  return {
    refused: () => {
      refused += 1
    },
    stop: () => clearInterval(timer),
  }
}

/** What the body may come to be. Of a stream no more is held at a time than of a batch. */
function bytesOf({ headers }: IncomingMessage, { bodyBytes, batchBytes }: Config['limits']): number {
  if (headers['transfer-encoding'] !== undefined) return bodyBytes
  const length = headers['content-length']
  return length === undefined ? 0 : Math.min(Number(length) || 0, batchBytes)
}
