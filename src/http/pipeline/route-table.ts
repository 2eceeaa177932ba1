import type { Socket } from 'node:net'
import type { Caller } from '../../auth/caller.ts'
import { requireScope } from '../../auth/scopes.ts'
import type { Config } from '../../config.ts'
import type { Lane } from '../../db/shares.ts'
import { fail } from '../../errors.ts'
import { type Bound, bind } from '../input/bind.ts'
import { parseJson } from '../input/json.ts'
import { parameterReader } from '../input/parameters.ts'
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
import { type Call, type HandlerResult, type Route, takesKeys } from './route.ts'
import { addressesOf } from './route-precedence.ts'
import type { Router } from './router.ts'
import { sendResult } from './send-result.ts'
import { readChunks, requireLines } from './streams.ts'

/** What routes are served with. */
type Served = Services & { answerMemory: ResponseMemory }

/**
 * Serves a route table: authenticate · scope · rate · limits · bind · trim · validate · handle · envelope. Every
 * address below `/v1` wants a token first, those that do not exist too: who may not read learns nothing.
 */
export function registerRoutes(places: Router, house: Served, table: Route[]): void {
  for (const row of table) for (const path of addressesOf(row, table)) places.add(endpointOf(row, path, house))
}

/** Answers what no endpoint takes: 405 where the address takes other methods, else 404. */
export function notFoundEndpoint(house: Services, places: Router): Endpoint {
  const handle = () => {}
  return {
    method: 'GET',
    path: '',
    guard: async exchange => {
      const found = places.findAll(exchange.url)
      // The log and the metrics name the address. Its row, and the row's statuses, belong to another method.
      if (found[0]) exchange.place = { method: 'GET', path: found[0].place.path, handle }
      if (isVersioned(exchange.url)) await identify(house, exchange)
      if (found.length === 0)
        fail('not_found', 'There is no such address.', {
          details: [{ path: '', message: 'is no address of this API' }],
        })
      const Allow = found.map(({ method }) => method).join(', ')
      fail('invalid_parameter', `This address takes ${Allow}.`, { status: 405, headers: { Allow } })
    },
    handle,
  }
}

function endpointOf(row: Route, path: string, house: Served): Endpoint {
  const { config, rateLimiter } = house
  const shape = row.body ?? row.query
  const validate = shape && compile(shape)
  const checkItem = itemChecker(row, config.limits)
  const { tracer } = house.instruments.observer
  const authenticateCaller = traced(tracer, 'authenticate', exchange => authenticate(house, exchange))
  const readCall = callReader(house, row, checkItem)
  const bindCall = traced(tracer, 'bind', exchange => {
    const call = readCall(exchange)
    if (validate) validate(call.body, call.boundFrom)
    return call
  })
  const enter = (exchange: Exchange, caller: Caller) => {
    exchange.caller = caller
    requireScope(caller, row.scope)
  }
  const enterLater = async (exchange: Exchange, caller: Caller | Promise<Caller>) => {
    enter(exchange, await caller)
    if (rateLimiter) exchange.headers(await rateLimiter.spend(exchange.caller!, budgetOf(row)))
    refuseLimits(exchange, config, row)
  }
  return {
    method: row.method,
    path,
    row,
    streams: row.streams && row.item !== undefined,
    ...(row.bodyBytes !== undefined && { bodyBytes: row.bodyBytes }),
    guard: exchange => {
      const caller = authenticateCaller(exchange)
      if (caller instanceof Promise || rateLimiter) return enterLater(exchange, caller)
      enter(exchange, caller)
      return refuseLimits(exchange, config, row)
    },
    handle: async exchange => {
      const call = bindCall(exchange)
      const key = exchange.request.headers['idempotency-key']
      const keyed = key !== undefined && takesKeys(row)
      const answered = await (keyed ? idempotentHandler(row, call, key, sentOf(exchange, call)) : row.handle(call))
      const sending = sendResult(exchange, withhold(answered, row, call.caller), call)
      await sending?.catch(error => {
        if (!exchange.response.headersSent) throw error
        // An answer that breaks has cut its connection: there is nothing left to answer.
        explain(exchange, error, house.logger)
      })
    },
  }
}

/**
 * Reduces an entity to its identifiers for a token that may write it and not read it. The answer kept under an Idempotency-Key may
 * have been given to a token that may.
 */
function withhold(answer: HandlerResult, { reveals }: Route, { scopes }: Caller): HandlerResult {
  if (!reveals || scopes.has(reveals.scope) || !('json' in answer)) return answer
  const entity = JSON.parse(answer.json) as Record<string, unknown> | true
  if (entity === true) return answer
  answer.release?.()
  const { 'Preference-Applied': _, ...headers } = answer.headers ?? {}
  const data = Object.fromEntries(reveals.identifiers.map(name => [name, entity[name]]))
  return { status: answer.status, headers, data }
}

const budgetOf = ({ scope }: Route) => (scope.endsWith(':write') ? 'write' : 'read')

const itemDepth = 3

type CheckItem = (value: unknown, boundFrom: Call['boundFrom']) => Record<string, unknown>

