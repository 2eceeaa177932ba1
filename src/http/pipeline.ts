import type { OutgoingHttpHeaders } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Authenticator } from '../auth/authenticator.ts'
import type { Caller } from '../auth/caller.ts'
import { requireScope } from '../auth/scopes.ts'
import type { Config } from '../config.ts'
import type { Database } from '../db/db.ts'
import { Fault, fail, type Refusal, refuse } from '../errors.ts'
import { admit, isVersioned } from './admission.ts'
import { bind } from './bind.ts'
import type { Drain } from './drain.ts'
import { parseJson } from './json.ts'
import { handleOnce } from './once.ts'
import { addressesOf, covers } from './overlaps.ts'
import { readParameters } from './parameters.ts'
import { parseIfMatch, parsePrefer } from './preferences.ts'
import { coerce } from './query.ts'
import type { RateLimiter } from './rate-limit.ts'
import { refusalOf, success } from './reply.ts'
import { type Call, type Enveloped, type Route, type Streamed, takesKeys } from './route.ts'
import { refusalOfFramework, refuseMalformed, sendRefusal, stream_type } from './server.ts'
import { allowTime, receive, requireLines, send } from './streams.ts'
import { trimAndCheck } from './trim.ts'
import { compile } from './validate.ts'

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller
  }
}

export type House = {
  db: Database
  config: Config
  authenticator: Authenticator
  drain: Drain
  /** Absent: requests are not counted. */
  rate_limiter?: RateLimiter | undefined
}

/**
 * Serves a route table: authenticate · scope · rate · limits · bind · trim · validate · handle · envelope. Every
 * address below `/v1` wants a token first, those that do not exist too: who may not read learns nothing.
 */
export function serveRoutes(server: FastifyInstance, house: House, table: Route[]): void {
  admit(server, { request_ms: house.config.limits.request_ms, drain: house.drain }, answerError)
  refuseMalformed(server)
  server.decorateRequest('caller')
  server.setErrorHandler((error, request, reply) => answerError(request, reply, error))
  for (const row of table) for (const path of addressesOf(row, table)) serveRow(server, house, row, path)
  refuseOtherMethods(server, house, table)
  server.setNotFoundHandler({ preValidation: [] }, async (request, reply) => {
    if (isVersioned(request.url)) await authenticate(house, request)
    if (isVersioned(request.url) && house.rate_limiter) await spend(house.rate_limiter, request, reply)
    fail('not_found', 'There is no such address.')
  })
}

const addressOf = (path: string) => path.replace(/\{(\w+)\}/g, ':$1')

function serveRow(server: FastifyInstance, house: House, row: Route, path: string) {
  const shape = row.body ?? row.query
  const validate = shape && compile(shape)
  const checkItem = itemChecker(row, house.config.limits)
  async function answer(request: FastifyRequest, reply: FastifyReply) {
    request.deadline.signal.throwIfAborted()
    const call = readCall(house, request, row, checkItem)
    if (validate) validate(call.body, call.bound_from)
    const key = request.headers['idempotency-key']
    const keyed = key !== undefined && takesKeys(row)
    const answered = await (keyed ? handleOnce(row, call, key, bytesOf(request, call)) : row.handle(call))
    return 'stream' in answered ? sendStream(request, reply, answered, house) : sendAnswer(reply, answered)
  }
  server.route({
    method: row.method,
    url: addressOf(path),
    ...(row.body_bytes !== undefined && { bodyLimit: row.body_bytes }),
    onRequest: async (request, reply) => {
      request.row = row
      await authenticate(house, request)
      requireScope(request.caller, row.scope)
      if (house.rate_limiter) await spend(house.rate_limiter, request, reply)
      refuseLimits(request, house.config)
      if (row.streams) beginStream(request, reply, row)
    },
    handler: (request, reply) => {
      request.work = answer(request, reply)
      return request.work
    },
  })
}

/** The body of a stream is left where it is, and takes its time. */
function beginStream(request: FastifyRequest, reply: FastifyReply, row: Route) {
  if (row.item) requireLines(request.content_type)
  request.headers['content-type'] = stream_type
  allowTime(request.raw, reply.raw)
}

async function sendStream(
  request: FastifyRequest,
  reply: FastifyReply,
  { status, headers, stream }: Streamed,
  house: House,
) {
  // From here on each part of the work has its own time.
  request.deadline.end()
  reply.hijack()
  const closing = house.drain.accepting() ? {} : { Connection: 'close' }
  reply.raw.writeHead(status, {
    ...reply.getHeaders(),
    ...headers,
    ...closing,
    'Content-Type': stream_type,
  } as OutgoingHttpHeaders)
  await send(reply.raw, stream, house.config.limits.request_ms).catch(error => explain(request, error))
}

const item_depth = 3

type CheckItem = (value: unknown, bound_from: Call['bound_from']) => Record<string, unknown>

function itemChecker({ item }: Route, limits: Config['limits']): CheckItem {
  const validate = item && compile(item)
  return (value, bound_from) => {
    if (!validate) throw new Error('the route has no elements')
    const read = bound_from === 'query' ? coerce(item, value) : value
    validate(read, bound_from)
    return trimAndCheck(read as Record<string, unknown>, limits)
  }
}

/** What the request was bound from, as it was sent. */
function bytesOf({ body, raw }: FastifyRequest, { bound_from }: Call): Buffer | string {
  return bound_from === 'body' ? (body as Buffer) : (raw.url ?? '').split('?').slice(1).join('?')
}

