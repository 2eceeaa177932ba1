import type { TSchema } from 'typebox'
import type { Limits } from '../../config.ts'
import type { Lane } from '../../db/connection-shares.ts'
import type { BatchCall, Call } from '../../route/call.ts'
import { dryRunSupport, honorsIdempotencyKey, type Route } from '../../route/route.ts'
import { isWriting } from '../../scopes.ts'
import { bindValue } from '../input/bind.ts'
import { createParameterReader } from '../input/parameters.ts'
import { compile } from '../input/validate.ts'

/** A row of the route table at one of its paths, with what is the same for all its requests. */
export type RowEndpoint = {
  method: Route['method']
  path: string
  row: Route
  isWrite: boolean
  lane: Lane
  isKeyed: boolean
  dryRun: ReturnType<typeof dryRunSupport>
  readParameters: ReturnType<typeof createParameterReader>
  /** What a request is bound from: its body, or its query on a row without one. Undefined for a row without either. */
  input: Input | undefined
  /** Checks an element of a batch, or a line of a stream. Throws a Fault. Only on a row with elements or lines. */
  checkItem: CheckItem | undefined
}

type Input = {
  body: TSchema
  hasDefaults: boolean
  limits: Limits
  validate: ReturnType<typeof compile>
}

type CheckItem = (value: unknown, boundFrom: Call['boundFrom']) => ReturnType<BatchCall['checkItem']>

/** The endpoint of a row at one of its paths. */
export function createEndpoint(row: Route, path: string, limits: Limits): RowEndpoint {
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
    input: inputOf(row, limits),
    checkItem: item && createItemChecker(item, limits),
  }
}

/** The lane of a row's database use. A GET reads one entity or definitions, and a stream uses the pool only to start. Any other read is a page. */
function laneOf({ method, streams }: Route, isWrite: boolean): Lane {
  if (isWrite) return 'writes'
  return method === 'GET' || streams ? 'reads' : 'pages'
}

/** The nesting level of an element within the body of a batch. */
const itemDepth = 3

function inputOf({ body, query, hasDefaults, item }: Route, limits: Limits): Input | undefined {
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

/** Compiles the schema at the first call. A start that compiled the schemas of all rows would take 0.15 s longer. */
function compileLater(schema: TSchema): ReturnType<typeof compile> {
  let validate: ReturnType<typeof compile> | undefined
  return (value, boundFrom) => {
    validate ??= compile(schema)
    validate(value, boundFrom)
  }
}
