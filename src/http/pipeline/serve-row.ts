import type { Caller } from '../../auth/caller.ts'
import type { Limits } from '../../config.ts'
import { refuse } from '../../errors.ts'
import { requireScope } from '../../scopes.ts'
import { parseLine } from '../input/bind.ts'
import { readIfSequence } from '../input/if-sequence.ts'
import { authenticate } from './authenticate.ts'
import { type BoundCall, bindCall } from './bind-call.ts'
import type { Exchange } from './exchange.ts'
import { followingOf } from './following.ts'
import { idempotentHandler } from './idempotent-handler.ts'
import { explain } from './log.ts'
import { traced } from './request-telemetry.ts'
import type { BatchCall, Call, FollowingCall, HandlerResult, Route, StreamingCall } from './route.ts'
import { sequenceHeader } from './route.ts'
import type { RowEndpoint } from './row-endpoint.ts'
import { sendResult } from './send-result.ts'
import type { RowServices } from './services.ts'
import { readChunks, requireLines } from './streams.ts'

/**
 * Serves a request to a row of the route table: token · scope · rate · limits · body · slot, then {@link answer}. Each stage throws what
 * refuses the request.
 */
export async function serveRow(services: RowServices, endpoint: RowEndpoint, exchange: Exchange): Promise<void> {
  const { config, rateLimiter, reads, instruments } = services
  const { row, isWrite } = endpoint
  const { tracer } = instruments.observer
  exchange.statuses = row.statuses
  const caller = await traced(tracer, 'authenticate', exchange, () => authenticate(services, exchange))
  exchange.organization = caller.organization.key
  requireScope(caller, row.scope)
  if (rateLimiter) exchange.headers(await rateLimiter.spend(caller, isWrite ? 'write' : 'read'))
  if (isWrite && reads.isReader) throwReaderOnly()
  throwIfOverLimits(exchange, config.limits, row)
  exchange.isRead = !isWrite
  if (row.line) exchange.requestBody()
  const body = row.line ? undefined : await exchange.readBody(row.bodyBytes ?? config.limits.bodyBytes)
  exchange.enter()
  exchange.work = answer(services, endpoint, { exchange, caller, body })
  await exchange.work
}

type Arrived = { exchange: Exchange; caller: Caller; body: Buffer | undefined }

/** Answers a request whose body has arrived: bind · trim · validate · handle · envelope. */
async function answer(services: RowServices, endpoint: RowEndpoint, arrived: Arrived): Promise<void> {
  const { exchange, caller } = arrived
  const { row, isWrite } = endpoint
  const { tracer } = services.instruments.observer
  const call = await traced(tracer, 'bind', exchange, () => bindCall(services, endpoint, arrived))
  const key = endpoint.isKeyed ? exchange.request.headers['idempotency-key'] : undefined
  const result = await handle(services, endpoint, { exchange, call, key })
  if (key === undefined && call.written.sequence > 0) exchange.header(sequenceHeader, `${call.written.sequence}`)
  const { memory, limits } = call
  const reply = reduceToIdentifiers(result, row, caller)
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
  return reads.run({ organization_id, sequence, prefersReader, signal: call.signal }, (db, isReader) =>
    run({ ...call, db: db.shareOf(organization_id, lane), isReader }),
  )
}

/** A call with the parts of every kind of row. A handler uses those of its own. */
type FullCall = BatchCall & StreamingCall & FollowingCall

/** Adds the parts of a call that the kind of its row has: elements of a batch, lines of a stream, or events to wait for. */
function completeCall(services: RowServices, endpoint: RowEndpoint, exchange: Exchange, call: Call): FullCall {
  const { drain, logger, config } = services
  const { row, checkItem } = endpoint
  const { limits } = config
  const stream = {
    explain: (error: unknown) => explain(exchange, error, logger),
    draining: () => !drain.isAccepting(),
  }
  const parts = row.line
    ? {
        ...stream,
        chunks: readChunks(exchange.request, limits.requestMs),
        checkLine: (line: Buffer) => {
          const parsed = parseLine(line, limits)
          const check = (value: unknown) => checkItem!(value, 'body')
          return parsed instanceof Promise ? parsed.then(check) : check(parsed)
        },
      }
    : row.item
      ? { checkItem: (value: unknown) => checkItem!(value, call.boundFrom) }
      : row.follows && { ...stream, following: followingOf(exchange, () => authenticate(services, exchange)) }
  return (parts ? { ...call, ...parts } : call) as FullCall
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
