import { honorsIdempotencyKey, type OpenRoute, type Route } from '../route/route.ts'
import { detail, type ErrorCode, errorStatuses } from '../values/errors.ts'
import { Type } from '../values/json-schema.ts'
import type { JsonSchema, Shapes } from './shapes.ts'

type CodesByStatus = Partial<Record<number, ErrorCode[]>>

/** The error codes of the pipeline stages before every handler. */
const pipelineCodes: CodesByStatus = {
  400: ['invalid_parameter'],
  401: ['unauthorized'],
  403: ['forbidden'],
  414: ['invalid_parameter'],
  415: ['invalid_parameter'],
  429: ['rate_limit_exceeded'],
  431: ['invalid_parameter'],
  500: ['operation_failed'],
  503: ['operation_failed'],
  504: ['operation_failed'],
}
const bodyCodes: CodesByStatus = { 400: ['failed_binding_json', 'invalid_json'] }
const idempotencyKeyCodes: CodesByStatus = { 409: ['invalid_parameter'], 422: ['invalid_parameter'] }
const openRouteCodes: CodesByStatus = {
  431: ['invalid_parameter'],
  500: ['operation_failed'],
  503: ['operation_failed'],
  504: ['operation_failed'],
}

/** The error codes that a row can return, by status: those of the pipeline, of its parameters and of its handler. */
export function errorCodesOf(row: Route): Map<number, ErrorCode[]> {
  const parts: CodesByStatus[] = [pipelineCodes]
  if (row.body) parts.push(bodyCodes)
  if (row.method !== 'GET' && !row.line) parts.push({ 413: ['invalid_parameter'] })
  if (honorsIdempotencyKey(row)) parts.push(idempotencyKeyCodes)
  if (Object.keys(row.params ?? {}).length > 0) parts.push({ 404: ['not_found'] })
  if (row.versioned && row.method !== 'GET') parts.push({ 412: ['invalid_parameter'] })
  parts.push(listCodes(row.refusals))
  return mergeCodes(parts, row.statuses)
}

/** The error codes that a path outside `/v1` can return, by status. */
export const openErrorCodesOf = (row: OpenRoute): Map<number, ErrorCode[]> =>
  mergeCodes([openRouteCodes, listCodes(row.refusals)])

function listCodes(refusals: Route['refusals'] = {}): CodesByStatus {
  return Object.fromEntries(Object.entries(refusals).map(([status, code]) => [status, [code!]]))
}

/** Merges the codes by status, in order of status. `statusOverrides` moves a code to its status on this row. */
function mergeCodes(parts: CodesByStatus[], statusOverrides: Route['statuses'] = {}): Map<number, ErrorCode[]> {
  const merged = new Map<number, Set<ErrorCode>>()
  for (const [listedStatus, codes] of parts.flatMap(part => Object.entries(part)))
    for (const code of codes!) {
      const status = statusOverrides[code] ?? Number(listedStatus)
      merged.set(status, (merged.get(status) ?? new Set()).add(code))
    }
  return new Map([...merged].sort(([a], [b]) => a - b).map(([status, codes]) => [status, [...codes].sort()]))
}

const meanings: Record<number, string> = {
  400: 'The request cannot be parsed, or a value is invalid. `details` lists the invalid values.',
  401: 'The token is missing or invalid.',
  403: 'The token lacks the scope.',
  404: 'The resource does not exist.',
  405: 'Records of an event stack cannot be updated.',
  409: 'The external identifier or key is taken, or a request with this Idempotency-Key is still running. In the second case, `Retry-After` says when to retry.',
  410: 'The position belongs to another numbering of the change log. Begin again.',
  412: 'The entity does not have the version of If-Match.',
  413: 'The body is too large.',
  414: 'The path or the query is too long.',
  415: 'The body is compressed, which kith does not support.',
  422: 'The Idempotency-Key was used with another body or other preferences.',
  429: 'There were too many requests. The request had no effect.',
  431: 'The headers are too large.',
  500: 'The operation failed.',
  503: 'The service is overloaded, the connection has too many concurrent requests, or the database is unavailable.',
  504: 'The request exceeded its deadline and was cancelled.',
}

