import type { TSchema } from 'typebox'
import type { Limits } from '../../config.ts'
import { fail } from '../../errors.ts'
import { parseJson } from './json.ts'
import { coerce, parseQuery } from './query.ts'
import { trimAndCheck } from './trim.ts'

export type Bound = { value: Record<string, unknown>; boundFrom: 'body' | 'query'; bytes: number }

/** What arrived: the raw body, its content type, and the query string without its question mark. */
export type Arrived = { contentType: string | undefined; body: Buffer | undefined; queryString: string }

const isJson = /^[\t ]*application\/json[\t ]*(;|$)/i

/**
 * Binds a request: a non-empty body under `application/json`, else the query parameters, never one after the other
 * failed. Strings come out trimmed. Throws a Fault of 400: broken JSON, a broken query, or neither of the two.
 */
export function bind(
  { contentType, body, queryString }: Arrived,
  { body: schema, hasDefaults }: { body: TSchema; hasDefaults?: boolean },
  limits: Limits,
): Bound {
  if (body && body.length > 0 && isJson.test(contentType ?? '')) {
    const parsed = parseJson(body, limits) as Record<string, unknown>
    return { value: trimAndCheck(parsed, limits), boundFrom: 'body', bytes: body.length }
  }
  const parsed = parseQuery(queryString, limits, schema)
  if (!hasDefaults && Object.keys(parsed).length === 0) bodyRequired(contentType, body)
  const value = coerce(schema, trimAndCheck(parsed, limits))
  return { value: value as Record<string, unknown>, boundFrom: 'query', bytes: queryString.length }
}

function bodyRequired(contentType: string | undefined, body: Buffer | undefined): never {
  const ignored =
    body && body.length > 0 ? `a body of type ${contentType ?? 'unknown'} is ignored` : 'the body is empty'
  fail('invalid_parameter', `A body is required, sent with Content-Type: application/json (${ignored}).`, {
    details: [{ path: '', message: 'body required' }],
  })
}
