import { contextOf } from '../../db/context.ts'
import { type Call, sequenceHeader } from '../../route/call.ts'
import { closeEntity, requireFields } from '../../route/closed-fields.ts'
import { accessOfOwner } from '../../route/field-rights.ts'
import type { HandlerResult } from '../../route/result.ts'
import type { Route } from '../../route/route.ts'
import { requireScope } from '../../route/scopes.ts'
import { Shown } from '../../route/shown.ts'
import { refuse } from '../../values/errors.ts'
import { hasBody } from '../input/body.ts'
import { readIfSequence } from '../input/preferences.ts'
import {
  isVersioned,
  parseTarget,
  requestId,
  throwIfMalformed,
  throwIfOverLimits,
  throwIfTargetTooLong,
} from '../input/request-head.ts'
import type { Gate } from '../overload/gate.ts'
import { createCorsHandler, deprecationHeaders, securityHeaders } from '../server/headers.ts'
import type { Serve } from '../server/server.ts'
import { authenticate, authenticateWithRole } from './authenticate.ts'
import { type BoundCall, bindCall } from './call.ts'
import { Exchange, type OpenEndpoint } from './exchange.ts'
import { idempotentHandler } from './idempotent-handler.ts'
import { explain, observe } from './log.ts'
import { recordAccess, recordRefusal } from './record-access.ts'
import type { Router } from './router.ts'
import type { RowEndpoint } from './row-endpoint.ts'
import { sendResult } from './send-result.ts'
import type { RowServices } from './services.ts'

/** The limit of a body outside `/v1`, in bytes, unless the endpoint sets another. Such a body needs no token. */
const maxOpenBodyBytes = 16_384

/**
 * Returns a function that serves each request, stage by stage: target · gate · observe · malformed request · CORS ·
 * path, then {@link serveRow} or {@link serveOpen}. A stage throws to refuse the request. An exception in any stage
 * becomes an error response.
 */
export function createPipeline(services: RowServices, gate: Gate, router: Router): Serve {
  const { config, drain, logger, accessLog } = services
  const headers = Object.entries(securityHeaders(config)).flat()
  const handleCors = createCorsHandler(config.corsOrigins)
  const shouldClose = ({ connection, request }: Exchange) => !drain.isAccepting() && connection.mayEndWith(request)

  async function run(exchange: Exchange): Promise<void> {
    throwIfMalformed(exchange.request, config.limits)
    if (handleCors(exchange)) return
    const endpoint = router.find(exchange.request.method!, exchange.url)
    exchange.route = endpoint?.path
    if (!endpoint) await refuseUnknown(services, router, exchange)
    else if ('row' in endpoint) await serveRow(services, endpoint, exchange)
    else await serveOpen(services, endpoint, exchange)
  }

  return (connection, request, response) => {
    const url = parseTarget(request.url ?? '/')
    const admission = gate.admit(connection, request, response, url)
    if (!admission) return
    const id = requestId(request.headers['x-request-id'])
    const requestMs = Math.min(config.limits.requestMs, drain.leftMs())
    const options = { id, url, requestMs, headers, shouldClose, admission }
    const exchange = new Exchange(connection, request, response, options)
    observe(exchange, services)
    const end = () => exchange.endWork()
    run(exchange).then(end, error => {
      exchange.endSpan(true)
      // A refusal is sent after the parser has read its chunk. If the parser rejects the rest, only that rejection is
      // answered.
      exchange.refuse(explain(exchange, error, logger))
      if (exchange.refused === 'forbidden' && accessLog) recordRefusal(accessLog, exchange, config)
      end()
    })
  }
}

/**
 * Serves a request to a row of the route table: token · scope · rate · limits · body · turn · bind · handle · reveal ·
 * record · envelope. A stage with a synchronous result, as nearly all have, is not awaited.
 */
