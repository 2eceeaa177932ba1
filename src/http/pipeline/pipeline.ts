import type { Limits } from '../../config.ts'
import { contextOf } from '../../db/context.ts'
import { refuse } from '../../errors.ts'
import { type Call, sequenceHeader } from '../../route/call.ts'
import type { Caller } from '../../route/caller.ts'
import type { HandlerResult } from '../../route/result.ts'
import type { Route } from '../../route/route.ts'
import { requireScope } from '../../scopes.ts'
import { hasBody } from '../input/body.ts'
import { readIfSequence } from '../input/preferences.ts'
import { createCorsHandler } from '../server/cors.ts'
import { type Serve, throwIfMalformed } from '../server/server.ts'
import { authenticate } from './authenticate.ts'
import { beginRequest, isVersioned, traced } from './begin-request.ts'
import { type BoundCall, bindCall, completeCall } from './call.ts'
import type { Exchange, OpenEndpoint } from './exchange.ts'
import { idempotentHandler } from './idempotent-handler.ts'
import { explain } from './log.ts'
import type { Router } from './router.ts'
import type { RowEndpoint } from './row-endpoint.ts'
import { sendResult } from './send-result.ts'
import type { RowServices } from './services.ts'
import { requireLines } from './streams.ts'

/** The limit of a body outside `/v1`, in bytes, unless the endpoint has its own. Such a body needs no token. */
const maxOpenBodyBytes = 16_384

/**
 * Returns a function that serves each admitted request: malformed request · CORS · path, then {@link serveRow} or {@link serveOpen}. An
 * exception in any step becomes an error response.
 */
export function createPipeline(services: RowServices, router: Router): Serve {
  const { config, drain, logger } = services
  const { observer } = services.instruments
  const { limits } = config
  const handleCors = createCorsHandler(config.corsOrigins)

  async function serve(exchange: Exchange): Promise<void> {
    throwIfMalformed(exchange)
    if (handleCors(exchange)) return
    const endpoint = router.find(exchange.request.method!, exchange.url)
    exchange.route = endpoint?.path
    if (!endpoint) await refuseUnknown(services, router, exchange)
    else if ('row' in endpoint) await serveRow(services, endpoint, exchange)
    else await serveOpen(endpoint, exchange)
  }

  return exchange => {
    beginRequest(exchange, { limits, drain, logger, observer })
    const end = () => exchange.endWork()
    serve(exchange).then(end, error => {
      // A refusal is sent after the parser has read its chunk. If the parser rejects the rest, only that is answered.
      exchange.refuse(explain(exchange, error, logger))
      end()
    })
  }
}

/**
 * Serves a request to a row of the route table: token · scope · rate · limits · body · slot · bind · handle · envelope. Each stage throws what
 * refuses the request. A stage that decides at once is not awaited.
 */
async function serveRow(services: RowServices, endpoint: RowEndpoint, exchange: Exchange): Promise<void> {
  const { config, rateLimiter, reads, instruments } = services
  const { row, isWrite } = endpoint
  const { tracer } = instruments.observer
  exchange.statuses = row.statuses
  const authenticating = traced(tracer, 'authenticate', exchange, () => authenticate(services, exchange))
  const caller = authenticating instanceof Promise ? await authenticating : authenticating
  exchange.organization = caller.organization.key
  requireScope(caller, row.scope)
  if (rateLimiter) exchange.headers(await rateLimiter.spend(caller, isWrite ? 'write' : 'read'))
  if (isWrite && reads.isReader) throwReaderOnly()
  throwIfOverLimits(exchange, config.limits, row)
  exchange.isRead = !isWrite
  if (row.line) exchange.requestBody()
  const hasWholeBody = !row.line && hasBody(exchange.request)
  const body = hasWholeBody ? await exchange.readBody(row.bodyBytes ?? config.limits.bodyBytes) : undefined
  exchange.enter()
  const binding = traced(tracer, 'bind', exchange, () => bindCall(services, endpoint, { exchange, caller, body }))
  const call = binding instanceof Promise ? await binding : binding
  const key = endpoint.isKeyed ? exchange.request.headers['idempotency-key'] : undefined
  const result = await handle(services, endpoint, { exchange, call, key })
  if (key === undefined && call.written.sequence > 0) exchange.header(sequenceHeader, `${call.written.sequence}`)
  const { memory, limits } = call
  const reply = row.reveals && !caller.scopes.has(row.reveals.scope) ? identifiersOf(result, row.reveals) : result
  await sendResult(exchange, reply, { memory, limits, isWrite: isWrite && !call.isDryRun })?.catch(error => {
    if (!exchange.response.headersSent) throw error
    // The failed response has closed its connection, so this only logs the error.
    explain(exchange, error, services.logger)
  })
}

