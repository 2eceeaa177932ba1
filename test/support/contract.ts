import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import type { OpenApiDocument } from '../../src/openapi/document.ts'
import { formats } from '../../src/values/formats.ts'

/** A response of the service, as a test received it. */
export type ReceivedResponse = {
  method: string
  path: string
  status: number
  body: unknown
  /** The media type, if the response has several. The default is the first that is documented. */
  contentType?: string
  headers?: Headers
}

/** Creates an Ajv with kith's formats and a document. References to the document's parts begin with `contract#/`. */
export function createAjv(document: OpenApiDocument): Ajv2020 {
  const ajv = new Ajv2020({
    strict: true,
    strictTypes: false,
    allowUnionTypes: true,
    allErrors: true,
    code: { optimize: false },
  })
  for (const [name, { holds }] of Object.entries(formats)) ajv.addFormat(name, { type: 'string', validate: holds })
  // A format for generators. The schemas have the bounds.
  ajv.addFormat('int64', true)
  const words = [
    'openapi',
    'info',
    'servers',
    'tags',
    'paths',
    'components',
    'asyncapi',
    'defaultContentType',
    'channels',
    'operations',
  ]
  return ajv
    .addVocabulary([...words, 'x-enum-varnames'])
    .addSchema({ ...(forbidUndocumented(document) as OpenApiDocument), $id: 'contract' })
}

/**
 * Forbids undocumented fields in all objects. Clients have to accept new fields, but kith must not send undocumented
 * ones.
 */
function forbidUndocumented(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(forbidUndocumented)
  if (typeof value !== 'object' || value === null) return value
  const closed = Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, forbidUndocumented(inner)]))
  const isOpen = closed.type === 'object' && closed.properties && !('additionalProperties' in closed)
  return isOpen ? { ...closed, additionalProperties: false } : closed
}

type CompiledDocument = { document: OpenApiDocument; ajv: Ajv2020; validators: Map<string, ValidateFunction> }

/** By text. Most configurations have the same document, which takes 0.2 s of processor time to compile. */
const compiledDocuments = new Map<string, CompiledDocument>()

function compileDocument(document: OpenApiDocument): CompiledDocument {
  const text = JSON.stringify(document)
  const compiled = compiledDocuments.get(text) ?? { document, ajv: createAjv(document), validators: new Map() }
  compiledDocuments.set(text, compiled)
  return compiled
}

/** Creates a check of responses against a document. The check throws an Error that lists the differences. */
export function createContractCheck(createDocument: () => OpenApiDocument): (answered: ReceivedResponse) => void {
  let compiled: CompiledDocument | undefined
  return received => {
    if (received.method === 'HEAD') return
    compiled ??= compileDocument(createDocument())
    const { document, ajv, validators } = compiled
    const pointer = schemaPointer(document, received)
    checkHeaders(document, pointer, received)
    if (received.status === 304) return
    const validate = validators.get(pointer) ?? ajv.compile(schemaAt(document, pointer))
    validators.set(pointer, validate)
    if (validate(received.body)) return
    const { method, path, status, body } = received
    const faults = ajv.errorsText(validate.errors, { dataVar: 'body' })
    throw new Error(
      `${method} ${path} returned ${status} with a body that does not match the document: ${faults}\n${JSON.stringify(body)}`,
    )
  }
}

/**
 * Throws an Error for an undocumented header, and for a missing Location. Whether other headers are sent depends on the request. The
 * headers of rate limits, which every response may have, are documented at 429.
 */
function checkHeaders(
  document: OpenApiDocument,
  pointer: string,
  { method, path, status, headers }: ReceivedResponse,
): void {
  const parts = pointer.slice(1, pointer.indexOf('/content')).split('/')
  const response = parts.reduce<unknown>(
    (value, part) => (value as Record<string, unknown> | undefined)?.[part.replaceAll('~1', '/').replaceAll('~0', '~')],
    document,
  ) as { headers?: object } | undefined
  if (!headers || !response) return
  const documented = ['RateLimit', 'RateLimit-Policy', ...Object.keys(response.headers ?? {})]
  const undocumented = Object.keys(document.components.headers!).find(
    name => headers.has(name) && !documented.includes(name),
  )
  if (undocumented) throw new Error(`${method} ${path} returned ${status} with the undocumented header ${undocumented}`)
  if (status === 201 && documented.includes('Location') && !headers.has('Location'))
    throw new Error(`${method} ${path} returned 201 without the documented header Location`)
}