async function serveRow(services: RowServices, endpoint: RowEndpoint, exchange: Exchange): Promise<void> {
  const { config, rateLimiter, reads, running, instruments } = services
  const { row, isWrite } = endpoint
  const { request, deadline } = exchange
  const { tracer } = instruments.observer
  exchange.statuses = row.statuses
  if (row.deprecated) exchange.headers(deprecationHeaders(row.deprecated))
  exchange.span = tracer?.begin('authenticate', deadline.signal)
  const tellsVersion = isPlainRead(services, endpoint, exchange)
  const authenticating = authenticateWithRole(services, exchange, tellsVersion ? row.scope : undefined)
  const caller = authenticating instanceof Promise ? await authenticating : authenticating
  exchange.endSpan()
  exchange.organization = caller.organization.key
  exchange.caller = caller
  requireScope(caller, row.scope)
  if (rateLimiter) exchange.headers(await rateLimiter.spend(caller, isWrite ? 'write' : 'read'))
  if (isWrite && reads.isReader) throwReaderOnly()
  throwIfOverLimits(request, config.limits, row)
  exchange.isRead = !isWrite
  if (row.line) exchange.requestBody()
  const hasWholeBody = !row.line && hasBody(request)
  const body = hasWholeBody ? await exchange.readBody(row.bodyBytes ?? config.limits.bodyBytes) : undefined
  exchange.enter()
  const { id } = caller.organization
  exchange.leaveWith(running.tryTake(id) ?? (await running.take(id, deadline.signal)))
  exchange.span = tracer?.begin('bind', deadline.signal)
  const binding = bindCall(services, endpoint, { exchange, caller, body })
  const bound = binding instanceof Promise ? await binding : binding
  exchange.endSpan()
  const { call, result } = await (tellsVersion && caller.role !== undefined
    ? answerByCachedRole(services, endpoint, exchange, bound)
    : answer(services, endpoint, exchange, bound))
  const reply = revealed(row, call, result)
  const { memory, limits } = call
  const { accessLog: log } = services
  const recorded = log ? recordAccess({ log, exchange, config, row, call, isWrite }, reply) : reply
  const sent = recorded instanceof Promise ? await recorded : recorded
  await sendResult(exchange, sent, { memory, limits, isWrite: isWrite && !call.isDryRun, row })?.catch(error => {
    if (!exchange.response.headersSent) throw error
    // The failed response has closed its connection, so kith only logs the error.
    explain(exchange, error, services.logger)
  })
}

type Answered = { call: BoundCall; result: HandlerResult }

async function answer(
  services: RowServices,
  endpoint: RowEndpoint,
  exchange: Exchange,
  call: BoundCall,
): Promise<Answered> {
  const { row } = endpoint
  const { headers } = exchange.request
  requireFields(row, call)
  const key = endpoint.isKeyed ? (headers['idempotency-key'] as string | undefined) : undefined
  const result = await (key === undefined
    ? handle(services, endpoint, headers['if-sequence'] as string | undefined, call)
    : idempotentHandler(row, call, { key, source: call.source }))
  if (key === undefined && call.written.sequence > 0) exchange.header(sequenceHeader, `${call.written.sequence}`)
  return { call, result }
}

/**
 * Whether a request reads the current state of an entity on the primary. Its response tells the version of the
 * definitions.
 */
const isPlainRead = ({ reads }: RowServices, { row, isWrite }: RowEndpoint, { url, request }: Exchange) =>
  row.versioned === true &&
  !isWrite &&
  !url.includes('?') &&
  request.headers['if-sequence'] === undefined &&
  reads.isPlain({ prefersReader: false })

/**
 * Answers with the cached role. Answers again with the current role, unless the response shows that both are the same.
 * Reading the role before each response took 29 % of the CPU of a GET with a role.
 */
async function answerByCachedRole(
  services: RowServices,
  endpoint: RowEndpoint,
  exchange: Exchange,
  call: BoundCall,
): Promise<Answered> {
  try {
    const answered = await answer(services, endpoint, exchange, call)
    const { result } = answered
    if ('json' in result) {
      if (result.definitionsVersion === call.caller.roleVersion) return answered
      result.release?.()
    }
  } catch {
    // The second attempt has the same refusal, unless the role has changed.
  }
  const caller = await authenticateWithRole(services, exchange)
  exchange.caller = caller
  requireScope(caller, endpoint.row.scope)
  return answer(services, endpoint, exchange, { ...call, caller, shown: new Shown() })
}

