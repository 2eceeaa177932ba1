import type { TSchema } from 'typebox'
import type { Limits } from '../../process/config.ts'
import { yieldIfDue } from '../../process/event-loop.ts'
import { refuse } from '../../values/errors.ts'
import { parseJson, parseLargeJson } from './json.ts'
import { coerce, parseQuery } from './query.ts'
import { trimAndCheck, trimAndCheckLarge } from './trim.ts'

/** `source` is the raw body or query string. */
export type Bound = { value: Record<string, unknown>; boundFrom: 'body' | 'query'; source: Buffer | string }

/** The input of a request: the raw body, its content type, and the query string without the question mark. */
export type RawInput = { contentType: string | undefined; body: Buffer | undefined; queryString: string }

const isJson = /^[\t ]*application\/(merge-patch\+)?json[\t ]*(;|$)/i

/**
 * Binds a request from a non-empty body of JSON or a merge patch (RFC 7396) or, without one, from the query. A body
 * that fails is not replaced by the query. Strings are trimmed. Throws a Fault of 400 for invalid JSON, an invalid
 * query, or neither of the two.
 */
export function bind(
  { contentType, body, queryString }: RawInput,
  { body: schema, hasDefaults }: { body: TSchema; hasDefaults?: boolean },
  limits: Limits,
): Bound {
  if (body && body.length > 0 && isJson.test(contentType ?? ''))
    return { value: bindValue(parseJson(body, limits), schema, 'body', limits), boundFrom: 'body', source: body }
  const parsed = parseQuery(queryString, limits, schema)
  if (!hasDefaults && Object.keys(parsed).length === 0) throwBodyRequired(contentType, body)
  return { value: bindValue(parsed, schema, 'query', limits), boundFrom: 'query', source: queryString }
}

/**
 * Binds a parsed object: a request, an element of a batch or a line of an import. Its strings are trimmed and checked
 * before the schema validates them, so that a body has the same effect everywhere.
 */
export function bindValue(
  parsed: unknown,
  schema: TSchema,
  boundFrom: Bound['boundFrom'],
  limits: Parameters<typeof trimAndCheck>[1],
): Record<string, unknown> {
  const trimmed = trimAndCheck(parsed as Record<string, unknown>, limits)
  return boundFrom === 'query' ? (coerce(schema, trimmed) as Record<string, unknown>) : trimmed
}

/** A larger body is bound in pieces. A body of this size with as many keys as possible takes up to 4 ms. */
const largeBodyBytes = 16_384

/** Whether the input is a JSON body to bind by {@link bindLarge}. */
export function isLarge(input: RawInput): input is RawInput & { body: Buffer } {
  return input.body !== undefined && input.body.length > largeBodyBytes && isJson.test(input.contentType ?? '')
}

/** As {@link bind}, for a large JSON body: yields to the event loop between its pieces. */
export async function bindLarge(
  { body }: { body: Buffer },
  { body: schema }: { body: TSchema },
  limits: Limits,
): Promise<Bound> {
  await yieldIfDue()
  const { properties = {} } = schema as { properties?: Record<string, { maxItems?: number }> }
  const maxElements = (key: string) => (Object.hasOwn(properties, key) ? properties[key]!.maxItems : undefined)
  const parsed = (await parseLargeJson(body, limits, { maxElements })) as Record<string, unknown>
  await yieldIfDue()
  const value = await trimAndCheckLarge(parsed, limits)
  await yieldIfDue()
  return { value, boundFrom: 'body', source: body }
}

/** Parses a line of an import. */
export function parseLine(line: Buffer, limits: Limits): unknown | Promise<unknown> {
  return line.length > largeBodyBytes ? parseLargeJson(line, limits) : parseJson(line, limits)
}

function throwBodyRequired(contentType: string | undefined, body: Buffer | undefined): never {
  const reason = body && body.length > 0 ? `a body of type ${contentType || 'unknown'} is ignored` : 'the body is empty'
  refuse('invalid_parameter', `Body required: send it with Content-Type: application/json (${reason}).`, {
    details: [{ path: '', message: 'a body is required' }],
  })
}