/** The headers of an error response besides X-Request-Id, by status. */
const headers: Record<number, string | string[]> = {
  400: 'Idempotency-Replayed',
  401: 'WWW-Authenticate',
  403: 'WWW-Authenticate',
  404: 'Idempotency-Replayed',
  405: 'Allow',
  409: ['Retry-After', 'Idempotency-Replayed'],
  412: 'Idempotency-Replayed',
  429: ['Retry-After', 'RateLimit', 'RateLimit-Policy'],
  503: ['Retry-After', 'X-Kith-Sequence'],
}

const request_id = Type.String({ description: 'The request id, as in the header X-Request-Id.' })

const outcome = Type.Optional(
  Type.Enum(['unknown', 'done'], {
    description:
      '`unknown`: the database did not confirm the write, so it may have been done. `done`: the write was done, but its response is missing. Absent if the write was not done.',
  }),
)

/** The envelope of every error response. */
const errorEnvelope = Type.Object(
  {
    error: Type.Enum(Object.keys(errorStatuses) as ErrorCode[], { description: 'The error code, from a closed list.' }),
    errorstack: Type.Union([Type.Object({ reason: Type.String(), request_id }), Type.Null()], {
      description: 'Null for statuses below 500.',
    }),
    message: Type.String({ description: 'A sentence that describes the error.' }),
    details: Type.Array(detail, { description: 'One entry for each invalid value.' }),
    reason: Type.Optional(
      Type.Literal('erased', {
        description: 'A value belonged to a person who was erased. `Prefer: erased=recreate` stores the person anew.',
      }),
    ),
    request_id,
    outcome,
  },
  { title: 'Error' },
)

const exampleId = '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f'

/** An example of an error response. */
function errorExampleOf(code: ErrorCode, status: number, message: string) {
  const errorstack = status >= 500 ? { reason: message, request_id: exampleId } : null
  return { error: code, errorstack, message, details: [], request_id: exampleId }
}

/** The shared error responses of operations, one for each status and set of error codes. */
export function createErrorResponses(shapes: Shapes) {
  const responses: Record<string, JsonSchema> = {}
  const write = (codesByStatus: Map<number, ErrorCode[]>): Record<string, JsonSchema> =>
    Object.fromEntries(
      [...codesByStatus].map(([status, codes]) => {
        const name = [status, ...codes].join('-')
        responses[name] ??= responseOf(shapes, status, codes)
        return [status, { $ref: `#/components/responses/${name}` }]
      }),
    )
  return { responses, write }
}

function responseOf(shapes: Shapes, status: number, codes: ErrorCode[]): JsonSchema {
  const description = meaningOf(status, codes)
  const names = ['X-Request-Id', headers[status] ?? []].flat()
  return {
    description,
    headers: Object.fromEntries(names.map(name => [name, { $ref: `#/components/headers/${name}` }])),
    content: {
      'application/json': {
        // The examples name the codes. With a schema for each set of codes, generated clients would have a model for
        // each.
        schema: shapes.write(errorEnvelope, 'Error'),
        examples: Object.fromEntries(codes.map(code => [code, { value: errorExampleOf(code, status, description) }])),
      },
    },
  }
}

/** The meaning of a status, with its additional meaning on some rows. */
function meaningOf(status: number, codes: ErrorCode[]): string {
  const meaning = meanings[status]!
  if (status === 500 && codes.includes('not_found'))
    return `${meaning} With \`not_found\`: the resource does not exist.`
  if (status === 400 && codes.includes('duplicate_entry'))
    return `${meaning} With \`duplicate_entry\`: the external identifier is taken.`
  return meaning
}
