import type { Socket } from 'node:net'
import type { Caller } from '../auth/caller.ts'
import { requireScope } from '../auth/scopes.ts'
import type { Config } from '../config.ts'
import type { Lane } from '../db/shares.ts'
import { fail } from '../errors.ts'
import { isVersioned } from './admission.ts'
import type { AnswerMemory } from './answer-memory.ts'
import { type Bound, bind } from './bind.ts'
import type { Exchange, Place } from './exchange.ts'
import { parseJson } from './json.ts'
import { staged } from './observe.ts'
import { handleOnce } from './once.ts'
import { addressesOf } from './overlaps.ts'
import { parameterReader } from './parameters.ts'
import { explain, type House } from './pipeline.ts'
import { readPreferences } from './preferences.ts'
import { coerce } from './query.ts'
import { type Answer, type Call, type Route, takesKeys } from './route.ts'
import type { Router } from './router.ts'
import { sendAnswer } from './send-answer.ts'
import { receive, requireLines } from './streams.ts'
import { trimAndCheck } from './trim.ts'
import { compile } from './validate.ts'

/** What routes are served with. */
type Served = House & { answer_memory: AnswerMemory }

/**
 * Serves a route table: authenticate · scope · rate · limits · bind · trim · validate · handle · envelope. Every
 * address below `/v1` wants a token first, those that do not exist too: who may not read learns nothing.
 */
export function serveRoutes(places: Router, house: Served, table: Route[]): void {
  for (const row of table) for (const path of addressesOf(row, table)) places.add(placeOf(row, path, house))
}

