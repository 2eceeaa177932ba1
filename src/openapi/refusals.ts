import type { ErrorWord } from '../errors.ts'
import { honorsIdempotencyKey, type OpenRoute, type Route } from '../http/pipeline/route.ts'
import { errorEnvelope, exampleOf } from './envelopes.ts'
import type { JsonSchema, Shapes } from './shapes.ts'

type Words = Partial<Record<number, ErrorWord[]>>

/** What the pipeline in front of every handler may answer. */
const pipeline: Words = {
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
const ofBodies: Words = { 400: ['failed_binding_json', 'invalid_json'], 413: ['invalid_parameter'] }
const ofKeys: Words = { 409: ['invalid_parameter'], 422: ['invalid_parameter'] }
const ofOpenRoutes: Words = { 431: ['invalid_parameter'], 500: ['operation_failed'], 504: ['operation_failed'] }

/** The error words a row may answer with each status: what the pipeline, its address and its handler refuse. */
export function wordsOf(row: Route): Map<number, ErrorWord[]> {
  const parts: Words[] = [pipeline]
  if (row.body) parts.push(ofBodies)
  if (row.method === 'DELETE') parts.push({ 413: ['invalid_parameter'] })
  if (honorsIdempotencyKey(row)) parts.push(ofKeys)
  if (Object.keys(row.params ?? {}).length > 0) parts.push({ 404: ['not_found'] })
  if (row.versioned && row.method !== 'GET') parts.push({ 412: ['invalid_parameter'] })
  parts.push(listed(row.refusals))
  return collect(parts, row.statuses)
}

/** Those of an address outside `/v1`. */
export const openWordsOf = (row: OpenRoute): Map<number, ErrorWord[]> => collect([ofOpenRoutes, listed(row.refusals)])

function listed(refusals: Route['refusals'] = {}): Words {
  return Object.fromEntries(Object.entries(refusals).map(([status, word]) => [status, [word!]]))
}

/** Every word at its status, in order of status. `quirks` move a word to the status it has on this row. */
function collect(parts: Words[], quirks: Route['statuses'] = {}): Map<number, ErrorWord[]> {
  const found = new Map<number, Set<ErrorWord>>()
  for (const [status, words] of parts.flatMap(part => Object.entries(part)))
    for (const word of words!) {
      const answered = quirks[word] ?? Number(status)
      found.set(answered, (found.get(answered) ?? new Set()).add(word))
    }
  return new Map([...found].sort(([a], [b]) => a - b).map(([status, words]) => [status, [...words].sort()]))
}

const meanings: Record<number, string> = {
  400: 'The request cannot be read, or a value breaks a rule; `details` names each.',
  401: 'The token is missing or not valid.',
  403: 'The token lacks the scope.',
  404: 'There is no such thing.',
  405: 'Records of an event stack are never updated.',
  409: 'The external identifier or key is taken, or a request with this Idempotency-Key is still running: then `Retry-After` says when to ask again.',
  412: 'If-Match names another version.',
  413: 'The body is too large.',
  414: 'The path or the query is too long.',
  415: 'A compressed body is not accepted.',
  422: 'The Idempotency-Key was used with another body, or with other preferences.',
  429: 'Too many requests; no work was done.',
  431: 'The headers are too large.',
  500: 'The operation failed.',
  503: 'Overload, too many requests at once on one connection, or the database is away.',
  504: 'The request took longer than its time, and was cancelled.',
}

/** Headers of a refusal beyond X-Request-Id, by status. */
const headers: Record<number, string | string[]> = {
  401: 'WWW-Authenticate',
  403: 'WWW-Authenticate',
  405: 'Allow',
  409: 'Retry-After',
  429: ['Retry-After', 'RateLimit', 'RateLimit-Policy'],
  503: 'Retry-After',
}

/** The responses of refusals that a document shares: one for each status and set of words. */
export function createRefusals(shapes: Shapes) {
  const responses: Record<string, JsonSchema> = {}
  const write = (wordsByStatus: Map<number, ErrorWord[]>): Record<string, JsonSchema> =>
    Object.fromEntries(
      [...wordsByStatus].map(([status, words]) => {
        const name = [status, ...words].join('-')
        responses[name] ??= responseOf(shapes, status, words)
        return [status, { $ref: `#/components/responses/${name}` }]
      }),
    )
  return { responses, write }
}

function responseOf(shapes: Shapes, status: number, words: ErrorWord[]): JsonSchema {
  const description = meaningOf(status, words)
  const names = ['X-Request-Id', headers[status] ?? []].flat()
  return {
    description,
    headers: Object.fromEntries(names.map(name => [name, { $ref: `#/components/headers/${name}` }])),
    content: {
      'application/json': {
        schema: { allOf: [shapes.write(errorEnvelope), { properties: { error: { enum: words } } }] },
        examples: Object.fromEntries(words.map(word => [word, { value: exampleOf(word, status, description) }])),
      },
    },
  }
}

/** A quirk is named: this status means something else there too. */
function meaningOf(status: number, words: ErrorWord[]): string {
  const meaning = meanings[status]!
  if (status === 500 && words.includes('not_found')) return `${meaning} With \`not_found\`: there is no such thing.`
  if (status === 400 && words.includes('duplicate_entry'))
    return `${meaning} With \`duplicate_entry\`: the external identifier is taken.`
  return meaning
}
