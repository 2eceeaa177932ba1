import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Authenticator } from '../../auth/authenticator.ts'
import { networkOf } from '../../auth/login-throttle.ts'
import type { Config } from '../../process/config.ts'
import { FairPool } from '../../process/fair-pool.ts'
import type { Observer, Overload } from '../../process/observer.ts'
import { createRefusal, Fault, type Refusal, retryInASecond } from '../../values/errors.ts'
import { drainUnreadBody, hasBody } from '../input/body.ts'
import { readSessionCookies } from '../input/browser.ts'
import { clientAddress, isVersioned, requestId } from '../input/request-head.ts'
import { type Admission, jsonType, type Leave } from '../pipeline/exchange.ts'
import { failure } from '../pipeline/reply.ts'
import { type Connection, maxPipelined } from '../server/connections.ts'
import { securityHeaders } from '../server/headers.ts'

/** Sheds load before a request costs anything. */
export type Gate = ReturnType<typeof createGate>

type GateOptions = {
  config: Pick<Config, 'limits' | 'tls' | 'corsOrigins' | 'behindProxy' | 'publicUrl'>
  authenticator: Pick<Authenticator, 'recall' | 'sessions'>
  /** Whether the next response closes its connection. */
  shouldClose: () => boolean
  observer: Pick<Observer, 'overloaded'>
  /** Called at most once a second with the number of requests refused since the last call, and of those in flight. */
  report: (counts: { refused: number; inFlight: number }) => void
}

/**
 * The maximum number of concurrent requests outside `/v1` in a process, apart from those below it. One network gets at
 * most half of them.
 */
const maxUnversioned = 128
/**
 * The maximum number of bodies outside `/v1` that a process waits for at a time. One network gets at most half of them.
 * A body is at most the form of a page, 23 KiB by default, so all of them take 92 MiB.
 */
const maxAwaitedBodies = 4_096

/** Refuses a request that may be admitted a moment later. */
const refuseForNow = (message: string): Refusal => createRefusal('operation_failed', message, retryInASecond)

const overloaded = refuseForNow('The service is overloaded. Retry after 1 second.')
const tooManyPipelined = refuseForNow(
  `A connection may have at most ${maxPipelined} requests under way. Open a new connection and retry after 1 second.`,
)
export const draining = refuseForNow('The service is shutting down. Retry after 1 second.')

/**
 * Probes and preflights are always answered. A load balancer removes a process that refuses its probes, and both cost
 * as little as a refusal.
 */
