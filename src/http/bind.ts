import type { TSchema } from 'typebox'
import type { Limits } from '../config.ts'
import { fail } from '../errors.ts'
import { parseJson } from './json.ts'
import { coerce, parseQuery } from './query.ts'
import { trimAndCheck } from './trim.ts'

export type Bound = { value: Record<string, unknown>; bound_from: 'body' | 'query'; bytes: number }

/** What arrived: the raw body, its content type, and the query string without its question mark. */
export type Arrived = { content_type: string | undefined; body: Buffer | undefined; query_string: string }

const is_json = /^[\t ]*application\/json[\t ]*(;|$)/i

/**
 * Binds a request: a non-empty body under `application/json`, else the query parameters, never one after the other
 * failed. Strings come out trimmed. Throws a Fault of 400: broken JSON, a broken query, or neither of the two.
 */
export function bind(
  { content_type, body, query_string }: Arrived,
  { body: schema, has_defaults }: { body: TSchema; has_defaults?: boolean },
  limits: Limits,
): Bound {
  if (body && body.length > 0 && is_json.test(content_type ?? '')) {
    const parsed = parseJson(body, limits) as Record<string, unknown>
    return { value: trimAndCheck(parsed, limits), bound_from: 'body', bytes: body.length }
  }
  const parsed = parseQuery(query_string, limits, schema)
  if (!has_defaults && Object.keys(parsed).length === 0) bodyRequired(content_type, body)
  const value = coerce(schema, trimAndCheck(parsed, limits))
  return { value: value as Record<string, unknown>, bound_from: 'query', bytes: query_string.length }
}

function bodyRequired(content_type: string | undefined, body: Buffer | undefined): never {
  const ignored =
    body && body.length > 0 ? `a body of type ${content_type ?? 'unknown'} is ignored` : 'the body is empty'
  fail('invalid_parameter', `A body is required, sent with Content-Type: application/json (${ignored}).`, {
    details: [{ path: '', message: 'body required' }],
  })
}