/**
 * Runs the handler of a row. A read runs on the database that `reads` selects, the primary or a standby, once it shows
 * the change of `If-Sequence`.
 */
function handle(
  { reads }: RowServices,
  { row, isWrite, lane }: RowEndpoint,
  ifSequence: string | undefined,
  call: Call,
): Promise<HandlerResult> {
  const run = (own: Call): Promise<HandlerResult> => row.handle(own as never)
  const prefersReader = row.prefersReader === true
  if (isWrite || (ifSequence === undefined && reads.isPlain({ prefersReader }))) return run(call)
  const { id: organization_id } = call.caller.organization
  const sequence = ifSequence === undefined ? undefined : readIfSequence(ifSequence)
  return reads.run({ organization_id, sequence, prefersReader, signal: call.signal }, (pool, isReader) => {
    const db = pool.shareOf(organization_id, lane)
    return run({ ...call, context: contextOf(db, organization_id), isReader })
  })
}

/** Refuses a write to a read-only process before it reaches the database. */
export function throwReaderOnly(): never {
  refuse(
    'operation_failed',
    'This process only reads (KITH_ROLE=reader). Send writes to a process with the role primary.',
    { status: 503 },
  )
}

/**
 * Reduces a result to the part of the entity that the caller may read. This runs after the handler, because the stored
 * response of an Idempotency-Key may be for a caller with more rights.
 */
function revealed({ reveals, closes }: Route, { caller, params }: Call, result: HandlerResult): HandlerResult {
  if (reveals && !caller.scopes.has(reveals.scope)) return revealIdentifiers(result, reveals)
  const access = caller.rights && closes && accessOfOwner(caller, params.stack_key)
  return access && 'json' in result ? { ...result, json: closeEntity(result.json, access) } : result
}

/** The identifiers of an entity, for a token that may write it but not read it. */
function revealIdentifiers(result: HandlerResult, { identifiers }: NonNullable<Route['reveals']>): HandlerResult {
  if (!('json' in result)) return result
  const entity = JSON.parse(result.json) as Record<string, unknown> | true
  if (entity === true) return result
  result.release?.()
  const { 'Preference-Applied': _, ...headers } = result.headers ?? {}
  const data = Object.fromEntries(identifiers.map(name => [name, entity[name]]))
  return { status: result.status, headers, data }
}

/** Serves a request outside the route table: check · body · slot · handle. */
async function serveOpen({ config }: RowServices, endpoint: OpenEndpoint, exchange: Exchange): Promise<void> {
  throwIfTargetTooLong(exchange.request.url, config.limits)
  await endpoint.check?.(exchange)
  if (exchange.response.headersSent) return
  const { request } = exchange
  const body = hasBody(request) ? await exchange.readBody(endpoint.bodyBytes ?? maxOpenBodyBytes) : undefined
  exchange.enter()
  await endpoint.handle(exchange, body)
}

/**
 * Refuses a request without an endpoint: 405 if the path allows other methods, otherwise 404. Below `/v1`, the token is
 * checked first, so that a client without one learns nothing. The request counts as a read.
 */
async function refuseUnknown(services: RowServices, router: Router, exchange: Exchange): Promise<never> {
  const found = router.findAll(exchange.url)
  // The log and the metrics name the path, even if it has only other methods.
  exchange.route = found[0]?.endpoint.path
  if (isVersioned(exchange.url)) {
    const caller = await authenticate(services, exchange)
    exchange.organization = caller.organization.key
    if (services.rateLimiter) exchange.headers(await services.rateLimiter.spend(caller, 'read'))
  }
  throwIfTargetTooLong(exchange.request.url, services.config.limits)
  if (found.length === 0)
    refuse('not_found', 'There is no such address.', {
      details: [
        { path: '', message: `is not an address of this API${router.suggest(exchange.request.method!, exchange.url)}` },
      ],
    })
  const Allow = found.map(({ method }) => method).join(', ')
  return refuse('invalid_parameter', `This address allows only these methods: ${Allow}.`, {
    status: 405,
    headers: { Allow },
  })
}
