import type { Socket } from 'node:net'
import type { Caller } from '../../auth/caller.ts'
import { requireScope } from '../../auth/scopes.ts'
import type { Config } from '../../config.ts'
import type { Lane } from '../../db/shares.ts'
import { fail } from '../../errors.ts'
import { type Bound, bind } from '../input/bind.ts'
import { parseJson } from '../input/json.ts'
import { createParameterReader } from '../input/parameters.ts'
import { readPreferences } from '../input/preferences.ts'
import { coerce } from '../input/query.ts'
import { trimAndCheck } from '../input/trim.ts'
import { compile } from '../input/validate.ts'
import type { ResponseMemory } from '../overload/response-memory.ts'
import { isVersioned } from './admission.ts'
import type { Endpoint, Exchange } from './exchange.ts'
import { idempotentHandler } from './idempotent-handler.ts'
import { explain, type Services } from './pipeline.ts'
import { traced } from './request-telemetry.ts'
import { type Call, type HandlerResult, honorsIdempotencyKey, type Route } from './route.ts'
import { pathsOf } from './route-precedence.ts'
import type { Router } from './router.ts'
import { sendResult } from './send-result.ts'
import { readChunks, requireLines } from './streams.ts'

/** The services that routes need. */
type RouteServices = Services & { responseMemory: ResponseMemory }

/**
 * Adds a route table to the router. The steps of a row are: authenticate · scope · rate · limits · bind · trim ·
 * validate · handle · envelope. Every path below `/v1` needs a token first, even if it does not exist, so that a client
 * without a token learns nothing.
 */
export function registerRoutes(router: Router, services: RouteServices, table: Route[]): void {
  for (const row of table) for (const path of pathsOf(row, table)) router.add(createEndpoint(row, path, services))
}

/**
 * Makes the endpoint for requests that no other endpoint takes: 405 if the path allows other methods, otherwise 404.
 */
export function createNotFoundEndpoint(services: Services, router: Router): Endpoint {
  const handle = () => {}
  return {
    method: 'GET',
    path: '',
    guard: async exchange => {
      const found = router.findAll(exchange.url)
      // The log and the metrics name the path. The row and its statuses belong to another method.
      if (found[0]) exchange.endpoint = { method: 'GET', path: found[0].endpoint.path, handle }
      if (isVersioned(exchange.url)) await authenticateUnrouted(services, exchange)
      if (found.length === 0)
        fail('not_found', 'There is no such address.', {
          details: [{ path: '', message: 'is not an address of this API' }],
        })
      const Allow = found.map(({ method }) => method).join(', ')
      fail('invalid_parameter', `This address allows only these methods: ${Allow}.`, {
        status: 405,
        headers: { Allow },
      })
    },
    handle,
  }
}

function createEndpoint(row: Route, path: string, services: RouteServices): Endpoint {
  const { config, rateLimiter } = services
  const schema = row.body ?? row.query
  const validate = schema && compile(schema)
  const checkItem = createItemChecker(row, config.limits)
  const { tracer } = services.instruments.observer
  const authenticateCaller = traced(tracer, 'authenticate', exchange => authenticate(services, exchange))
  const readCall = createCallReader(services, row, checkItem)
  const bindCall = traced(tracer, 'bind', exchange => {
    const call = readCall(exchange)
    if (validate) validate(call.body, call.boundFrom)
    return call
  })
  const setCaller = (exchange: Exchange, caller: Caller) => {
    exchange.caller = caller
    requireScope(caller, row.scope)
  }
  const guardLater = async (exchange: Exchange, caller: Caller | Promise<Caller>) => {
    setCaller(exchange, await caller)
    if (rateLimiter) exchange.headers(await rateLimiter.spend(exchange.caller!, budgetOf(row)))
    throwIfOverLimits(exchange, config, row)
  }
  return {
    method: row.method,
    path,
    row,
    streams: row.streams && row.item !== undefined,
    ...(row.bodyBytes !== undefined && { bodyBytes: row.bodyBytes }),
    guard: exchange => {
      const caller = authenticateCaller(exchange)
      if (caller instanceof Promise || rateLimiter) return guardLater(exchange, caller)
      setCaller(exchange, caller)
      return throwIfOverLimits(exchange, config, row)
    },
    handle: async exchange => {
      const call = bindCall(exchange)
      const key = exchange.request.headers['idempotency-key']
      const isKeyed = key !== undefined && honorsIdempotencyKey(row)
      const result = await (isKeyed ? idempotentHandler(row, call, key, sourceOf(exchange, call)) : row.handle(call))
      const { memory, limits } = call
      const isWrite = row.scope.endsWith(':write')
      const sending = sendResult(exchange, reduceToIdentifiers(result, row, call.caller), { memory, limits, isWrite })
      await sending?.catch(error => {
        if (!exchange.response.headersSent) throw error
        // The failed response has closed its connection, so this only logs the error.
        explain(exchange, error, services.logger)
      })
    },
  }
}