/** A reference to a schema. That of an error response allows the codes of its examples only. */
function schemaAt({ components }: OpenApiDocument, pointer: string): object {
  const [, name] = /^\/components\/responses\/([^/]+)/.exec(pointer) ?? []
  const schema = { $ref: `contract#${pointer}` }
  if (name === undefined) return schema
  return { ...schema, properties: { error: { enum: documentedCodes(components.responses![name]!) } } }
}

/** The error codes that an error response documents: the names of its examples. */
export function documentedCodes({ content }: { content?: unknown }): string[] {
  return Object.keys((content as { 'application/json': { examples: object } })['application/json'].examples)
}

const errorSchema = '/components/schemas/Error'
const ndjsonType = 'application/x-ndjson'

/**
 * The JSON Pointer of a response's schema. For an unknown operation it is the error schema; a success of one throws.
 */
function schemaPointer(
  { paths, components }: OpenApiDocument,
  { method, path, status, contentType: received }: ReceivedResponse,
): string {
  // A literal path may lack a method that a path with a parameter has: GET /v1/people/list reads a person.
  const withMethod = Object.keys(paths).filter(template => paths[template]![method.toLowerCase()])
  const template = templateOf(withMethod, path)
  const operation = template === undefined ? undefined : paths[template]![method.toLowerCase()]
  if (template === undefined || operation === undefined) {
    if (status >= 400) return errorSchema
    throw new Error(`${method} ${path} returned ${status}, but the document has no such operation`)
  }
  const response = (operation.responses as Record<number, { $ref?: string; content?: object }>)[status]
  // The path is none of this operation: PATCH /v1/schema/attributes/batch is not that of an attribute.
  if (!response && status === 405) return errorSchema
  if (!response) throw new Error(`${method} ${path} returned ${status}, which ${template} does not document`)
  const documented = Object.keys(response.content ?? {})
  const contentType = documented.find(type => type === received) ?? documented[0] ?? 'application/json'
  const inner = `/content/${contentType.replace('/', '~1')}/schema${contentType === ndjsonType ? '/contentSchema' : ''}`
  if (response.$ref === undefined)
    return `/paths/${template.replaceAll('~', '~0').replaceAll('/', '~1')}/${method.toLowerCase()}/responses/${status}${inner}`
  const name = response.$ref.slice('#/components/responses/'.length)
  if (!components.responses?.[name]) throw new Error(`the document refers to ${response.$ref}, which does not exist`)
  return `/components/responses/${name}${inner}`
}

/**
 * Finds the path template of a path. If several match, a literal segment wins over a parameter, the last segment first:
 * `/v1/people/internal/history` belongs to a person named internal.
 */
export function templateOf(templates: string[], address: string): string | undefined {
  const segments = address.split('?')[0]!.split('/')
  const isParameter = (segment: string) => segment.startsWith('{')
  const matching = templates.filter(template => {
    const templateSegments = template.split('/')
    // A tile is the rest of the path.
    if (template.endsWith('/{tile}')) return address.startsWith(template.slice(0, -'{tile}'.length))
    return (
      templateSegments.length === segments.length &&
      templateSegments.every((segment, index) =>
        isParameter(segment) ? segments[index] !== '' : segment === segments[index],
      )
    )
  })
  const rank = (template: string) =>
    template
      .split('/')
      .map(segment => (isParameter(segment) ? '1' : '0'))
      .toReversed()
      .join('')
  return matching.sort((a, b) => rank(a).localeCompare(rank(b)))[0]
}
