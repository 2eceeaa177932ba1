import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { networkOf } from '../../auth/login-throttle.ts'
import type { Config } from '../../config.ts'
import { Fault } from '../../errors.ts'
import { utilizationSinceLastCall } from '../../event-loop.ts'
import type { Observer } from '../../observer.ts'
import { hasBody } from '../input/body.ts'
import { readSessionCookies } from '../input/session-cookie.ts'
import { isVersioned } from '../pipeline/begin-request.ts'
import type { Admission } from '../pipeline/exchange.ts'
import type { Connection } from '../server/connection.ts'
import { clientAddress, type Gate } from '../server/server.ts'
import { isAtLimit } from './connection-limits.ts'
import { createLoadShedder, prepareRefusal } from './load-shedder.ts'
import { createOverload, type Overload, type Reason, tickMs } from './overload.ts'
import { draining, overloaded, tooManyPipelined } from './refusals.ts'

type GateOptions = {
  config: Pick<Config, 'limits' | 'tls' | 'corsOrigins' | 'behindProxy'>
  /** Returns the organization of an Authorization header from the cache, without any I/O. */
  recall: (authorization: string) => number | undefined
  /** Returns the organization of a session's cookie from the cache, without any I/O. */
  recallSession: (token: string) => number | undefined
  /** Whether the next response closes its connection. */
  shouldClose: () => boolean
  observer: Pick<Observer, 'overloaded'>
  /** Called at most once a second with the requests refused since the last call, and the requests under way. */
  report: (counts: { refused: number; inFlight: number }) => void
}

/** Requests outside `/v1` that a process runs at a time, apart from those below it. One network has at most half of them. */
const maxUnversioned = 128
/**
 * Bodies outside `/v1` that a process awaits at a time. One network has at most half of them. A body is at most the form of a
 * page, 23 KiB by default, so all of them take 92 MiB.
 */
const maxAwaitedBodies = 4_096

/**
 * Probes and preflights are always answered. A balancer removes a process that refuses its probes, and both cost as
 * little as a refusal.
 */
