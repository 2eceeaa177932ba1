import type { OpenRoute, Route } from '../http/pipeline/route.ts'
import { headers, openOperationOf, operationOf } from './operation.ts'
import { createRefusals } from './refusals.ts'
import { createShapes, type JsonSchema } from './shapes.ts'

/** What a document is made of. */
export type Contract = {
  info: { title: string; version: string; summary: string; description: string }
  /** The resources, in order. */
  tags: { name: string; description: string }[]
  rows: Route[]
  openRows: OpenRoute[]
}

export type OpenApiDocument = {
  openapi: string
  paths: Record<string, Record<string, JsonSchema>>
  components: Record<string, Record<string, JsonSchema>>
  [field: string]: unknown
}

/**
 * The OpenAPI 3.1 document of a contract: each row of its table one operation, each titled schema one component.
 * Throws an Error where two schemas of one title differ.
 */
export function documentOf({ info, tags, rows, openRows }: Contract): OpenApiDocument {
  const shapes = createShapes()
  const refusals = createRefusals(shapes)
  const parts = { shapes, refusals, parameters: {} as Record<string, JsonSchema> }
  const paths: OpenApiDocument['paths'] = {}
  for (const row of rows) addOperation(paths, row.path, row.method, operationOf(row, parts))
  for (const row of openRows) addOperation(paths, row.path, row.method ?? 'GET', openOperationOf(row, parts))
  const { schemas } = shapes
  const { responses } = refusals
  return {
    openapi: '3.1.0',
    info: { ...info, license: { name: 'MIT', identifier: 'MIT' } },
    servers: [{ url: '/', description: 'This service.' }],
    tags,
    paths,
    components: { securitySchemes, schemas, responses, parameters: parts.parameters, headers },
  }
}

const securitySchemes = {
  bearer: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'A token from `kith token`, or from POST /oauth/token. Each operation names the scope that it takes.',
  },
}

function addOperation(paths: OpenApiDocument['paths'], path: string, method: string, operation: JsonSchema) {
  paths[path] = { ...paths[path], [method.toLowerCase()]: operation }
}
