import type { IncomingHttpHeaders } from 'node:http'
import { contextOf } from '../../db/context.ts'
import type { Config } from '../../process/config.ts'
import type { Call, Following, StreamState } from '../../route/call.ts'
import type { Caller } from '../../route/caller.ts'
import type { Route } from '../../route/route.ts'
import { Shown } from '../../route/shown.ts'
import { throwBrokenRule } from '../../values/errors.ts'
import { type Bound, bind, bindLarge, isLarge, parseLine, type RawInput } from '../input/bind.ts'
import { readChunks } from '../input/body.ts'
import { chooseMediaType, readPreferences } from '../input/preferences.ts'
import { takeDryRun, throwInvalidDryRun, throwKeyedDryRun } from '../input/query.ts'
import { isCsv } from '../input/request-head.ts'
import { authenticateWithRole } from './authenticate.ts'
import type { Exchange } from './exchange.ts'
import { explain } from './log.ts'
import type { CheckItem, RowEndpoint } from './row-endpoint.ts'
import type { RowServices } from './services.ts'

/** A call with the raw body or query string that it was bound from. */
export type BoundCall = Call & { source: Buffer | string }

type Arrived = { exchange: Exchange; caller: Caller; body: Buffer | undefined }

/**
 * Builds the call of a request from its path, query, headers and body: bound, trimmed and validated. Throws a Fault of
 * 400. Only a large body takes several event-loop turns.
 */
export function bindCall(
  services: RowServices,
  endpoint: RowEndpoint,
  arrived: Arrived,
): BoundCall | Promise<BoundCall> {
  const { url, request } = arrived.exchange
  const { headers } = request
  const queryAt = url.indexOf('?')
  const [path, query] = queryAt === -1 ? [url, ''] : [url.slice(0, queryAt), url.slice(queryAt + 1)]
  const params = endpoint.readParameters(path)
  const dryRun = readDryRun(endpoint, query, headers['idempotency-key'] !== undefined)
  const raw = {
    contentType: headers['content-type'],
    body: endpoint.row.body && arrived.body,
    queryString: dryRun.queryString,
  }
  const binding = bindInput(endpoint, raw)
  const complete = (bound: Bound) => callOf(services, endpoint, arrived, { params, dryRun, bound })
  return binding instanceof Promise ? binding.then(complete) : complete(binding)
}

type Read = { params: Record<string, string>; dryRun: DryRunRead; bound: Bound }

function callOf(
  services: RowServices,
  endpoint: RowEndpoint,
  { exchange, caller }: Arrived,
  { params, dryRun: { isDryRun, isMember }, bound }: Read,
): BoundCall {
  const { config, db, responseMemory } = services
  const { input, lane, row, dryRun } = endpoint
  const { deadline, request } = exchange
  const { headers } = request
  const organization_id = caller.organization.id
  if (endpoint.isWrite) refuseConditions(row.versioned, headers)
  if (isMember) bound.value.dry_run = true
  const preferences = readPreferences(headers['if-match'], headers.prefer as string | undefined)
  input?.validate(bound.value, bound.boundFrom)
  if (dryRun.isBodyMember && bound.value.dry_run === true && headers['idempotency-key'] !== undefined)
    throwKeyedDryRun()
  const share = db.shareOf(organization_id, lane)
  const call: BoundCall = {
    context: contextOf(share, organization_id),
    limits: config.limits,
    caller,
    params,
    body: bound.value,
    boundFrom: bound.boundFrom,
    source: bound.source,
    bytes: bound.source.length,
    preferences,
    mediaType: row.mediaTypes && chooseMediaType(headers.accept, Object.keys(row.mediaTypes)),
    acceptLanguage: headers['accept-language'],
    isDryRun,
    isReader: false,
    written: { sequence: 0 },
    shown: new Shown(),
    request_id: exchange.id,
    localUrl: () => localUrlOf(exchange, config),
    memory: {
      tryTake: bytes => responseMemory.tryTake(organization_id, bytes),
      take: bytes => responseMemory.take(organization_id, deadline.signal, bytes),
    },
    within: work => deadline.within(work),
    signal: deadline.signal,
  }
  addParts(services, endpoint, exchange, call)
  return call
}

