import type { OpenApiDocument } from '../../src/openapi/document.ts'

export type Schema = {
  $ref?: string
  type?: string | string[]
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: boolean | Schema
  items?: Schema
  anyOf?: Schema[]
  enum?: unknown[]
  const?: unknown
  format?: string
  pattern?: string
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  minItems?: number
  maxItems?: number
  maxProperties?: number
}

/** The parts of a documented operation that a request is built from. */
export type Operation = {
  id: string
  method: string
  template: string
  /** Names of the path parameters, in order. */
  params: string[]
  /** The required scope; undefined if the endpoint needs no token. */
  scope: string | undefined
  body: Schema | undefined
  isBodyRequired: boolean
  isVersioned: boolean
  preferParameter: string | undefined
  /** Whether a request can be rehearsed by the query parameter. Merges, erasures, declarations and bulk changes have it in their body too, and are left out. */
  hasDryRun: boolean
  /** Whether the operation also answers as lines, to a request that accepts them. */
  hasLines: boolean
}

/** The media type of lines. */
export const ndjsonType = 'application/x-ndjson'

type DocumentedOperation = {
  operationId: string
  security: { bearer?: string[] }[]
  parameters?: { $ref: string }[]
  requestBody?: { required: boolean; content: { 'application/json': { schema: Schema } } }
  responses: { 200?: { content?: object } }
}

/**
 * Returns the documented operations, without the token endpoint, which uses OAuth's error format, and that of mail providers, which sign what they
 * send. Both have their own tests.
 */
export function operationsOf(document: OpenApiDocument): Operation[] {
  // Imports, exports and dossiers transfer lines, and have their own tests.
  const paths = Object.entries(document.paths).filter(
    ([template]) => !/^\/oauth\/token$|\/deliverability\/in\/|\/(import|export|dossier)$/.test(template),
  )
  return paths.flatMap(([template, methods]) =>
    Object.entries(methods).map(([method, documented]) =>
      operationOf(method, template, documented as unknown as DocumentedOperation),
    ),
  )
}

function operationOf(method: string, template: string, documented: DocumentedOperation): Operation {
  const parameters = (documented.parameters ?? []).map(({ $ref }) => $ref.split('/').at(-1)!)
  return {
    id: documented.operationId,
    method: method.toUpperCase(),
    template,
    params: [...template.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!),
    scope: documented.security[0]?.bearer?.[0],
    body: documented.requestBody?.content['application/json']?.schema,
    isBodyRequired: documented.requestBody?.required ?? false,
    isVersioned: parameters.includes('If-Match'),
    preferParameter: parameters.find(name => name.startsWith('Prefer')),
    hasDryRun: parameters.includes('dry_run') && !/\/((un)?merge|erase|declare|undo|bulk)$/.test(template),
    hasLines: template.endsWith('/aggregate') && ndjsonType in (documented.responses[200]?.content ?? {}),
  }
}

/** Resolves one `$ref` step. Returns a schema without `$ref` unchanged. */
export function resolveSchema(schema: Schema, document: OpenApiDocument): Schema {
  if (schema.$ref === undefined) return schema
  const name = schema.$ref.split('/').at(-1)!
  return document.components.schemas![name] as Schema
}

export const typesOf = ({ type }: Schema): string[] => (type === undefined ? [] : [type].flat())
