import type { TSchema } from 'typebox'
import {
  dryRunSupport,
  honorsIdempotencyKey,
  honorsIfNoneMatch,
  type OpenRoute,
  type ParameterKind,
  type Route,
} from '../route/route.ts'
import { isWriting } from '../route/scopes.ts'
import { channels } from '../values/channels.ts'
import { Type } from '../values/json-schema.ts'
import { ifMatchPattern, pathExternalId } from './patterns.ts'
import { type createErrorResponses, errorCodesOf, openErrorCodesOf } from './refusals.ts'
import { type JsonSchema, pascalCase, type Shapes } from './shapes.ts'

/** The components that all operations share. */
type Parts = {
  shapes: Shapes
  errorResponses: ReturnType<typeof createErrorResponses>
  parameters: Record<string, JsonSchema>
}

const jsonType = 'application/json'
const ndjsonType = 'application/x-ndjson'

const header = (description: string, schema: JsonSchema = { type: 'string' }) => ({ description, schema })

/** The headers of responses. */
export const headers = {
  'X-Request-Id': header(
    'The identifier of the request: the one that the client sent if it matches `[\\w-]{1,64}`, else a new one.',
  ),
  ETag: header(
    'The version of the entity, in double quotes. If the request has `If-None-Match`, and of definitions always, the tag of the whole body.',
  ),
  Location: header('The path of the created resource.'),
  'Idempotency-Replayed': header(
    '`true` if this is the stored response to an earlier request with the same Idempotency-Key.',
  ),
  'Preference-Applied': header('`return=representation` if the request asked for it.'),
  'X-Kith-Warning': header(
    'A value that is stored as sent although it is no phone number: its path and what to do. Refused with `Prefer: handling=strict`.',
  ),
  'WWW-Authenticate': header('The reason of the refusal, in the format of RFC 6750 or RFC 6749.'),
  Allow: header('The methods that the path supports.'),
  'Retry-After': header('The seconds to wait before a retry.', { type: 'integer', minimum: 0 }),
  'X-Kith-Sequence': header(
    'The number of a change of the organization: the change log up to it includes the write. Send it as `If-Sequence` with a read that must show the write. Absent if the log does not tell of the request.',
    { type: 'integer', minimum: 1 },
  ),
  RateLimit: header(
    'On every response below `/v1` if a rate limit is configured: the requests that are left, and the seconds until the limit resets (draft-ietf-httpapi-ratelimit-headers-10).',
  ),
  'RateLimit-Policy': header(
    'The rate limit: requests per second, and `kith-burst`, the additional requests per minute.',
  ),
}

// The page at /docs/api would fill in the first value of an enum.
const channelParameter = {
  schema: { type: 'string', pattern: `^(${channels.join('|')})$` },
  description: `The channel: ${channels.map(channel => `\`${channel}\``).join(' or ')}.`,
}

// Path parameters have no examples. The page at /docs/api would fill them in, and a write could then reach an existing
// entity.
const pathParameters: Record<ParameterKind, { schema: JsonSchema; description: string }> = {
  external_id: {
    schema: { type: 'string', format: 'external-id', pattern: pathExternalId, minLength: 1, maxLength: 255 },
    description: "The client's own identifier, percent-encoded once (`/` as `%2F`).",
  },
  uuid: { schema: { type: 'string', format: 'uuid' }, description: 'The internal identifier.' },
  object_id: {
    schema: { type: 'string', format: 'object-id', pattern: '^[0-9a-fA-F]{24}$' },
    description: 'The internal identifier: 24 hexadecimal digits.',
  },
  key: { schema: { type: 'string', minLength: 1 }, description: 'The key of the definition.' },
  channel: channelParameter,
  client_id: {
    schema: { type: 'string', pattern: '^[a-z][a-z0-9_-]{0,62}\\.[\\w-]{1,64}$' },
    description: 'The `client_id` of the client.',
  },
  number: {
    schema: { type: 'integer', minimum: 1, maximum: 999_999_999 },
    description: 'The id of the definition.',
  },
  count: { schema: { type: 'integer', minimum: 0, maximum: 999_999_999_999_999 }, description: 'A number from 0.' },
  path: {
    schema: { type: 'string', minLength: 1 },
    description: 'The rest of the path. Its slashes need no percent-encoding.',
  },
}

/** The description of an operation: the description of its row, its deprecation, and the scope that it requires. */
export function descriptionOf({ description, deprecated, scope }: Route): string {
  const end = deprecated && `Deprecated since ${deprecated.since}. It goes on ${deprecated.sunset} at the earliest.`
  return [description, end, `Requires the scope \`${scope}\`.`].filter(Boolean).join('\n\n')
}