function bindInput({ input, row }: RowEndpoint, raw: RawInput): Bound | Promise<Bound> {
  if (!input || (!row.body && raw.queryString === '')) return { value: {}, boundFrom: 'query', source: '' }
  return isLarge(raw) ? bindLarge(raw, input, input.limits) : bind(raw, input, input.limits)
}

/**
 * Throws a Fault of 400 for a condition that the write would ignore, because it would overwrite values that the client
 * wants to keep.
 */
function refuseConditions(versioned: Route['versioned'], headers: IncomingHttpHeaders): void {
  if (headers['if-none-match'] !== undefined)
    throwBrokenRule('/If-None-Match', 'is for reads: POST creates, and answers 409 for an external_id that is taken')
  if (!versioned && headers['if-match'] !== undefined)
    throwBrokenRule('/If-Match', 'is for writes of one person or record: send this write without the header')
}

type DryRunRead = { isDryRun: boolean; isMember?: boolean; queryString: string }

/**
 * Reads `dry_run` from the query of a write. `isMember` says that it belongs to the body. A write never ignores the
 * parameter: this throws a Fault of 400 if the row has no dry run, or if the request has an Idempotency-Key.
 */
function readDryRun({ isWrite, dryRun }: RowEndpoint, query: string, isKeyed: boolean): DryRunRead {
  const { isAnswered, isBodyMember, isQueryMember } = dryRun
  if (query === '' || !isWrite || isQueryMember) return { isDryRun: false, queryString: query }
  const { isDryRun, queryString } = takeDryRun(query)
  if (isDryRun && !isAnswered && !isBodyMember)
    throwInvalidDryRun('this endpoint has no dry run. Nothing was written; send the request without the parameter')
  if (isDryRun && isKeyed) throwKeyedDryRun()
  return isBodyMember ? { isDryRun: false, isMember: isDryRun, queryString: query } : { isDryRun, queryString }
}

function localUrlOf({ request: { socket } }: Exchange, { tls }: Config): string {
  const { localAddress = '0.0.0.0', localPort = 0 } = socket
  // An IPv6 socket shows the address of an IPv4 client as an IPv4-mapped address.
  const address = localAddress.replace(/^::ffff:(?=.*\.)/, '')
  return `${tls ? 'https' : 'http'}://${address.includes(':') ? `[${address}]` : address}:${localPort}`
}

/**
 * Adds the parts that the kind of a row needs to its call: elements of a batch, lines of a stream, or events to wait
 * for.
 */
function addParts(services: RowServices, { row, checkItem }: RowEndpoint, exchange: Exchange, call: BoundCall): void {
  if (row.item) Object.assign(call, { checkItem: (value: unknown) => checkItem!(value, call.boundFrom) })
  if (!row.line && !row.follows) return
  const { drain, logger, config } = services
  const stream: StreamState = {
    explain: error => explain(exchange, error, logger),
    draining: () => !drain.isAccepting(),
  }
  Object.assign(
    call,
    stream,
    row.line ? linesOf(exchange, checkItem!, config) : { following: followingOf(services, exchange) },
  )
}

function linesOf({ request }: Exchange, checkItem: CheckItem, { limits }: Config) {
  const check = (value: unknown) => checkItem(value, 'body')
  return {
    chunks: readChunks(request, limits.requestMs),
    isCsv: isCsv.test(request.headers['content-type'] ?? ''),
    checkLine: (line: Buffer) => {
      const parsed = parseLine(line, limits)
      return parsed instanceof Promise ? parsed.then(check) : check(parsed)
    },
  }
}

function followingOf(services: RowServices, exchange: Exchange): Following {
  const { request, response, deadline } = exchange
  return {
    lastEventId: request.headers['last-event-id'] as string | undefined,
    begin: () => {
      exchange.followsSinceMs = performance.now()
      deadline.end()
      exchange.leave()
      // Node sets the timeout of an idle connection again after the response.
      request.socket.setTimeout(0)
    },
    authenticate: () => authenticateWithRole(services, exchange),
    disconnect: () => void response.destroy(),
  }
}