/**
 * Reduces an entity to its identifiers for a token that may write it but not read it. It runs after the handler,
 * because a response stored under an Idempotency-Key may have been for a token that may read.
 */
function reduceToIdentifiers(result: HandlerResult, { reveals }: Route, { scopes }: Caller): HandlerResult {
  if (!reveals || scopes.has(reveals.scope) || !('json' in result)) return result
  const entity = JSON.parse(result.json) as Record<string, unknown> | true
  if (entity === true) return result
  result.release?.()
  const { 'Preference-Applied': _, ...headers } = result.headers ?? {}
  const data = Object.fromEntries(reveals.identifiers.map(name => [name, entity[name]]))
  return { status: result.status, headers, data }
}

const budgetOf = ({ scope }: Route) => (scope.endsWith(':write') ? 'write' : 'read')

/** The nesting level of an element within the body of a batch. */
const itemDepth = 3

type CheckItem = (value: unknown, boundFrom: Call['boundFrom']) => Record<string, unknown>

function createItemChecker({ item }: Route, limits: Config['limits']): CheckItem {
  const validate = item && compile(item)
  return (value, boundFrom) => {
    if (!validate) throw new Error('the route has no elements')
    const coerced = boundFrom === 'query' ? coerce(item, value) : value
    validate(coerced, boundFrom)
    return trimAndCheck(coerced as Record<string, unknown>, limits)
  }
}

/** The raw body or query string that the request was bound from. */
function sourceOf({ body, request }: Exchange, { boundFrom }: Call): Buffer | string {
  return boundFrom === 'body' ? body! : (request.url ?? '').split('?').slice(1).join('?')
}

/** The result is synchronous for a cached token and a promise for a new one. */
function authenticate({ authenticator }: Services, { request, deadline }: Exchange): Caller | Promise<Caller> {
  return authenticator.authenticate(authorizationsOf(request), deadline.signal)
}

/** Authenticates a request for an unknown path or method. It counts as a read. */
async function authenticateUnrouted(services: Services, exchange: Exchange): Promise<void> {
  const caller = await authenticate(services, exchange)
  exchange.caller = caller
  if (services.rateLimiter) exchange.headers(await services.rateLimiter.spend(caller, 'read'))
}

const authorization = 'authorization'

/** Returns every Authorization header. Node's `headers` has only the first. */
export function authorizationsOf({ rawHeaders: headers, socket }: Exchange['request']): string[] {
  const found: string[] = []
  for (let index = 0; index < headers.length; index += 2) {
    const name = headers[index]!
    if (name.length === authorization.length && name.toLowerCase() === authorization)
      found.push(reusePrevious(socket, headers[index + 1]!))
  }
  return found
}

const previousAuthorization = Symbol('authorization')

/**
 * Returns the string object of the connection's previous request if the header is equal. V8 has its hash already, which
 * saves 1 µs.
 */
function reusePrevious(socket: Socket & { [previousAuthorization]?: string }, text: string): string {
  if (socket[previousAuthorization] !== text) socket[previousAuthorization] = text
  return socket[previousAuthorization]!
}

