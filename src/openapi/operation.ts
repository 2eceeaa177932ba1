import type { TSchema } from 'typebox'
import { honorsIdempotencyKey, type OpenRoute, type ParameterKind, type Route } from '../http/pipeline/route.ts'
import { successEnvelope } from './envelopes.ts'
import { ifMatchPattern, pathExternalId } from './patterns.ts'
import { type createRefusals, openWordsOf, wordsOf } from './refusals.ts'
import type { JsonSchema, Shapes } from './shapes.ts'

type Parts = { shapes: Shapes; refusals: ReturnType<typeof createRefusals>; parameters: Record<string, JsonSchema> }

const json = 'application/json'
const lines = 'application/x-ndjson'

const header = (description: string, schema: JsonSchema = { type: 'string' }) => ({ description, schema })

/** The headers that answers carry. */
export const headers = {
  'X-Request-Id': header(
    "The request's identifier: the caller's where it has the form `[\\w-]{1,64}`, else a fresh one.",
  ),
  ETag: header('The version of the entity, in double quotes.'),
  Location: header('The address of what was created.'),
  'Idempotency-Replayed': header('`true` where this is the first answer to the Idempotency-Key, once more.'),
  'Preference-Applied': header('`return=representation`, where it was asked for.'),
  'WWW-Authenticate': header('What the token or the client lacks, as RFC 6750 and RFC 6749 have it.'),
  Allow: header('The methods that the address takes.'),
  'Retry-After': header('Seconds.', { type: 'integer', minimum: 0 }),
  RateLimit: header(
    'Where a rate is configured, on every answer below `/v1`: what is left of the budget, and the seconds until there is more (draft-ietf-httpapi-ratelimit-headers-10).',
  ),
  'RateLimit-Policy': header('The budget itself: requests each second, and beyond them `kith-burst` more each minute.'),
}

// Without examples: the page at /docs would fill them in, and send what is written to somebody who is called so.
const kinds: Record<ParameterKind, { schema: JsonSchema; description: string }> = {
  external_id: {
    schema: { type: 'string', format: 'external-id', pattern: pathExternalId, minLength: 1, maxLength: 255 },
    description: "The client's own identifier, percent-encoded once (`/` as `%2F`).",
  },
  uuid: {
    schema: { type: 'string', format: 'uuid' },
    description: 'The internal identifier.',
  },
  object_id: {
    schema: { type: 'string', format: 'object-id', pattern: '^[0-9a-fA-F]{24}$' },
    description: 'The internal identifier: 24 hexadecimal digits.',
  },
  key: { schema: { type: 'string', minLength: 1 }, description: 'The key it was declared with.' },
  number: {
    schema: { type: 'integer', minimum: 1, maximum: 999_999_999 },
    description: 'The number it was given.',
  },
}

/** The operation object of a row. */
export function operationOf(row: Route, parts: Parts): JsonSchema {
  const { operationId, summary, description, tag, scope, body } = row
  return {
    operationId,
    tags: [tag],
    summary,
    description: [description, `Takes the scope \`${scope}\`.`].filter(Boolean).join('\n\n'),
    security: [{ bearer: [scope] }],
    parameters: parametersOf(row, parts),
    ...(body && { requestBody: requestOf(row, body, parts) }),
    ...(row.streams &&
      row.item && {
        requestBody: { required: true, content: { [lines]: contentOf(row.item, undefined, parts.shapes) } },
      }),
    responses: { ...successesOf(row, parts), ...parts.refusals.write(wordsOf(row)) },
  }
}

/** The operation object of an address outside `/v1`. */
export function openOperationOf(row: OpenRoute, { shapes, refusals }: Parts): JsonSchema {
  const { operationId, summary, description, tag, answer, answerType = json, enveloped, request } = row
  const content = enveloped ? envelopeOf(answer, undefined, shapes) : contentOf(answer, undefined, shapes)
  const own = Object.entries(row.ownRefusals ?? {}).map(([status, refusal]) => [
    status,
    ownRefusalOf(refusal, status, shapes),
  ])
  return {
    operationId,
    tags: [tag],
    summary,
    ...(description !== undefined && { description }),
    security: [],
    ...(request && {
      requestBody: { required: true, content: { [request.contentType]: contentOf(request.body, undefined, shapes) } },
    }),
    responses: {
      200: { description: 'Done.', headers: headersOf(['X-Request-Id']), content: { [answerType]: content } },
      ...Object.fromEntries(own),
      ...refusals.write(openWordsOf(row)),
    },
  }
}

function ownRefusalOf(
  { description, answer }: { description: string; answer: TSchema },
  status: string,
  shapes: Shapes,
): JsonSchema {
  const names = status === '401' ? ['X-Request-Id', 'WWW-Authenticate'] : ['X-Request-Id']
  return { description, headers: headersOf(names), content: { [json]: contentOf(answer, undefined, shapes) } }
}