/** The security scheme of the routes. */
export const bearerScheme = {
  type: 'http',
  scheme: 'bearer',
  bearerFormat: 'JWT',
  description: 'A token from `kith token`, or from POST /oauth/token. Each operation names the scope that it requires.',
}

/** The operation object of a row of the route table. */
export function operationOf(row: Route, parts: Parts): JsonSchema {
  const { operationId, summary, tag, scope, body, deprecated } = row
  return {
    operationId,
    tags: [tag],
    summary,
    description: descriptionOf(row),
    ...(deprecated && { deprecated: true }),
    security: [{ bearer: [scope] }],
    parameters: parametersOf(row, parts),
    ...(body && { requestBody: requestOf(row, body, parts) }),
    ...(row.line && {
      requestBody: {
        required: true,
        content: {
          [ndjsonType]: linesOf(row.line, undefined, parts.shapes, `${namePrefix(row)}Line`),
          'text/csv': {
            schema: { type: 'string', format: 'binary', description: 'A table. Its first line names the fields.' },
          },
        },
      },
    }),
    responses: { ...successesOf(row, parts), ...parts.errorResponses.write(errorCodesOf(row)) },
  }
}

/** The operation object of a path outside `/v1`. */
export function openOperationOf(row: OpenRoute, parts: Parts): JsonSchema {
  const { shapes, errorResponses } = parts
  const { operationId, summary, description, tag, answer, answerType = jsonType, enveloped, request } = row
  const name = namePrefix(row)
  const content = enveloped
    ? envelopeOf(answer, undefined, shapes, name)
    : contentOf(answer, undefined, shapes, `${name}Answer`)
  const ownResponses = Object.entries(row.ownRefusals ?? {}).map(([status, { description, answer }]) => {
    const headers = headersOf(status === '401' ? ['X-Request-Id', 'WWW-Authenticate'] : ['X-Request-Id'])
    const content = { [jsonType]: contentOf(answer, undefined, shapes, `${name}Error`) }
    return [status, { description, headers, content }]
  })
  return {
    operationId,
    tags: [tag],
    summary,
    ...(description !== undefined && { description }),
    security: [],
    ...(row.params && { parameters: pathParametersOf(row.params, sharing(parts)) }),
    ...(request && {
      requestBody: {
        required: true,
        content: { [request.contentType]: contentOf(request.body, undefined, shapes, `${name}Body`) },
      },
    }),
    responses: {
      200: { description: 'Done.', headers: headersOf(['X-Request-Id']), content: { [answerType]: content } },
      ...Object.fromEntries(ownResponses),
      ...errorResponses.write(openErrorCodesOf(row)),
    },
  }
}

type Share = (name: string, parameter: JsonSchema) => { $ref: string }

/** Returns a function that adds a shared parameter, and returns a reference to it. */
const sharing =
  ({ parameters, shapes }: Parts): Share =>
  (name, parameter) => {
    parameters[name] = { ...parameter, schema: shapes.write(parameter.schema as TSchema, name) }
    return { $ref: `#/components/parameters/${name}` }
  }

const pathParametersOf = (params: Record<string, ParameterKind>, share: Share): JsonSchema[] =>
  Object.entries(params).map(([name, kind]) =>
    share(name, {
      name,
      in: 'path',
      required: true,
      ...(name === 'channel' ? channelParameter : pathParameters[kind]),
    }),
  )

function parametersOf(row: Route, parts: Parts): JsonSchema[] {
  const { params = {}, versioned, prefers, method } = row
  const share = sharing(parts)
  const inPath = pathParametersOf(params, share)
  const inHeaders = [share('X-Request-Id', requestIdParameter)]
  if (versioned && method !== 'GET') inHeaders.push(ifMatchOf(method, share))
  if (prefers)
    inHeaders.push(share(['Prefer', ...prefers.map(name => name.split('=')[0])].join('-'), preferOf(prefers)))
  if (!isWriting(row.scope, method)) inHeaders.push(share('If-Sequence', ifSequenceParameter))
  if (honorsIfNoneMatch(row)) inHeaders.push(share('If-None-Match', ifNoneMatchParameter))
  if (honorsIdempotencyKey(row)) inHeaders.push(share('Idempotency-Key', idempotencyKeyParameter))
  const { properties = {} } = (row.query ?? {}) as { properties?: Record<string, JsonSchema> }
  const inQuery = Object.entries(properties).map(([name, { description, ...schema }]) =>
    share(`${row.operationId}-${name}`, { name, in: 'query', description, schema }),
  )
  const { isAnswered, isBodyMember } = dryRunSupport(row)
  if (isAnswered || isBodyMember) inQuery.push(share('dry_run', dryRunParameter))
  return [...inPath, ...inQuery, ...inHeaders]
}

