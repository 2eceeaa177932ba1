import type { TSchema } from 'typebox'
import type { Lane } from '../../db/servers/connection-shares.ts'
import type { Limits } from '../../process/config.ts'
import type { BatchCall, Call } from '../../route/call.ts'
import { dryRunSupport, honorsIdempotencyKey, type ParameterKind, type Route } from '../../route/route.ts'
import { isWriting } from '../../route/scopes.ts'
import { channels, isChannel } from '../../values/channels.ts'
import { refuse } from '../../values/errors.ts'
import { isExternalId, isObjectId, isUuid } from '../../values/formats.ts'
import { withUnseen } from '../../values/invisible-characters.ts'
import { bindValue } from '../input/bind.ts'
import { checkText, decodePercent, isAscii } from '../input/trim.ts'
import { compile } from '../input/validate.ts'

/** A row of the route table at one of its paths, with the values that all its requests share. */
export type RowEndpoint = ReturnType<typeof createEndpoint>

export type CheckItem = (value: unknown, boundFrom: Call['boundFrom']) => ReturnType<BatchCall['checkItem']>

/** The endpoint of a row at one of its paths. */
export function createEndpoint(row: Route, path: string, limits: Limits) {
  const isWrite = isWriting(row.scope, row.method)
  const item = row.item ?? row.line
  return {
    method: row.method,
    path,
    row,
    isWrite,
    lane: laneOf(row, isWrite),
    isKeyed: honorsIdempotencyKey(row),
    dryRun: dryRunSupport(row),
    readParameters: createParameterReader(row),
    /** The input of a request: its body, or its query on a row without a body. Undefined for a row without either. */
    input: inputOf(row, limits),
    /** Checks an element of a batch, or a line of a stream. Throws a Fault. Only on a row with elements or lines. */
    checkItem: item && createItemChecker(item, limits),
  }
}

/**
 * The lane of a row's database use. A GET reads one entity or definitions, and a stream uses the pool only to start.
 * Any other read is a page.
 */
function laneOf({ method, streams }: Route, isWrite: boolean): Lane {
  if (isWrite) return 'writes'
  return method === 'GET' || streams ? 'reads' : 'pages'
}

/** The nesting level of an element within the body of a batch. */
const itemDepth = 3

function inputOf({ body, query, hasDefaults, item }: Route, limits: Limits) {
  const schema = body ?? query
  if (!schema) return undefined
  // An element of a batch may nest as deeply as a body. Its strings are checked with the element.
  const ofBatch = { ...limits, jsonDepth: limits.jsonDepth + itemDepth, stringBytes: limits.bodyBytes }
  return {
    body: schema,
    hasDefaults: body === undefined || hasDefaults === true,
    limits: item ? ofBatch : limits,
    validate: compileLater(schema),
  }
}

function createItemChecker(item: TSchema, limits: Limits): CheckItem {
  const validate = compileLater(item)
  return (value, boundFrom) => {
    const bound = bindValue(value, item, boundFrom, limits)
    validate(bound, boundFrom)
    return bound
  }
}

/** Compiles the schema at the first call. Compiling the schemas of all rows at the start would take 0.15 s. */
function compileLater(schema: TSchema): ReturnType<typeof compile> {
  let validate: ReturnType<typeof compile> | undefined
  return (value, boundFrom) => {
    validate ??= compile(schema)
    validate(value, boundFrom)
  }
}

const kinds: Record<ParameterKind, { holds: (text: string) => boolean; message: string }> = {
  external_id: { holds: isExternalId, message: 'must be an external identifier of 1 to 255 characters' },
  uuid: { holds: isUuid, message: 'must be a UUID' },
  object_id: { holds: isObjectId, message: 'must be a record id of 24 hexadecimal digits' },
  key: { holds: text => text.length > 0, message: 'must be a key' },
  channel: { holds: isChannel, message: `must be ${channels.join(' or ')}` },
  client_id: {
    holds: text => /^[a-z][a-z0-9_-]{0,62}\.[\w-]{1,64}$/.test(text),
    message: 'must be the id of a client',
  },
  number: { holds: text => /^[1-9]\d{0,8}$/.test(text), message: 'must be a whole number from 1' },
  count: { holds: text => /^(0|[1-9]\d{0,14})$/.test(text), message: 'must be a whole number from 0' },
  path: { holds: text => text.length > 0, message: 'must be a path' },
}

/**
 * Returns a function that reads a route's path parameters, percent-decoded once (`%2F` included). It throws a Fault of
 * 400.
 */
export function createParameterReader({
  path,
  params = {},
}: Pick<Route, 'path' | 'params'>): (path: string) => Record<string, string> {
  const parameters = path.split('/').flatMap((segment, index) => {
    if (!segment.startsWith('{')) return []
    const name = segment.slice(1, -1)
    return [{ name, index, kind: params[name]! }]
  })
  return actualPath => {
    const found: Record<string, string> = {}
    if (parameters.length === 0) return found
    const values = actualPath.split('/')
    for (const { name, index, kind } of parameters) {
      const value = kind === 'path' ? values.slice(index).join('/') : values[index]
      found[name] = readParameter(name, kind, value ?? '')
    }
    return found
  }
}

function readParameter(name: string, kind: ParameterKind, encoded: string): string {
  const text = isAscii(encoded) ? decodePercent(encoded) : undefined
  if (text === undefined) return throwMalformedParameter(name, 'must be percent-encoded UTF-8')
  checkText(text, `/${name}`)
  const { holds, message } = kinds[kind]
  if (!holds(text)) throwMalformedParameter(name, withUnseen(message, text))
  return text
}

function throwMalformedParameter(name: string, message: string): never {
  return refuse('invalid_parameter', 'The path has a malformed parameter.', {
    details: [{ path: `/${name}`, message }],
  })
}