/** The authenticator answers a cached token at once: only a new one is waited for. */
async function authenticate({ authenticator }: House, request: FastifyRequest) {
  request.caller = await authenticator.authenticate(authorizationsOf(request), request.deadline.signal)
}

/** Every Authorization header: Node itself would show the first alone. */
export function authorizationsOf({ raw: { rawHeaders: headers } }: FastifyRequest): string[] {
  return headers.filter((_, index) => index % 2 === 1 && /^authorization$/i.test(headers[index - 1]!))
}

/** What is no row is read: an address or a method that does not exist. */
async function spend(rate_limiter: RateLimiter, { caller, row }: FastifyRequest, reply: FastifyReply) {
  reply.headers(await rate_limiter.spend(caller, row?.scope.endsWith(':write') ? 'write' : 'read'))
}

function refuseLimits({ raw, headers }: FastifyRequest, { limits }: Config) {
  if (Buffer.byteLength(raw.url ?? '') > limits.url_bytes)
    fail('invalid_parameter', `Path and query may have ${limits.url_bytes} bytes.`, { status: 414 })
  if (isOther(headers['content-encoding'], 'identity'))
    fail('invalid_parameter', 'A body with a Content-Encoding is not accepted.', { status: 415 })
  if (isOther(headers['transfer-encoding'], 'chunked'))
    fail('invalid_parameter', 'Of all transfer encodings, chunked alone is accepted.', { status: 415 })
}

const isOther = (coding: string | undefined, known: string) =>
  coding !== undefined && coding.trim().toLowerCase() !== known

function readCall(
  { db, drain, config: { limits } }: House,
  request: FastifyRequest,
  row: Route,
  checkItem: CheckItem,
): Call {
  const [path = '', ...query] = (request.raw.url ?? '').split('?')
  const params = readParameters(row, path)
  const { headers } = request
  const arrived = {
    content_type: request.content_type,
    body: row.streams ? undefined : (request.body as Buffer | undefined),
    query_string: query.join('?'),
  }
  // An element of a batch lies three levels deep, and is as deep as any body; its strings are measured with it.
  const depth =
    row.item && row.body
      ? { ...limits, json_depth: limits.json_depth + item_depth, string_bytes: limits.body_bytes }
      : limits
  const wanted = row.body ? { ...row, body: row.body } : row.query && { body: row.query, has_defaults: true }
  const bound = wanted ? bind(arrived, wanted, depth) : { value: {}, bound_from: 'query' as const, bytes: 0 }
  return {
    db,
    limits,
    caller: request.caller,
    params,
    body: bound.value,
    bound_from: bound.bound_from,
    bytes: bound.bytes,
    preferences: {
      if_match: parseIfMatch(headers['if-match']),
      ...parsePrefer(headers.prefer as string | undefined),
    },
    checkItem: value => checkItem(value, bound.bound_from),
    chunks: receive(request.raw, limits.request_ms),
    checkLine: line => checkItem(parseJson(line, limits), 'body'),
    explain: error => explain(request, error),
    draining: () => !drain.accepting(),
    request_id: request.id,
    signal: request.deadline.signal,
  }
}

function sendAnswer(reply: FastifyReply, answer: Enveloped) {
  reply.code(answer.status).header('Content-Type', 'application/json; charset=utf-8')
  for (const name in answer.headers) reply.header(name, answer.headers[name])
  return reply.send(success(answer))
}

function answerError(request: FastifyRequest, reply: FastifyReply, error: unknown) {
  sendRefusal(reply, explain(request, error), request.id)
}

function explain(request: FastifyRequest, error: unknown): Refusal {
  const from_framework = error instanceof Error && (error as { code?: string }).code?.startsWith('FST_')
  const refusal = from_framework ? refusalOfFramework(error as never) : refusalOf(error, request.row?.statuses)
  if (!(error instanceof Fault) && refusal.status >= 500) request.log.error(describeFault(error))
  return refusal
}

/** A fault without the data that it happened on: PostgreSQL's own messages quote values. */
function describeFault(error: unknown) {
  if (!(error instanceof Error)) return { fault: typeof error }
  const { code, table, column, constraint, routine } = error as unknown as Record<string, string | undefined>
  if (routine !== undefined) return { fault: 'database', code, table, column, constraint, routine }
  return { fault: error.name, code, stack: error.stack }
}

/** A wrong method on a known address: 405 with the right ones. */
function refuseOtherMethods(server: FastifyInstance, house: House, table: Route[]) {
  for (const path of new Set(table.map(row => row.path))) {
    // `/v1/people/list` is somebody's address, too: its other methods are those of `/v1/people/{external_id}`.
    const allowed: string[] = table.filter(row => covers(row.path, path)).map(row => row.method)
    if (allowed.includes('GET')) allowed.push('HEAD')
    const others = methods.filter(method => !allowed.includes(method))
    const refusal = refuse('invalid_parameter', `This address takes ${allowed.join(', ')}.`, {
      status: 405,
      headers: { Allow: allowed.join(', ') },
    })
    server.route({
      method: others,
      url: addressOf(path),
      exposeHeadRoute: false,
      onRequest: async (request, reply) => {
        await authenticate(house, request)
        if (house.rate_limiter) await spend(house.rate_limiter, request, reply)
        throw new Fault(refusal)
      },
      handler: () => {},
    })
  }
}

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