const dryRunParameter = {
  name: 'dry_run',
  in: 'query',
  description:
    '`true`: return what the request would do or why it would be refused, and store nothing. It stands in the query also if the body is ' +
    'JSON, and excludes an Idempotency-Key.',
  schema: { type: 'boolean' },
}

/**
 * A header of a request. It has no example, because the page at /docs/api would send it, and a wrong version causes
 * 412.
 */
const headerParameter = (name: string, description: string, schema: JsonSchema = { type: 'string' }) => ({
  name,
  in: 'header',
  description,
  schema,
})

const requestIdParameter = headerParameter(
  'X-Request-Id',
  'The identifier of the request, if it matches `[A-Za-z0-9_-]{1,64}`. Any other value is ignored.',
)

const ifSequenceParameter = headerParameter(
  'If-Sequence',
  'The number of a change that the read must show, as `X-Kith-Sequence` of a write returned it. On a standby, the read waits for the ' +
    'change up to a second. 503 with `Retry-After: 1` if it does not arrive.',
  { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
)

const ifMatchParameter = headerParameter(
  'If-Match',
  '`*`, or the accepted versions in double quotes (`"3"`). If the entity has another version, the response is 412 and nothing is written.',
  { type: 'string', pattern: ifMatchPattern },
)

const ifNoneMatchParameter = headerParameter(
  'If-None-Match',
  'The ETag of an earlier response to a request with this header. If the response would have the same body, it is 304 without one. The first ' +
    'request may have the ETag of any response, or `"0"`.',
)

const exampleNote = 'No entity has the version of the example. Enter the version to replace, or leave out the header.'

/**
 * The page at /docs/api fills in an example, and a replacement clears the fields that it omits. So the example for PUT
 * is a version that no entity has.
 */
const ifMatchOf = (method: Route['method'], share: Share) =>
  method === 'PUT'
    ? share('If-Match-replace', {
        ...ifMatchParameter,
        description: `${ifMatchParameter.description} ${exampleNote}`,
        example: '"0"',
      })
    : share('If-Match', ifMatchParameter)

const idempotencyKeyParameter = headerParameter(
  'Idempotency-Key',
  'Makes retries safe: for 24 hours, a request with the same key gets the first response again and has no effect. ' +
    'A different request with the same key is refused (422), and so is one that arrives while the first is running ' +
    '(409). 429 and 5xx are not stored.',
  { type: 'string', minLength: 1, maxLength: 255 },
)

const preferences = {
  'return=representation': 'return the entity instead of `true`',
  'references=strict': 'refuse relationship targets that do not exist, instead of creating placeholders',
  'erased=recreate': 'store a person anew who was erased, instead of refusing',
  'handling=strict': 'refuse a request that would cause a warning',
}

const preferOf = (prefers: Route['prefers'] & {}) =>
  headerParameter('Prefer', `RFC 7240. ${prefers.map(name => `\`${name}\`: ${preferences[name]}`).join('; ')}.`)

function requestOf(row: Route, body: TSchema, { shapes }: Parts): JsonSchema {
  const { hasDefaults, example } = row
  const { required = [] } = body as { required?: string[] }
  return {
    required: !hasDefaults || required.length > 0,
    content: { [jsonType]: contentOf(body, example?.body, shapes, `${namePrefix(row)}Body`) },
  }
}

function successesOf(row: Route, { shapes }: Parts): Record<string, JsonSchema> {
  const { successes = { 200: 'Done.' }, answer, answerType, example, versioned, prefers, method, mediaTypes = {} } = row
  const names = ['X-Request-Id']
  if ((versioned === true && method !== 'DELETE') || honorsIfNoneMatch(row)) names.push('ETag')
  if (prefers?.includes('return=representation')) names.push('Preference-Applied')
  if (honorsIdempotencyKey(row)) names.push('Idempotency-Replayed')
  if (isWriting(row.scope, method) && !row.streams) names.push('X-Kith-Sequence')
  if (prefers?.includes('references=strict') && !row.streams) names.push('X-Kith-Warning')
  const contentIn = (type: string, data: TSchema, name: string, value?: unknown) =>
    type === ndjsonType ? linesOf(data, value, shapes, `${name}Line`) : contentOf(data, value, shapes, `${name}Answer`)
  const plainType = row.streams ? ndjsonType : answerType
  const contentWith = (data: TSchema, name: string) => {
    const content: Record<string, JsonSchema> = plainType
      ? { [plainType]: contentIn(plainType, data, name, example?.answer) }
      : { [jsonType]: envelopeOf(data, example?.answer, shapes, name) }
    for (const [type, schema] of Object.entries(mediaTypes)) content[type] = contentIn(type, schema, name)
    return content
  }
  const responseOf = (status: string, description: string) => {
    const headerNames = status === '201' ? [...names, 'Location'] : names
    const headers = { ...headersOf(headerNames), ...mapDescriptions(row.successHeaders) }
    const name = namePrefix(row)
    if (!row.dryRun || status !== '200') return { description, headers, content: contentWith(answer, name) }
    const content = contentWith(Type.Union([answer, row.dryRun]), `${name}OrDryRun`)
    return { description: `${description} ${dryRunDescription}`, headers, content }
  }
  const responses = Object.fromEntries(
    Object.entries(successes).map(([status, description]) => [status, responseOf(status, description)]),
  )
  if (honorsIfNoneMatch(row))
    return { ...responses, 304: { description: unchangedDescription, headers: headersOf(['X-Request-Id', 'ETag']) } }
  if (!row.dryRun || responses[200]) return responses
  // Many generated clients have one type for all successful responses, that of the first.
  const content = contentWith(Type.Union([answer, row.dryRun]), `${namePrefix(row)}OrDryRun`)
  const headers = headersOf(names.filter(name => name === 'X-Request-Id' || name === 'X-Kith-Warning'))
  return { ...responses, 200: { description: dryRunDescription, headers, content } }
}

const unchangedDescription = 'The body is that of the response with an ETag of `If-None-Match`.'
const dryRunDescription = 'With `dry_run=true`: what the request would do.'

const mapDescriptions = (headers: Record<string, string> = {}) =>
  Object.fromEntries(Object.entries(headers).map(([name, description]) => [name, header(description)]))

const headersOf = (names: string[]) =>
  Object.fromEntries(names.map(name => [name, { $ref: `#/components/headers/${name}` }]))

