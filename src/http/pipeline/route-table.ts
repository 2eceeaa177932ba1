import type { IncomingHttpHeaders } from 'node:http'
import type { TSchema } from 'typebox'
import type { Caller } from '../../auth/caller.ts'
import type { Config, Limits } from '../../config.ts'
import { refuse } from '../../errors.ts'
import type { FairPool } from '../../fair-pool.ts'
import { isWriting, requireScope } from '../../scopes.ts'
import { type Bound, bind, bindLarge, bindValue, isLarge, type RawInput } from '../input/bind.ts'
import { takeDryRun, throwInvalidDryRun, throwKeyedDryRun } from '../input/dry-run.ts'
import { parseJson } from '../input/json.ts'
import { createParameterReader } from '../input/parameters.ts'
import { readPreferences } from '../input/preferences.ts'
import { compile } from '../input/validate.ts'
import { authenticate } from './authenticate.ts'
import { isVersioned } from './begin-request.ts'
import type { Endpoint, Exchange, Handle } from './exchange.ts'
import { followingOf } from './following.ts'
import { idempotentHandler } from './idempotent-handler.ts'
import { laneOf } from './lane.ts'
import { explain, type Services } from './pipeline.ts'
import { createReadHandler, throwReaderOnly } from './read-handler.ts'
import { traced } from './request-telemetry.ts'
import {
  type Call,
  dryRunSupport,
  type HandlerResult,
  honorsIdempotencyKey,
  type Route,
  type StreamingCall,
  type StreamState,
  sequenceHeader,
} from './route.ts'
import { pathsOf } from './route-precedence.ts'
import type { Router } from './router.ts'
import { sendResult } from './send-result.ts'
import { readChunks, requireLines } from './streams.ts'

/** The services that routes need. */
type RouteServices = Services & { responseMemory: FairPool }

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
  return {
    method: 'GET',
    path: '',
    guard: async exchange => {
      const found = router.findAll(exchange.url)
      // The log and the metrics name the path, even if only other methods have it.
      exchange.route = found[0]?.endpoint.path
      if (isVersioned(exchange.url)) await authenticateUnrouted(services, exchange)
      if (found.length === 0)
        refuse('not_found', 'There is no such address.', {
          details: [{ path: '', message: 'is not an address of this API' }],
        })
      const Allow = found.map(({ method }) => method).join(', ')
      return refuse('invalid_parameter', `This address allows only these methods: ${Allow}.`, {
        status: 405,
        headers: { Allow },
      })
    },
  }
}

