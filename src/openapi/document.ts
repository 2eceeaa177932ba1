import type { OpenRoute, Route } from '../route/route.ts'
import { bearerScheme, headers, openOperationOf, operationOf } from './operation.ts'
import { createErrorResponses } from './refusals.ts'
import { createShapes, type JsonSchema } from './shapes.ts'

/** The input of a document. */
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
 * Builds the OpenAPI 3.1 document of a contract. Each row becomes an operation, and each schema with a title a
 * component. Throws an Error if two different schemas have the same title.
 */
export function documentOf({ info, tags, rows, openRows }: Contract): OpenApiDocument {
  const shapes = createShapes()
  const errorResponses = createErrorResponses(shapes)
  const parts = { shapes, errorResponses, parameters: {} as Record<string, JsonSchema> }
  const paths: OpenApiDocument['paths'] = {}
  for (const row of rows) addOperation(paths, row.path, row.method, operationOf(row, parts))
  for (const row of openRows) addOperation(paths, row.path, row.method ?? 'GET', openOperationOf(row, parts))
  const { schemas } = shapes
  const { responses } = errorResponses
  return {
    openapi: '3.1.0',
    info: { ...info, license: { name: 'MIT', identifier: 'MIT' } },
    servers: [{ url: '/', description: 'This service.' }],
    tags,
    paths,
    components: { securitySchemes, schemas, responses, parameters: parts.parameters, headers },
  }
}

const securitySchemes = { bearer: bearerScheme }

function addOperation(paths: OpenApiDocument['paths'], path: string, method: string, operation: JsonSchema) {
  paths[path] = { ...paths[path], [method.toLowerCase()]: operation }
}