/** The prefix of the names of schemas that only this operation has. */
const namePrefix = ({ operationId }: { operationId: string }) => pascalCase(operationId)

function contentOf(schema: TSchema, example: unknown, shapes: Shapes, name: string): JsonSchema {
  const value = example ?? exampleOf(schema)
  return { schema: shapes.write(schema, name), ...(value !== undefined && { example: value }) }
}

/**
 * The content of a stream: text, whose lines `contentSchema` describes. If the content itself had this schema,
 * generated clients would send and parse a stream as one value.
 */
function linesOf(line: TSchema, example: unknown, shapes: Shapes, name: string): JsonSchema {
  const { schema, example: value } = contentOf(line, example, shapes, name)
  return {
    schema: {
      type: 'string',
      format: 'binary',
      description: 'Lines of JSON. `contentSchema` describes one.',
      contentMediaType: ndjsonType,
      contentSchema: schema,
    },
    ...(value !== undefined && { example: `${JSON.stringify(value)}\n` }),
  }
}

/** The envelope of a successful response around its `data`. */
const successEnvelope = (data: TSchema) => Type.Object({ status: Type.Literal('Success'), data })

/** The content of a successful response. Operations with the same named data share the name of the envelope. */
function envelopeOf(data: TSchema, example: unknown, shapes: Shapes, name: string): JsonSchema {
  const value = example ?? exampleOf(data)
  const { title = 'const' in data ? 'Done' : name } = data as { title?: string }
  const enveloped = value === undefined ? undefined : { status: 'Success', data: value }
  return contentOf(successEnvelope(data), enveloped, shapes, `${title}Envelope`)
}

/** The example of a schema: its first example, its constant, or the example of the first option of a union. */
function exampleOf(schema: TSchema): unknown {
  const { examples, const: only, anyOf } = schema as { examples?: unknown[]; const?: unknown; anyOf?: TSchema[] }
  return examples?.[0] ?? only ?? (anyOf?.[0] && exampleOf(anyOf[0]))
}