/**
 * Runs the handler of a row: a write with an Idempotency-Key once, and a read on the database that `reads` selects for it, the primary or a
 * standby, once it shows the change that `If-Sequence` names.
 */
function handle(
  services: RowServices,
  endpoint: RowEndpoint,
  { exchange, call, key }: { exchange: Exchange; call: BoundCall; key: string | string[] | undefined },
): Promise<HandlerResult> {
  const { row, isWrite, lane } = endpoint
  const { reads } = services
  const run = (own: Call): Promise<HandlerResult> => row.handle(completeCall(services, endpoint, exchange, own))
  if (key !== undefined) return idempotentHandler(row, call, { key, source: call.source, handle: run })
  const header = isWrite ? undefined : (exchange.request.headers['if-sequence'] as string | undefined)
  const prefersReader = row.prefersReader === true
  if (isWrite || (header === undefined && reads.isPlain({ prefersReader }))) return run(call)
  const { id: organization_id } = call.caller.organization
  const sequence = header === undefined ? undefined : readIfSequence(header)
  return reads.run({ organization_id, sequence, prefersReader, signal: call.signal }, (pool, isReader) => {
    const db = pool.shareOf(organization_id, lane)
    return run({ ...call, context: contextOf(db, organization_id), isReader })
  })
}

/** Refuses a write to a process that only reads, before it reaches the database. */
export function throwReaderOnly(): never {
  refuse(
    'operation_failed',
    'This process only reads (KITH_ROLE=reader). Send writes to a process with the role primary.',
    { status: 503 },
  )
}

function throwIfOverLimits({ request: { headers, url = '' } }: Exchange, limits: Limits, { line }: Route) {
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

/**
 * The identifiers of an entity, for a token that may write it but not read it. The whole is reduced after the handler, because a response
 * stored under an Idempotency-Key may have been for a token that may read.
 */
function identifiersOf(result: HandlerResult, { identifiers }: NonNullable<Route['reveals']>): HandlerResult {
  if (!('json' in result)) return result
  const entity = JSON.parse(result.json) as Record<string, unknown> | true
  if (entity === true) return result
  result.release?.()
  const { 'Preference-Applied': _, ...headers } = result.headers ?? {}
  const data = Object.fromEntries(identifiers.map(name => [name, entity[name]]))
  return { status: result.status, headers, data }
}

/** Serves a request outside the route table: check · body · slot · handle. */
async function serveOpen(endpoint: OpenEndpoint, exchange: Exchange): Promise<void> {
  await endpoint.check?.(exchange)
  if (exchange.response.headersSent) return
  const { request } = exchange
  const body = hasBody(request) ? await exchange.readBody(endpoint.bodyBytes ?? maxOpenBodyBytes) : undefined
  exchange.enter()
  await endpoint.handle(exchange, body)
}

/**
 * Refuses a request that no endpoint takes: 405 if the path allows other methods, otherwise 404. Below `/v1` it needs a token first, so that
 * a client without one learns nothing. It counts as a read.
 */
async function refuseUnknown(services: RowServices, router: Router, exchange: Exchange): Promise<never> {
  const found = router.findAll(exchange.url)
  // The log and the metrics name the path, even if only other methods have it.
  exchange.route = found[0]?.endpoint.path
  if (isVersioned(exchange.url)) {
    const caller: Caller = await authenticate(services, exchange)
    exchange.organization = caller.organization.key
    if (services.rateLimiter) exchange.headers(await services.rateLimiter.spend(caller, 'read'))
  }
  if (found.length === 0)
    refuse('not_found', 'There is no such address.', {
      details: [{ path: '', message: 'is not an address of this API' }],
    })
  const Allow = found.map(({ method }) => method).join(', ')
  return refuse('invalid_parameter', `This address allows only these methods: ${Allow}.`, {
    status: 405,
    headers: { Allow },
  })
}
