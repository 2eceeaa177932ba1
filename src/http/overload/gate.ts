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
  type ConnectionState,
  connectionStateKey,
  connectionStateOf,
  createConnectionAdmission,
  releaseSlot,
  type Slot,
  slotKey,
  type TrackedRequest,
  type TrackedSocket,
} from './connection-state.ts'
import { createLoadShedder } from './load-shedder.ts'
import { createOverload, type Overload, type Reason, type Tenant, tickMs } from './overload.ts'
import { createOverloadResponder } from './overload-response.ts'

/**
 * Sheds load before a request costs anything: a request is either admitted, and counted until it is over, or refused.
 */
export type Gate = {
  /** Puts the gate before the request handlers of a server. */
  guard(server: Server): void
  /** Names the work of a request. The request counts until its work ends, even if the client disconnects. */
  hold(request: IncomingMessage, work: Promise<unknown>): void
  /** Counts a request out that goes on, because it waits for events. */
  release(request: IncomingMessage): void
  /** Counts a request out when its connection is done with it, answered or not. */
  leave(response: ServerResponse): void
}

type GateOptions = {
  config: Pick<Config, 'limits' | 'tls' | 'corsOrigins' | 'behindProxy'>
  /** Returns the organization of an Authorization header from the cache, without any I/O. */
  recall: (authorization: string) => number | undefined
  /** Whether the next response closes its connection. */
  shouldClose: () => boolean
  observer: Pick<Observer, 'overloaded'>
  /** Called at most once a second with the requests refused since the last call, and the requests under way. */
  report: (counts: { refused: number; inFlight: number }) => void
}

/**
 * Requests outside `/v1` that a process runs at a time, apart from those below it. One client address has at most half
 * of them. Each request holds at most the body of a token request, 16 KiB.
 */
const maxUnversioned = 128

/**
 * Probes and preflights are always answered. A balancer removes a process that refuses its probes, and both cost as
 * little as a refusal.
 */
const isProbe = ({ method }: IncomingMessage, url: string) =>
  method === 'OPTIONS' || /^\/(healthz|readyz)([?#]|$)/.test(url)

export function createGate({ config, recall, shouldClose, observer, report }: GateOptions): Gate {
  const { limits } = config
  const { inFlight: requests, inFlightBytes: bytes, connections } = limits
  const overload = createOverload({ requests, bytes, connections })
  const unversioned = createUnversionedOverload()
  const clock = startClock([overload, unversioned], report)
  const admitConnection = createConnectionAdmission(overload, recall)
  const reportRefusal = (reason: Reason | 'connection') => {
    observer.overloaded(reason)
    clock.countRefusal()
  }
  const responder = createOverloadResponder(config)
  const sendRefusal = createLoadShedder({ limits, overload, responder, shouldClose, report: reportRefusal })

  function admitVersioned(request: TrackedRequest): Reason | undefined {
    const state = admitConnection(request.socket, request.headers.authorization)
    if (typeof state === 'string') return state
    return admitRequest(request, state, { overload, tenant: state.tenant, bytes: maxBodyBytesOf(request, limits) })
  }

  function admitUnversioned(request: TrackedRequest): Reason | undefined {
    const tenant = clientAddress(request, config.behindProxy)
    return admitRequest(request, connectionStateOf(request.socket), { overload: unversioned, tenant, bytes: 0 })
  }

  /** Returns whether the request is refused. A refused request must not reach the handlers. */
  function shed(request: IncomingMessage, response: ServerResponse): boolean {
    const url = parseTarget(request.url ?? '/')
    if (isProbe(request, url)) return false
    const state = (request.socket as TrackedSocket)[connectionStateKey]
    if (state?.usesShortcut) state.lastRequest = request
    // A client that pipelines past an unread 503 gets one more 503, then the connection closes. Later requests are not
    // started.
    if (state && state.pendingRefusals > 1) return true
    const isPipelined = state !== undefined && state.pendingRefusals > 0
    const reason = isPipelined ? 'connection' : isVersioned(url) ? admitVersioned(request) : admitUnversioned(request)
    if (!reason) return false
    reportRefusal(reason)
    sendRefusal({ request, response, closing: reason === 'connection' || reason === 'connections' })
    if (reason === 'connection') request.socket.pause()
    return true
  }

  return {
    hold: (request, work) => {
      const slot = (request as TrackedRequest)[slotKey]
      if (slot) slot.work = work
    },
    release: request => {
      const { [slotKey]: slot }: TrackedRequest = request
      if (slot) releaseSlot((request.socket as TrackedSocket)[connectionStateKey]!, slot, true)
    },
    leave: ({ req: request, writableFinished }) => {
      const { [slotKey]: slot }: TrackedRequest = request
      if (slot) releaseSlot((request.socket as TrackedSocket)[connectionStateKey]!, slot, writableFinished)
    },
    guard: server => {
      wrapHandlers(server, shed)
      server.once('close', clock.stop)
      limitSockets(server, 2 * connections)
    },
  }
}

/**
 * The limit of requests outside `/v1`. A slot becomes free in the event-loop turn after its response was sent.
 * Otherwise 24,000 responses of 160 kB were each sent in the turn of their request, one after the other, which took 20
 * seconds.
 */
function createUnversionedOverload(): Overload {
  const overload = createOverload({ requests: maxUnversioned, bytes: Infinity, connections: Infinity })
  return { ...overload, leave: admitted => void setImmediate(overload.leave, admitted) }
}

/** The limit that counts a request, and what the request takes of it. */
type Demand = { overload: Overload; tenant: Tenant; bytes: number }

function admitRequest(
  request: TrackedRequest,
  state: ConnectionState,
  { overload, tenant, bytes }: Demand,
): Reason | undefined {
  // The request past a connection's limit closes the connection (connection-limits.ts), so requests behind it need no
  // slot.
  if (state.slots.length > maxPipelined) return undefined
  const admitted = overload.enter(tenant, bytes)
  if (typeof admitted === 'string') return admitted
  const slot: Slot = { admitted, overload, work: undefined }
  request[slotKey] = slot
  state.slots.push(slot)
  return undefined
}

function wrapHandlers(server: Server, shed: (request: IncomingMessage, response: ServerResponse) => boolean) {
  const handlers = server.listeners('request')
  server.removeAllListeners('request')
  server.on('request', (request, response) => {
    if (isBehindUpgrade(request, response)) return
    coalesceChunks(request)
    if (!shed(request, response)) for (const handle of handlers) handle.call(server, request, response)
  })
}

/** Limits the open sockets. A connection without a request has no tenant yet, so only this limit covers it. */
function limitSockets(server: Server, max: number) {
  let open = 0
  server.on('connection', (socket: Socket) => {
    open += 1
    socket.once('close', () => {
      open -= 1
    })
    if (open > max) socket.destroy()
  })
}

/** One report a second at most. */
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
    report({ refused, inFlight: overloads.reduce((sum, { total }) => sum + total.requests, 0) })
    refused = 0
  }, tickMs).unref()
  return {
    countRefusal: () => {
      refused += 1
    },
    stop: () => clearInterval(timer),
  }
}

/** The most bytes that kith holds of a request body at a time. A stream holds no more than a batch. */
function maxBodyBytesOf({ headers }: IncomingMessage, { bodyBytes, batchBytes }: Config['limits']): number {
  if (headers['transfer-encoding'] !== undefined) return bodyBytes
  const length = headers['content-length']
  return length === undefined ? 0 : Math.min(Number(length) || 0, batchBytes)
}