function throwIfOverLimits({ request: { headers, url = '' } }: Exchange, { limits }: Config, { streams, item }: Route) {
  // A character has at most three bytes, so most URLs need no counting.
  if (url.length * 3 > limits.urlBytes && Buffer.byteLength(url) > limits.urlBytes)
    fail('invalid_parameter', `The path and the query may have at most ${limits.urlBytes} bytes.`, { status: 414 })
  if (isOther(headers['content-encoding'], 'identity'))
    fail('invalid_parameter', 'A body with a Content-Encoding is not supported. Send it without compression.', {
      status: 415,
    })
  if (isOther(headers['transfer-encoding'], 'chunked'))
    fail('invalid_parameter', 'The only supported Transfer-Encoding is chunked.', { status: 415 })
  if (streams && item) requireLines(headers['content-type'])
}

const isOther = (coding: string | undefined, known: string) =>
  coding !== undefined && coding.trim().toLowerCase() !== known

function createCallReader(services: RouteServices, row: Route, checkItem: CheckItem): (exchange: Exchange) => Call {
  const { limits } = services.config
  const readParameters = createParameterReader(row)
  const lane = laneOf(row)
  // An element of a batch is three levels deep and may nest as deeply as a body. Its strings are checked with the
  // element.
  const bindLimits =
    row.item && row.body
      ? { ...limits, jsonDepth: limits.jsonDepth + itemDepth, stringBytes: limits.bodyBytes }
      : limits
  const source = row.body ? { ...row, body: row.body } : row.query && { body: row.query, hasDefaults: true }
  return exchange => {
    const { url, body } = exchange
    const { headers } = exchange.request
    const queryAt = url.indexOf('?')
    const [path, queryString] = queryAt === -1 ? [url, ''] : [url.slice(0, queryAt), url.slice(queryAt + 1)]
    const params = readParameters(path)
    const input = { contentType: headers['content-type'], body: row.body && body, queryString }
    const bound = source && (row.body || queryString !== '') ? bind(input, source, bindLimits) : unbound()
    return {
      db: services.db.shareOf(exchange.caller!.organization.id, lane),
      limits,
      caller: exchange.caller!,
      params,
      body: bound.value,
      boundFrom: bound.boundFrom,
      bytes: bound.bytes,
      preferences: readPreferences(headers['if-match'], headers.prefer as string | undefined),
      checkItem: value => checkItem(value, bound.boundFrom),
      ...(row.streams ? streamOf(services, exchange, checkItem) : noStream),
      request_id: exchange.id,
      memory: memoryOf(services, exchange),
      within: exchange.deadline.within,
      signal: exchange.deadline.signal,
    }
  }
}

/**
 * The lane of an endpoint's database use. A GET reads one entity or definitions, and a stream uses the pool only to
 * start. Any other read is a page.
 */
function laneOf({ method, scope, streams }: Route): Lane {
  if (scope.endsWith(':write')) return 'writes'
  return method === 'GET' || streams ? 'reads' : 'pages'
}

const unbound = (): Bound => ({ value: {}, boundFrom: 'query', bytes: 0 })

const memoryOf = ({ responseMemory }: RouteServices, { caller, deadline }: Exchange): Call['memory'] => {
  const organization_id = caller!.organization.id
  return {
    take: bytes => responseMemory.take(organization_id, bytes),
    wait: bytes => responseMemory.wait(organization_id, bytes, deadline.signal),
  }
}

type Streaming = Pick<Call, 'chunks' | 'checkLine' | 'explain' | 'draining'>

function streamOf(
  { config: { limits }, drain, logger }: Services,
  exchange: Exchange,
  checkItem: CheckItem,
): Streaming {
  return {
    chunks: readChunks(exchange.request, limits.requestMs),
    checkLine: line => checkItem(parseJson(line, limits), 'body'),
    explain: error => explain(exchange, error, logger),
    draining: () => !drain.isAccepting(),
  }
}

const notStreaming = () => {
  throw new Error('the route does not stream')
}
const noStream = {
  chunks: { [Symbol.asyncIterator]: notStreaming },
  checkLine: notStreaming,
  explain: notStreaming,
  draining: notStreaming,
} as Streaming