function createEndpoint(row: Route, path: string, services: RouteServices): Endpoint {
  const { config, rateLimiter, logger } = services
  const { scope, method } = row
  const { tracer } = services.instruments.observer
  const authenticateCaller = traced(tracer, 'authenticate', exchange => authenticate(services, exchange))
  const readCall = traced(tracer, 'bind', createCallReader(services, row))
  const isWrite = isWriting(scope, method)
  const ownHandler = createHandler(services, row)
  const handle = isWrite ? ownHandler : createReadHandler(services.reads, row, ownHandler)
  const isKeyed = honorsIdempotencyKey(row)
  const answer = async (exchange: Exchange, caller: Caller, body: Buffer | undefined) => {
    const reading = readCall(exchange, caller, body)
    // A small body is not awaited: each turn of the microtask queue would cost a microsecond.
    const call = reading instanceof Promise ? await reading : reading
    const key = isKeyed ? exchange.request.headers['idempotency-key'] : undefined
    const { memory, limits, written, source } = call
    const result = await (key === undefined
      ? handle(call, exchange)
      : idempotentHandler(row, call, {
          key,
          source,
          handle: keyed => handle(keyed, exchange),
        }))
    if (key === undefined && written.sequence > 0) exchange.header(sequenceHeader, `${written.sequence}`)
    const sending = sendResult(exchange, reduceToIdentifiers(result, row, caller), {
      memory,
      limits,
      isWrite: isWrite && !call.isDryRun,
    })
    await sending?.catch(error => {
      if (!exchange.response.headersSent) throw error
      // The failed response has closed its connection, so this only logs the error.
      explain(exchange, error, logger)
    })
  }
  const accept = (exchange: Exchange, caller: Caller): Handle => {
    if (isWrite && services.reads.isReader) throwReaderOnly()
    throwIfOverLimits(exchange, config, row)
    exchange.isRead = !isWrite
    return (_, body) => answer(exchange, caller, body)
  }
  const authorize = (exchange: Exchange, caller: Caller) => {
    exchange.organization = caller.organization.key
    requireScope(caller, scope)
  }
  const guardLater = async (exchange: Exchange, authenticating: Caller | Promise<Caller>) => {
    const caller = await authenticating
    authorize(exchange, caller)
    if (rateLimiter) exchange.headers(await rateLimiter.spend(caller, isWrite ? 'write' : 'read'))
    return accept(exchange, caller)
  }
  return {
    method: row.method,
    path,
    row,
    streams: row.line !== undefined,
    ...(row.bodyBytes !== undefined && { bodyBytes: row.bodyBytes }),
    guard: exchange => {
      const caller = authenticateCaller(exchange)
      if (caller instanceof Promise || rateLimiter) return guardLater(exchange, caller)
      authorize(exchange, caller)
      return accept(exchange, caller)
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

/** Returns a function that runs the handler of a row, with the parts of a call that its kind of row has. */
function createHandler(
  services: RouteServices,
  row: Route,
): (call: Call, exchange: Exchange) => Promise<HandlerResult> {
  const { limits } = services.config
  if (row.line) {
    const checkLine = createItemChecker(row.line, limits)
    return (call, exchange) => row.handle({ ...call, ...streamOf(services, exchange, checkLine) })
  }
  if (row.item) {
    const checkItem = createItemChecker(row.item, limits)
    return call => row.handle({ ...call, checkItem: value => checkItem(value, call.boundFrom) })
  }
  if (row.follows)
    return (call, exchange) =>
      row.handle({
        ...call,
        ...streamStateOf(services, exchange),
        following: followingOf(exchange, row, () => authenticate(services, exchange)),
      })
  return call => row.handle(call)
}

/** The nesting level of an element within the body of a batch. */
const itemDepth = 3

type CheckItem = (value: unknown, boundFrom: Call['boundFrom']) => Record<string, unknown>

function createItemChecker(item: TSchema, limits: Limits): CheckItem {
  const validate = compileLater(item)
  return (value, boundFrom) => {
    const bound = bindValue(value, item, boundFrom, limits)
    validate(bound, boundFrom)
    return bound
  }
}

/** Compiles the schema at the first call. A start that compiled the schemas of all rows would take 0.15 s longer. */
function compileLater(schema: TSchema): ReturnType<typeof compile> {
  let validate: ReturnType<typeof compile> | undefined
  return (value, boundFrom) => {
    validate ??= compile(schema)
    validate(value, boundFrom)
  }
}

/** Authenticates a request for an unknown path or method. It counts as a read. */
async function authenticateUnrouted(services: Services, exchange: Exchange): Promise<void> {
  const caller = await authenticate(services, exchange)
  exchange.organization = caller.organization.key
  if (services.rateLimiter) exchange.headers(await services.rateLimiter.spend(caller, 'read'))
}

function throwIfOverLimits({ request: { headers, url = '' } }: Exchange, { limits }: Config, { line }: Route) {
  // A character has at most three bytes, so most URLs need no counting.
  if (url.length * 3 > limits.urlBytes && Buffer.byteLength(url) > limits.urlBytes)
    refuse('invalid_parameter', `The path and the query may have at most ${limits.urlBytes} bytes.`, { status: 414 })
  if (isOther(headers['content-encoding'], 'identity'))
    refuse('invalid_parameter', 'A body with a Content-Encoding is not supported. Send it without compression.', {
      status: 415,
    })
  if (isOther(headers['transfer-encoding'], 'chunked'))
    refuse('invalid_parameter', 'The only supported Transfer-Encoding is chunked.', { status: 415 })
  if (line) requireLines(headers['content-type'])
}

const isOther = (coding: string | undefined, known: string) =>
  coding !== undefined && coding.trim().toLowerCase() !== known

/** A call with the raw body or query string that it was bound from. */
type BoundCall = Call & { source: Buffer | string }

type CallReader = (exchange: Exchange, caller: Caller, body: Buffer | undefined) => BoundCall | Promise<BoundCall>

function createCallReader(services: RouteServices, row: Route): CallReader {
  const { limits } = services.config
  const readParameters = createParameterReader(row)
  const lane = laneOf(row)
  // An element of a batch is three levels deep and may nest as deeply as a body. Its strings are checked with the
  // element.
  const bindLimits = row.item
    ? { ...limits, jsonDepth: limits.jsonDepth + itemDepth, stringBytes: limits.bodyBytes }
    : limits
  const source = row.body ? { ...row, body: row.body } : row.query && { body: row.query, hasDefaults: true }
  const validate = source && compileLater(source.body)
  const readDryRun = createDryRunReader(row)
  const { isBodyMember } = dryRunSupport(row)
  const bindInput = (input: RawInput): Bound | Promise<Bound> => {
    if (!source || (!row.body && input.queryString === '')) return unbound()
    return isLarge(input) ? bindLarge(input, source, bindLimits) : bind(input, source, bindLimits)
  }
  return (exchange, caller, body) => {
    const { url, deadline } = exchange
    const { headers } = exchange.request
    const queryAt = url.indexOf('?')
    const [path, query] = queryAt === -1 ? [url, ''] : [url.slice(0, queryAt), url.slice(queryAt + 1)]
    const params = readParameters(path)
    const { isDryRun, isMember, queryString } = readDryRun(query, headers)
    const callOf = (bound: Bound): BoundCall => {
      if (isMember) bound.value.dry_run = true
      const preferences = readPreferences(headers['if-match'], headers.prefer as string | undefined)
      if (validate) validate(bound.value, bound.boundFrom)
      if (isBodyMember && bound.value.dry_run === true && headers['idempotency-key'] !== undefined) throwKeyedDryRun()
      return {
        db: services.db.shareOf(caller.organization.id, lane),
        limits,
        caller,
        params,
        body: bound.value,
        boundFrom: bound.boundFrom,
        source: bound.source,
        bytes: bound.source.length,
        preferences,
        isDryRun,
        isReader: false,
        written: { sequence: 0 },
        request_id: exchange.id,
        localUrl: () => localUrlOf(exchange, services.config),
        memory: memoryOf(services, exchange, caller),
        within: deadline.within,
        signal: deadline.signal,
      }
    }
    const binding = bindInput({ contentType: headers['content-type'], body: row.body && body, queryString })
    return binding instanceof Promise ? binding.then(callOf) : callOf(binding)
  }
}

type DryRunRead = { isDryRun: boolean; isMember?: boolean; queryString: string }

/**
 * Returns a function that reads `dry_run` of the query of a write. `isMember` says that it belongs to the body. A write never ignores
 * the parameter: it throws a Fault of 400 if it has no dry run, or if the request has an Idempotency-Key.
 */
function createDryRunReader(row: Route): (query: string, headers: IncomingHttpHeaders) => DryRunRead {
  const { isAnswered, isBodyMember, isQueryMember } = dryRunSupport(row)
  if (!isWriting(row.scope, row.method) || isQueryMember) return queryString => ({ isDryRun: false, queryString })
  return (query, headers) => {
    if (query === '') return { isDryRun: false, queryString: query }
    const { isDryRun, queryString } = takeDryRun(query)
    if (isDryRun && !isAnswered && !isBodyMember)
      throwInvalidDryRun('this endpoint has no dry run. Nothing was written; send the request without the parameter')
    if (isDryRun && headers['idempotency-key'] !== undefined) throwKeyedDryRun()
    return isBodyMember ? { isDryRun: false, isMember: isDryRun, queryString: query } : { isDryRun, queryString }
  }
}

function localUrlOf({ request: { socket } }: Exchange, { tls }: Config): string {
  const { localAddress = '0.0.0.0', localPort = 0 } = socket
  // An IPv6 socket shows the address of an IPv4 client as an IPv4-mapped one.
  const address = localAddress.replace(/^::ffff:(?=.*\.)/, '')
  return `${tls ? 'https' : 'http'}://${address.includes(':') ? `[${address}]` : address}:${localPort}`
}

const unbound = (): Bound => ({ value: {}, boundFrom: 'query', source: '' })

const memoryOf = (
  { responseMemory }: RouteServices,
  { deadline }: Exchange,
  { organization }: Caller,
): Call['memory'] => ({
  tryTake: bytes => responseMemory.tryTake(organization.id, bytes),
  take: bytes => responseMemory.take(organization.id, deadline.signal, bytes),
})

function streamOf(services: Services, exchange: Exchange, checkLine: CheckItem): Omit<StreamingCall, keyof Call> {
  const { limits } = services.config
  return {
    ...streamStateOf(services, exchange),
    chunks: readChunks(exchange.request, limits.requestMs),
    checkLine: line => checkLine(parseJson(line, limits), 'body'),
  }
}

function streamStateOf({ drain, logger }: Services, exchange: Exchange): StreamState {
  return {
    explain: error => explain(exchange, error, logger),
    draining: () => !drain.isAccepting(),
  }
}