/** Answers what no endpoint takes: 405 where the address takes other methods, else 404. */
export function nowhereOf(house: House, places: Router): Place {
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

function placeOf(row: Route, path: string, house: Served): Place {
  const { config, rate_limiter } = house
  const shape = row.body ?? row.query
  const validate = shape && compile(shape)
  const checkItem = itemChecker(row, config.limits)
  const { tracer } = house.instruments.observer
  const authenticateCaller = staged(tracer, 'authenticate', exchange => authenticate(house, exchange))
  const readCall = callReader(house, row, checkItem)
  const bindCall = staged(tracer, 'bind', exchange => {
    const call = readCall(exchange)
    if (validate) validate(call.body, call.bound_from)
    return call
  })
  const enter = (exchange: Exchange, caller: Caller) => {
    exchange.caller = caller
    requireScope(caller, row.scope)
  }
  const enterLater = async (exchange: Exchange, caller: Caller | Promise<Caller>) => {
    enter(exchange, await caller)
    if (rate_limiter) exchange.headers(await rate_limiter.spend(exchange.caller!, budgetOf(row)))
    refuseLimits(exchange, config, row)
  }
  return {
    method: row.method,
    path,
    row,
    streams: row.streams && row.item !== undefined,
    ...(row.body_bytes !== undefined && { body_bytes: row.body_bytes }),
    guard: exchange => {
      const caller = authenticateCaller(exchange)
      if (caller instanceof Promise || rate_limiter) return enterLater(exchange, caller)
      enter(exchange, caller)
      return refuseLimits(exchange, config, row)
    },
    handle: async exchange => {
      const call = bindCall(exchange)
      const key = exchange.request.headers['idempotency-key']
      const keyed = key !== undefined && takesKeys(row)
      const answered = await (keyed ? handleOnce(row, call, key, sentOf(exchange, call)) : row.handle(call))
      const sending = sendAnswer(exchange, withhold(answered, row, call.caller), call)
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
function withhold(answer: Answer, { reveals }: Route, { scopes }: Caller): Answer {
  if (!reveals || scopes.has(reveals.scope) || !('json' in answer)) return answer
  const entity = JSON.parse(answer.json) as Record<string, unknown> | true
  if (entity === true) return answer
  answer.release?.()
  const { 'Preference-Applied': _, ...headers } = answer.headers ?? {}
  const data = Object.fromEntries(reveals.identifiers.map(name => [name, entity[name]]))
  return { status: answer.status, headers, data }
}

const budgetOf = ({ scope }: Route) => (scope.endsWith(':write') ? 'write' : 'read')

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
function sentOf({ body, request }: Exchange, { bound_from }: Call): Buffer | string {
  return bound_from === 'body' ? body! : (request.url ?? '').split('?').slice(1).join('?')
}

/** The authenticator answers a cached token at once: only a new one is waited for. */
function authenticate({ authenticator }: House, { request, deadline }: Exchange): Caller | Promise<Caller> {
  return authenticator.authenticate(authorizationsOf(request), deadline.signal)
}

/** Who asks for what is no row: an address or a method that does not exist. That is a read. */
async function identify(house: House, exchange: Exchange): Promise<void> {
  const caller = await authenticate(house, exchange)
  exchange.caller = caller
  if (house.rate_limiter) exchange.headers(await house.rate_limiter.spend(caller, 'read'))
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

const said_before = Symbol('authorization')

/** The very text that the connection said before, where it says the same again: V8 has its hash, which takes it 1 µs. */
function sameAsBefore(socket: Socket & { [said_before]?: string }, text: string): string {
  if (socket[said_before] !== text) socket[said_before] = text
  return socket[said_before]!
}

function refuseLimits({ request: { headers, url = '' } }: Exchange, { limits }: Config, { streams, item }: Route) {
  // As many characters are at most three times as many bytes.
  if (url.length * 3 > limits.url_bytes && Buffer.byteLength(url) > limits.url_bytes)
    fail('invalid_parameter', `Path and query may have ${limits.url_bytes} bytes.`, { status: 414 })
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
      ? { ...limits, json_depth: limits.json_depth + item_depth, string_bytes: limits.body_bytes }
      : limits
  const wanted = row.body ? { ...row, body: row.body } : row.query && { body: row.query, has_defaults: true }
  return exchange => {
    const { url, body } = exchange
    const { headers } = exchange.request
    const question = url.indexOf('?')
    const [path, query_string] = question === -1 ? [url, ''] : [url.slice(0, question), url.slice(question + 1)]
    const params = readParameters(path)
    const bound = wanted
      ? bind({ content_type: headers['content-type'], body, query_string }, wanted, depth)
      : unbound()
    return {
      db: house.db.shareOf(exchange.caller!.organization.id, lane),
      limits,
      caller: exchange.caller!,
      params,
      body: bound.value,
      bound_from: bound.bound_from,
      bytes: bound.bytes,
      preferences: readPreferences(headers['if-match'], headers.prefer as string | undefined),
      checkItem: value => checkItem(value, bound.bound_from),
      ...(row.streams ? streamOf(house, exchange, checkItem) : no_stream),
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

const unbound = (): Bound => ({ value: {}, bound_from: 'query', bytes: 0 })

const memoryOf = ({ answer_memory }: Served, { caller, deadline }: Exchange): Call['memory'] => {
  const organization_id = caller!.organization.id
  return {
    take: bytes => answer_memory.take(organization_id, bytes),
    wait: bytes => answer_memory.wait(organization_id, bytes, deadline.signal),
  }
}

type Streaming = Pick<Call, 'chunks' | 'checkLine' | 'explain' | 'draining'>

function streamOf({ config: { limits }, drain, logger }: House, exchange: Exchange, checkItem: CheckItem): Streaming {
  return {
    chunks: receive(exchange.request, limits.request_ms),
    checkLine: line => checkItem(parseJson(line, limits), 'body'),
    explain: error => explain(exchange, error, logger),
    draining: () => !drain.accepting(),
  }
}

const notStreaming = () => {
  throw new Error('the route does not stream')
}
const no_stream = {
  chunks: { [Symbol.asyncIterator]: notStreaming },
  checkLine: notStreaming,
  explain: notStreaming,
  draining: notStreaming,
} as Streaming