const isProbe = (url: string) => /^\/(healthz|readyz)([?#]|$)/.test(url)

/** Why the gate refuses a request, and the response. `closing` closes the connection after it. */
type Refused = { reason: Reason | 'connection' | 'draining'; send: ReturnType<typeof prepareRefusal>; closing: boolean }

/** Creates the gate: a request is either admitted, and counted until it is over, or refused. */
export function createGate(options: GateOptions): Gate {
  const { config, shouldClose, observer, report } = options
  const { inFlight: requests, inFlightBytes: bytes, connections } = config.limits
  const overload = createOverload({ requests, bytes, connections })
  const unversioned = createUnversionedOverload()
  const clock = startClock([overload, unversioned], report)
  const reportRefusal = (reason: Refused['reason']) => {
    observer.overloaded(reason)
    if (reason !== 'draining') clock.countRefusal()
  }
  const admitVersioned = createVersionedAdmission(options, overload)
  const admitUnversioned = createUnversionedAdmission(options, unversioned, reportRefusal)
  const sendRefusal = createLoadShedder({ limits: config.limits, shouldClose })
  const sendOverloaded = prepareRefusal(overloaded, config)
  const pastLimit: Refused = { reason: 'connection', send: prepareRefusal(tooManyPipelined, config), closing: true }
  // A client that pipelines past an unread 503 gets one more 503, then the connection closes.
  const pastRefusal: Refused = { reason: 'connection', send: sendOverloaded, closing: true }
  const pastDrain: Refused = { reason: 'draining', send: prepareRefusal(draining, config), closing: false }

  function decide(connection: Connection, request: IncomingMessage, url: string): Admission | Refused {
    if (isAtLimit(connection)) return pastLimit
    const isBelowV1 = isVersioned(url)
    if (request.method === 'OPTIONS' || (!isBelowV1 && isProbe(url))) return uncounted
    if (connection.pendingRefusals > 0) return pastRefusal
    if (connection.isRefusedByDrain && isBelowV1) return pastDrain
    const admitted = isBelowV1 ? admitVersioned(connection, request) : admitUnversioned(request)
    if (typeof admitted !== 'string') return admitted
    return { reason: admitted, send: sendOverloaded, closing: admitted === 'connections' }
  }

  return {
    admit: (connection, request, response, url) => {
      const decision = decide(connection, request, url)
      if ('leave' in decision) return decision
      reportRefusal(decision.reason)
      sendRefusal({ connection, request, response, ...decision })
      if (decision.reason === 'connection') request.socket.pause()
      return undefined
    },
    inFlight: () => overload.held().requests,
    stop: clock.stop,
  }
}

const uncounted: Admission = { leave: () => {} }

/** Returns a function that admits a request below `/v1`, and its connection, within the share of its organization. */
function createVersionedAdmission({ config: { limits }, recall, recallSession }: GateOptions, overload: Overload) {
  const recallTenant = ({ authorization, cookie }: IncomingHttpHeaders): number | undefined => {
    if (authorization !== undefined) return recall(authorization)
    const [token] = readSessionCookies(cookie)
    return token === undefined ? undefined : recallSession(token)
  }
  /** Admits the connection, and notes the organization of the request. */
  const enterConnection = (connection: Connection, headers: IncomingHttpHeaders): Reason | undefined => {
    const credential = headers.authorization ?? headers.cookie
    if (connection.tenant !== undefined && connection.credential === credential) return undefined
    const tenant = recallTenant(headers)
    if (!connection.isCounted) {
      const leave = overload.addConnection(tenant)
      if (typeof leave === 'string') return leave
      connection.isCounted = true
      connection.socket.once('close', leave)
    }
    connection.credential = credential
    connection.tenant = tenant
    return undefined
  }
  return (connection: Connection, { headers }: IncomingMessage): Admission | Reason => {
    const reason = enterConnection(connection, headers)
    if (reason) return reason
    const leave = overload.enter(connection.tenant, maxBodyBytesOf(headers, limits))
    return typeof leave === 'string' ? leave : { leave }
  }
}

/**
 * Returns a function that admits a request outside `/v1` within the share of its network. A request whose client still sends the body
 * takes no slot: a slow client would keep others from signing in.
 */
function createUnversionedAdmission(
  { config }: GateOptions,
  unversioned: Overload,
  reportRefusal: (reason: Reason) => void,
) {
  return (request: IncomingMessage): Admission | Reason => {
    const network = networkOf(clientAddress(request, config.behindProxy))
    if (!hasBody(request)) {
      const leave = unversioned.enter(network, 0)
      return typeof leave === 'string' ? leave : { leave }
    }
    const endWait = unversioned.shed(network, 0) ?? unversioned.addConnection(network)
    if (typeof endWait === 'string') return endWait
    return {
      leave: endWait,
      enter: () => {
        endWait()
        const leave = unversioned.enter(network, 0)
        if (typeof leave !== 'string') return leave
        reportRefusal(leave)
        throw new Fault(overloaded)
      },
    }
  }
}

/**
 * The limit of requests outside `/v1`. A slot becomes free in the event-loop turn after its response was sent.
 * Otherwise 24,000 responses of 160 kB were each sent in the turn of their request, one after the other, which took 20
 * seconds.
 */
function createUnversionedOverload(): Overload {
  const overload = createOverload({ requests: maxUnversioned, bytes: Infinity, connections: maxAwaitedBodies })
  return {
    ...overload,
    enter: (tenant, bytes) => {
      const leave = overload.enter(tenant, bytes)
      return typeof leave === 'string' ? leave : () => void setImmediate(leave)
    },
  }
}

/** One report a second at most. */
const reportTicks = 1_000 / tickMs

function startClock(overloads: Overload[], report: GateOptions['report']) {
  let ticks = 0
  let refused = 0
  const measureUtilization = utilizationSinceLastCall()
  const timer = setInterval(() => {
    const utilization = measureUtilization()
    for (const overload of overloads) overload.tick(utilization)
    ticks += 1
    if (ticks % reportTicks > 0 || refused === 0) return
    report({ refused, inFlight: overloads.reduce((sum, overload) => sum + overload.held().requests, 0) })
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
function maxBodyBytesOf(headers: IncomingHttpHeaders, { bodyBytes, batchBytes }: Config['limits']): number {
  if (headers['transfer-encoding'] !== undefined) return bodyBytes
  const length = headers['content-length']
  return length === undefined ? 0 : Math.min(Number(length) || 0, batchBytes)
}