function itemChecker({ item }: Route, limits: Config['limits']): CheckItem {
  const validate = item && compile(item)
  return (value, boundFrom) => {
    if (!validate) throw new Error('the route has no elements')
    const read = boundFrom === 'query' ? coerce(item, value) : value
    validate(read, boundFrom)
    return trimAndCheck(read as Record<string, unknown>, limits)
  }
}

/** What the request was bound from, as it was sent. */
function sentOf({ body, request }: Exchange, { boundFrom }: Call): Buffer | string {
  return boundFrom === 'body' ? body! : (request.url ?? '').split('?').slice(1).join('?')
}

/** The authenticator answers a cached token at once: only a new one is waited for. */
function authenticate({ authenticator }: Services, { request, deadline }: Exchange): Caller | Promise<Caller> {
  return authenticator.authenticate(authorizationsOf(request), deadline.signal)
}

/** Who asks for what is no row: an address or a method that does not exist. That is a read. */
async function identify(house: Services, exchange: Exchange): Promise<void> {
  const caller = await authenticate(house, exchange)
  exchange.caller = caller
  if (house.rateLimiter) exchange.headers(await house.rateLimiter.spend(caller, 'read'))
}

const authorization = 'authorization'

/** Every Authorization header: Node itself would show the first alone. */
export function authorizationsOf({ rawHeaders: headers, socket }: Exchange['request']): string[] {
  const found: string[] = []
  for (let index = 0; index < headers.length; index += 2) {
    const name = headers[index]!
    if (name.length === authorization.length && name.toLowerCase() === authorization)
      found.push(sameAsBefore(socket, headers[index + 1]!))
  }
  return found
}

const saidBefore = Symbol('authorization')

/** The very text that the connection said before, where it says the same again: V8 has its hash, which takes it 1 µs. */
function sameAsBefore(socket: Socket & { [saidBefore]?: string }, text: string): string {
  if (socket[saidBefore] !== text) socket[saidBefore] = text
  return socket[saidBefore]!
}

function refuseLimits({ request: { headers, url = '' } }: Exchange, { limits }: Config, { streams, item }: Route) {
  // As many characters are at most three times as many bytes.
  if (url.length * 3 > limits.urlBytes && Buffer.byteLength(url) > limits.urlBytes)
    fail('invalid_parameter', `Path and query may have ${limits.urlBytes} bytes.`, { status: 414 })
  if (isOther(headers['content-encoding'], 'identity'))
    fail('invalid_parameter', 'A body with a Content-Encoding is not accepted.', { status: 415 })
  if (isOther(headers['transfer-encoding'], 'chunked'))
    fail('invalid_parameter', 'Of all transfer encodings, chunked alone is accepted.', { status: 415 })
  if (streams && item) requireLines(headers['content-type'])
}

const isOther = (coding: string | undefined, known: string) =>
  coding !== undefined && coding.trim().toLowerCase() !== known

function callReader(house: Served, row: Route, checkItem: CheckItem): (exchange: Exchange) => Call {
  const { limits } = house.config
  const readParameters = parameterReader(row)
  const lane = laneOf(row)
  // An element of a batch lies three levels deep, and is as deep as any body; its strings are measured with it.
  const depth =
    row.item && row.body
      ? { ...limits, jsonDepth: limits.jsonDepth + itemDepth, stringBytes: limits.bodyBytes }
      : limits
  const wanted = row.body ? { ...row, body: row.body } : row.query && { body: row.query, hasDefaults: true }
  return exchange => {
    const { url, body } = exchange
    const { headers } = exchange.request
    const question = url.indexOf('?')
    const [path, queryString] = question === -1 ? [url, ''] : [url.slice(0, question), url.slice(question + 1)]
    const params = readParameters(path)
    const bound = wanted ? bind({ contentType: headers['content-type'], body, queryString }, wanted, depth) : unbound()
    return {
      db: house.db.shareOf(exchange.caller!.organization.id, lane),
      limits,
      caller: exchange.caller!,
      params,
      body: bound.value,
      boundFrom: bound.boundFrom,
      bytes: bound.bytes,
      preferences: readPreferences(headers['if-match'], headers.prefer as string | undefined),
      checkItem: value => checkItem(value, bound.boundFrom),
      ...(row.streams ? streamOf(house, exchange, checkItem) : noStream),
      request_id: exchange.id,
      memory: memoryOf(house, exchange),
      within: exchange.deadline.within,
      signal: exchange.deadline.signal,
    }
  }
}

/** A GET reads one entity, or definitions, and a stream takes from the pool only what it needs to begin. Any other read is a page. */
function laneOf({ method, scope, streams }: Route): Lane {
  if (scope.endsWith(':write')) return 'writes'
  return method === 'GET' || streams ? 'reads' : 'pages'
}

const unbound = (): Bound => ({ value: {}, boundFrom: 'query', bytes: 0 })

const memoryOf = ({ answerMemory }: Served, { caller, deadline }: Exchange): Call['memory'] => {
  const organization_id = caller!.organization.id
  return {
    take: bytes => answerMemory.take(organization_id, bytes),
    wait: bytes => answerMemory.wait(organization_id, bytes, deadline.signal),
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
    draining: () => !drain.accepting(),
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