function parametersOf(row: Route, { parameters }: Parts): JsonSchema[] {
  const { params, versioned, prefers, method } = row
  const share = (name: string, parameter: JsonSchema) => {
    parameters[name] = parameter
    return { $ref: `#/components/parameters/${name}` }
  }
  const inPath = Object.entries(params ?? {}).map(([name, kind]) =>
    share(name, { name, in: 'path', required: true, ...kinds[kind] }),
  )
  const inHeaders = [share('X-Request-Id', request_id)]
  if (versioned && method !== 'GET') inHeaders.push(ifMatchOf(method, share))
  if (prefers)
    inHeaders.push(share(['Prefer', ...prefers.map(name => name.split('=')[0])].join('-'), preferOf(prefers)))
  if (honorsIdempotencyKey(row)) inHeaders.push(share('Idempotency-Key', idempotencyKey))
  const { properties = {} } = (row.query ?? {}) as { properties?: Record<string, JsonSchema> }
  const inQuery = Object.entries(properties).map(([name, { description, ...schema }]) =>
    share(`${row.operationId}-${name}`, { name, in: 'query', description, schema }),
  )
  return [...inPath, ...inQuery, ...inHeaders]
}

const request_id = {
  name: 'X-Request-Id',
  in: 'header',
  description:
    'Kept as the identifier of the request where it has the form `[A-Za-z0-9_-]{1,64}`; any other is passed over.',
  schema: { type: 'string' },
}

// Optional headers have no examples: the page at /docs would send them as they are, and a wrong version is a 412.
const if_match = {
  name: 'If-Match',
  in: 'header',
  description: '`*`, or the versions that may stand, in double quotes (`"3"`); else 412, and nothing is written.',
  schema: { type: 'string', pattern: ifMatchPattern },
}

const neverMatching =
  'The example is a version that no entity has: say which one is to be replaced, or leave the header out.'

/** The page fills an example in. A replacement clears what it omits, so there it names a version that no entity has. */
const ifMatchOf = (method: Route['method'], share: (name: string, parameter: JsonSchema) => { $ref: string }) =>
  method === 'PUT'
    ? share('If-Match-replace', {
        ...if_match,
        description: `${if_match.description} ${neverMatching}`,
        example: '"0"',
      })
    : share('If-Match', if_match)

const idempotencyKey = {
  name: 'Idempotency-Key',
  in: 'header',
  description:
    'Makes it safe to send the request again: for 24 hours the first answer is given once more, without further work. ' +
    'Another request under the same key is refused (422), and so is one that comes while the first is running (409). ' +
    '429 and 5xx are not kept.',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
}

const preferences = {
  'return=representation': 'answer the entity instead of `true`',
  'references=strict': 'refuse relationship targets that do not exist, instead of making placeholders',
  'handling=strict': 'refuse what would be answered with a warning',
}

const preferOf = (prefers: Route['prefers'] & {}) => ({
  name: 'Prefer',
  in: 'header',
  description: `RFC 7240. ${prefers.map(name => `\`${name}\`: ${preferences[name]}`).join('; ')}.`,
  schema: { type: 'string' },
})

function requestOf({ hasDefaults, example }: Route, body: TSchema, { shapes }: Parts): JsonSchema {
  const { required = [] } = body as { required?: string[] }
  return { required: !hasDefaults || required.length > 0, content: { [json]: contentOf(body, example?.body, shapes) } }
}

function successesOf(row: Route, { shapes }: Parts): Record<string, JsonSchema> {
  const { successes = { 200: 'Done.' }, answer, example, versioned, prefers, method } = row
  const names = ['X-Request-Id']
  if (versioned && method !== 'DELETE') names.push('ETag')
  if (prefers?.includes('return=representation')) names.push('Preference-Applied')
  if (honorsIdempotencyKey(row)) names.push('Idempotency-Replayed')
  const content = row.streams
    ? { [lines]: contentOf(answer, example?.answer, shapes) }
    : { [json]: envelopeOf(answer, example?.answer, shapes) }
  return Object.fromEntries(
    Object.entries(successes).map(([status, description]) => {
      const shown = status === '201' ? [...names, 'Location'] : names
      return [status, { description, headers: headersOf(shown), content }]
    }),
  )
}

const headersOf = (names: string[]) =>
  Object.fromEntries(names.map(name => [name, { $ref: `#/components/headers/${name}` }]))

function contentOf(schema: TSchema, example: unknown, shapes: Shapes): JsonSchema {
  const shown = example ?? exampleOf(schema)
  return { schema: shapes.write(schema), ...(shown !== undefined && { example: shown }) }
}

function envelopeOf(data: TSchema, example: unknown, shapes: Shapes): JsonSchema {
  const shown = example ?? exampleOf(data)
  return contentOf(successEnvelope(data), shown === undefined ? undefined : { status: 'Success', data: shown }, shapes)
}

/** A value that a schema tells of by itself: its first example, its one value, or that of the first of a union. */
function exampleOf(schema: TSchema): unknown {
  const { examples, const: only, anyOf } = schema as { examples?: unknown[]; const?: unknown; anyOf?: TSchema[] }
  return examples?.[0] ?? only ?? (anyOf?.[0] && exampleOf(anyOf[0]))
}
