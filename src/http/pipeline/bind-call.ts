import type { Caller } from '../../auth/caller.ts'
import type { Config } from '../../config.ts'
import { type Bound, bind, bindLarge, isLarge, type RawInput } from '../input/bind.ts'
import { takeDryRun, throwInvalidDryRun, throwKeyedDryRun } from '../input/dry-run.ts'
import { chooseMediaType } from '../input/media-type.ts'
import { readPreferences } from '../input/preferences.ts'
import type { Exchange } from './exchange.ts'
import type { Call } from './route.ts'
import type { RowEndpoint } from './row-endpoint.ts'
import type { RowServices } from './services.ts'

/** A call with the raw body or query string that it was bound from. */
export type BoundCall = Call & { source: Buffer | string }

/** Builds the call of a request from its path, query, headers and body: bound, trimmed and validated. Throws a Fault of 400. */
export async function bindCall(
  services: RowServices,
  endpoint: RowEndpoint,
  { exchange, caller, body }: { exchange: Exchange; caller: Caller; body: Buffer | undefined },
): Promise<BoundCall> {
  const { config, db, responseMemory } = services
  const { url, deadline, request } = exchange
  const { headers } = request
  const { input, lane, row } = endpoint
  const organization_id = caller.organization.id
  const queryAt = url.indexOf('?')
  const [path, query] = queryAt === -1 ? [url, ''] : [url.slice(0, queryAt), url.slice(queryAt + 1)]
  const params = endpoint.readParameters(path)
  const { isDryRun, isMember, queryString } = readDryRun(endpoint, query, headers['idempotency-key'] !== undefined)
  const raw = { contentType: headers['content-type'], body: row.body && body, queryString }
  const bound = await bindInput(endpoint, raw)
  if (isMember) bound.value.dry_run = true
  const preferences = readPreferences(headers['if-match'], headers.prefer as string | undefined)
  input?.validate(bound.value, bound.boundFrom)
  const isKeyed = headers['idempotency-key'] !== undefined
  if (endpoint.dryRun.isBodyMember && bound.value.dry_run === true && isKeyed) throwKeyedDryRun()
  return {
    db: db.shareOf(organization_id, lane),
    limits: config.limits,
    caller,
    params,
    body: bound.value,
    boundFrom: bound.boundFrom,
    source: bound.source,
    bytes: bound.source.length,
    preferences,
    mediaType: row.mediaTypes && chooseMediaType(headers.accept, Object.keys(row.mediaTypes)),
    isDryRun,
    isReader: false,
    written: { sequence: 0 },
    request_id: exchange.id,
    localUrl: () => localUrlOf(exchange, config),
    memory: {
      tryTake: bytes => responseMemory.tryTake(organization_id, bytes),
      take: bytes => responseMemory.take(organization_id, deadline.signal, bytes),
    },
    within: deadline.within,
    signal: deadline.signal,
  }
}

function bindInput({ input, row }: RowEndpoint, raw: RawInput): Bound | Promise<Bound> {
  if (!input || (!row.body && raw.queryString === '')) return { value: {}, boundFrom: 'query', source: '' }
  return isLarge(raw) ? bindLarge(raw, input, input.limits) : bind(raw, input, input.limits)
}

type DryRunRead = { isDryRun: boolean; isMember?: boolean; queryString: string }

/**
 * Reads `dry_run` of the query of a write. `isMember` says that it belongs to the body. A write never ignores the parameter: this throws a
 * Fault of 400 if the row has no dry run, or if the request has an Idempotency-Key.
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
  // An IPv6 socket shows the address of an IPv4 client as an IPv4-mapped one.
  const address = localAddress.replace(/^::ffff:(?=.*\.)/, '')
  return `${tls ? 'https' : 'http'}://${address.includes(':') ? `[${address}]` : address}:${localPort}`
}