const isProbe = (url: string) => /^\/(healthz|readyz)([?#]|$)/.test(url)

/** The owner of a request: an organization's id, a client's network, or undefined if the token is not cached yet. */
type Tenant = number | string | undefined

type Refused = { reason: Overload; refusal: Refusal; closing: boolean }

const refused = (reason: Overload, refusal = overloaded, closing = false): Refused => ({ reason, refusal, closing })

const pastLimit = refused('connection', tooManyPipelined, true)
// A client that pipelines past an unread 503 gets one more 503, then the connection closes.
const pastRefusal = refused('connection', overloaded, true)
const pastDrain = refused('draining', draining)

/** A lone organization gets half, so another one always finds room. */
const poolOf = (max: number) => new FairPool<Tenant>({ max, leavesRoom: true })

/** Creates the gate, which either admits a request and counts it until it ends, or refuses it. */
export function createGate(options: GateOptions) {
  const { config, shouldClose, observer, report } = options
  const requests = poolOf(config.limits.inFlight)
  const unversioned = poolOf(maxUnversioned)
  const reports = createReports(count => report({ refused: count, inFlight: requests.held + unversioned.held }))
  const noteRefusal = (reason: Overload) => {
    observer.overloaded(reason)
    if (reason !== 'draining') reports.count()
  }
  const admitVersioned = createVersionedAdmission(options, requests)
  const admitUnversioned = createUnversionedAdmission(options, unversioned, noteRefusal)
  const sendRefusal = createRefusalSender(config)
  const queueRefusal = createRefusalQueue()

  function decide(connection: Connection, request: IncomingMessage, url: string): Admission | Refused {
    if (connection.isAtLimit()) return pastLimit
    const isBelowV1 = isVersioned(url)
    if (request.method === 'OPTIONS' || (!isBelowV1 && isProbe(url))) return uncounted
    if (connection.pendingRefusals > 0) return pastRefusal
    if (connection.isRefusedByDrain && isBelowV1) return pastDrain
    return isBelowV1 ? admitVersioned(connection, request) : admitUnversioned(request)
  }

  return {
    /**
     * Admits a request for `url`, a normalized request target. An undefined result means that the request is refused
     * and must not be started.
     */
    admit: (
      connection: Connection,
      request: IncomingMessage,
      response: ServerResponse,
      url: string,
    ): Admission | undefined => {
      const decision = decide(connection, request, url)
      if ('leave' in decision) return decision
      const { reason, refusal, closing } = decision
      noteRefusal(reason)
      connection.pendingRefusals += 1
      if (closing) connection.stopRequests()
      if (reason === 'connection') request.socket.pause()
      queueRefusal(() => {
        connection.pendingRefusals -= 1
        if (connection.socket.destroyed) return
        if (!request.complete) drainUnreadBody(request, config.limits)
        const isLast = closing || (shouldClose() && connection.mayEndWith(request))
        if (connection.newest === request) connection.newest = undefined
        sendRefusal(request, response, refusal, isLast)
      })
      return undefined
    },
    /** The number of requests in flight below `/v1`. */
    inFlight: () => requests.held,
    /** Must be called when the server has closed. */
    stop: reports.stop,
  }
}

const uncounted: Admission = { leave: () => {} }

/**
 * A refusal takes 40 µs. A request of another organization takes several event-loop turns, and waits for the refusals
 * of each.
 */
const minRefusalsPerTurn = 32

/**
 * Returns a function that queues a refusal. A connection has two at most. Refusals are sent in order of arrival from
 * the end of the event-loop turn, because kith has then read everything that arrived together, such as a request and
 * its body. Each turn sends 32 of them, or an eighth of the queue if that is more.
 */
function createRefusalQueue(): (send: () => void) => void {
  const queue: (() => void)[] = []
  const sendSome = () => {
    for (let left = Math.max(minRefusalsPerTurn, queue.length >> 3); left > 0 && queue.length > 0; left -= 1)
      queue.shift()!()
    if (queue.length > 0) setImmediate(sendSome)
  }
  return send => {
    if (queue.push(send) === 1) setImmediate(sendSome)
  }
}

/** Counts refusals, and reports their number once a second. */
function createReports(report: (refused: number) => void) {
  let refused = 0
  let timer: NodeJS.Timeout | undefined
  const send = () => {
    report(refused)
    refused = 0
    timer = undefined
  }
  return {
    count: () => {
      refused += 1
      timer ??= setTimeout(send, 1_000).unref()
    },
    stop: () => clearTimeout(timer),
  }
}

/** Returns a function that admits a request below `/v1`, and its connection, within the share of its organization. */
function createVersionedAdmission({ config, authenticator }: GateOptions, requests: FairPool<Tenant>) {
  const { limits } = config
  const bodies = poolOf(limits.inFlightBytes)
  const connections = poolOf(limits.connections)
  const recallSession = (request: IncomingMessage): number | undefined => {
    const [token] = readSessionCookies(request, config)
    return token === undefined ? undefined : authenticator.sessions.cachedOrganizationId(token)
  }
  return (connection: Connection, request: IncomingMessage): Admission | Refused => {
    const { headers } = request
    const { authorization } = headers
    const recalledToken = authorization === undefined ? undefined : authenticator.recall(authorization)
    const tenant = authorization === undefined ? recallSession(request) : recalledToken?.caller.organization.id
    if (!connection.isCounted) {
      const leave = connections.tryTake(tenant)
      if (!leave) return refused('connections', overloaded, true)
      connection.isCounted = true
      connection.socket.once('close', leave)
    }
    const leave = requests.tryTake(tenant)
    if (!leave) return refused('requests')
    const bytes = maxBodyBytesOf(headers, limits)
    if (bytes === 0) return { leave, recalledToken }
    const release = bodies.tryTake(tenant, bytes)
    if (!release) {
      leave()
      return refused('bytes')
    }
    const leaveBoth = () => {
      leave()
      release()
    }
    return { leave: leaveBoth, recalledToken }
  }
}

/**
 * Returns a function that admits a request outside `/v1` within the share of its network. A request takes no slot while
 * its client still sends the body. Otherwise slow clients would keep others from signing in.
 */
function createUnversionedAdmission(
  { config }: GateOptions,
  requests: FairPool<Tenant>,
  noteRefusal: (reason: Overload) => void,
) {
  const awaited = poolOf(maxAwaitedBodies)
  const enter = (network: Tenant): Leave | undefined => {
    const leave = requests.tryTake(network)
    // A slot is released in the turn after its response was sent. Otherwise 24,000 responses of 160 kB were each sent
    // in the turn of their request, one after the other, which took 20 seconds.
    return leave && (() => void setImmediate(leave))
  }
  return (request: IncomingMessage): Admission | Refused => {
    const network = networkOf(clientAddress(request, config.behindProxy))
    if (!hasBody(request)) {
      const leave = enter(network)
      return leave ? { leave } : refused('requests')
    }
    if (!requests.hasRoom(network)) return refused('requests')
    const endWait = awaited.tryTake(network)
    if (!endWait) return refused('connections', overloaded, true)
    return {
      leave: endWait,
      enter: () => {
        endWait()
        const leave = enter(network)
        if (leave) return leave
        noteRefusal('requests')
        throw new Fault(overloaded)
      },
    }
  }
}

/**
 * The maximum number of bytes that kith holds of a request body at a time. A stream holds at most the size of a batch.
 */
function maxBodyBytesOf(headers: IncomingHttpHeaders, { bodyBytes, batchBytes }: Config['limits']): number {
  if (headers['transfer-encoding'] !== undefined) return bodyBytes
  const length = headers['content-length']
  return length === undefined ? 0 : Math.min(Number(length) || 0, batchBytes)
}

/**
 * Returns a function that answers a request with a refusal. `closing` closes the connection after the response. A
 * refused request has no exchange, and so neither deadline nor log line.
 */
function createRefusalSender(config: GateOptions['config']) {
  const origins = new Set(config.corsOrigins)
  const constant = securityHeaders(config)
  return ({ headers }: IncomingMessage, response: ServerResponse, refusal: Refusal, closing: boolean): void => {
    const id = requestId(headers['x-request-id'])
    const body = failure(refusal, id)
    const { origin = '' } = headers
    const lines = Object.entries({
      ...constant,
      ...refusal.headers,
      'Content-Type': jsonType,
      'X-Request-Id': id,
      'Content-Length': `${body.length}`,
      ...(closing && { Connection: 'close' }),
      ...(origins.has(origin) && {
        'Access-Control-Allow-Origin': origin,
        Vary: 'Origin',
        'Access-Control-Expose-Headers': 'Retry-After',
      }),
    })
    response.writeHead(refusal.status, lines.flat()).end(body, 'latin1')
  }
}
