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

/** An operation of the document, as much of it as a request is made of. */
export type Operation = {
  id: string
  method: string
  template: string
  /** Names of the path's parameters, in order. */
  params: string[]
  /** The scope it takes; undefined for an address that wants no token. */
  scope: string | undefined
  body: Schema | undefined
  bodyRequired: boolean
  versioned: boolean
  prefers: string | undefined
}

type Shown = {
  operationId: string
  security: { bearer?: string[] }[]
  parameters?: { $ref: string }[]
  requestBody?: { required: boolean; content: { 'application/json': { schema: Schema } } }
}

/** All that the document offers in our own envelope: the token endpoint speaks OAuth's, and has tests of its own. */
export function operationsOf(document: OpenApiDocument): Operation[] {
  // What comes and goes in lines has tests of its own.
  const paths = Object.entries(document.paths).filter(
    ([template]) => !/^\/oauth\/token$|\/(import|export)$/.test(template),
  )
  return paths.flatMap(([template, methods]) =>
    Object.entries(methods).map(([method, shown]) => operationOf(method, template, shown as unknown as Shown)),
  )
}

function operationOf(method: string, template: string, shown: Shown): Operation {
  const parameters = (shown.parameters ?? []).map(({ $ref }) => $ref.split('/').at(-1)!)
  return {
    id: shown.operationId,
    method: method.toUpperCase(),
    template,
    params: [...template.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!),
    scope: shown.security[0]?.bearer?.[0],
    body: shown.requestBody?.content['application/json']?.schema,
    bodyRequired: shown.requestBody?.required ?? false,
    versioned: parameters.includes('If-Match'),
    prefers: parameters.find(name => name.startsWith('Prefer')),
  }
}

/** What a reference means, one step; the schema itself where it is none. */
export function resolved(schema: Schema, document: OpenApiDocument): Schema {
  if (schema.$ref === undefined) return schema
  const name = schema.$ref.split('/').at(-1)!
  return document.components.schemas![name] as Schema
}

export const typesOf = ({ type }: Schema): string[] => (type === undefined ? [] : [type].flat())
