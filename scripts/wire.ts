// Writes what the client knows of the service: client/src/wire.ts, the wire types in TypeScript, from the schemas that the service validates
// with, client/src/endpoints.ts from its route table, and client/src/vocabulary.ts from its lists. Each has one definition, and the
// published client imports no file or package outside of it. Also writes the tables of such lists in the documents.
//   npm run wire

import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { observedLine } from '../src/observed/schema.ts'
import { aggregateLine } from '../src/queries/aggregates/schema.ts'
import { dossierLine } from '../src/rights/dossier-schema.ts'
import { errorStatuses } from '../src/values/errors.ts'
import { allEvents, eventSubjects } from '../src/webhooks/events.ts'
import { root } from './source.ts'
import { documents, documentText } from './wire-documents.ts'
import { endpointsText, rows, usesOf } from './wire-endpoints.ts'
import { vocabularyText } from './wire-vocabulary.ts'

type JsonSchema = {
  title?: string
  type?: string
  description?: string
  properties?: Record<string, JsonSchema>
  required?: string[]
  items?: JsonSchema
  patternProperties?: Record<string, JsonSchema>
  additionalProperties?: boolean | JsonSchema
  anyOf?: JsonSchema[]
  enum?: unknown[]
  const?: unknown
}

const plain: Record<string, string> = {
  string: 'string',
  integer: 'number',
  number: 'number',
  boolean: 'boolean',
  null: 'null',
}

/** The schemas with a title, by their titles: those of the requests and responses, and those that these contain. */
const shapes = new Map<string, JsonSchema>()

function collectShapes(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  const { title } = value as JsonSchema
  if (typeof title === 'string') shapes.set(title, value)
  for (const [keyword, part] of Object.entries(value)) if (keyword !== 'examples') collectShapes(part)
}

// The client has types of its own for the lines of streams, but for those of aggregates, observed keys and dossiers.
for (const { body, query, answer, dryRun, streams } of rows)
  collectShapes([body, query, ...(streams ? [] : [answer, dryRun])])
collectShapes([aggregateLine, observedLine, dossierLine])
const names = [...shapes.keys()].sort()

/** Returns the TypeScript type of a JSON Schema. Throws if the schema has no TypeScript type. */
export function typeOf(schema: JsonSchema, indent = ''): string {
  return shapes.has(schema.title ?? '') ? schema.title! : inlineType(schema, indent)
}

function inlineType(schema: JsonSchema, indent: string): string {
  if ('const' in schema) return literal(schema.const)
  if (schema.enum) return schema.enum.map(literal).join(' | ')
  if (schema.anyOf) return [...new Set(schema.anyOf.map(option => typeOf(option, indent)))].join(' | ')
  if (schema.type === 'array' && schema.items) return arrayOf(schema.items, indent)
  if (schema.properties) return objectOf(schema, indent)
  const [values] = Object.values(schema.patternProperties ?? {})
  if (values) return `Record<string, ${typeOf(values, indent)}>`
  if (schema.type === 'object') return 'Record<string, unknown>'
  if (schema.type !== undefined && plain[schema.type]) return plain[schema.type]!
  if (schema.type === undefined) return 'unknown'
  throw new Error(`no TypeScript type for ${JSON.stringify(schema)}`)
}

function literal(value: unknown): string {
  return typeof value === 'string' ? `'${value.replace(/[\\']/g, '\\$&')}'` : JSON.stringify(value)
}

function arrayOf(items: JsonSchema, indent: string): string {
  const element = typeOf(items, indent)
  return items.anyOf || items.enum ? `(${element})[]` : `${element}[]`
}

function objectOf({ properties = {}, required = [] }: JsonSchema, indent: string): string {
  const inner = `${indent}  `
  const fields = Object.entries(properties).map(([key, schema]) => {
    const about = aboutOf(schema)
    const mark = required.includes(key) ? '' : '?'
    const name = /^\w+$/.test(key) ? key : literal(key)
    return `${about ? `${inner}/** ${about} */\n` : ''}${inner}${name}${mark}: ${typeOf(schema, inner)}\n`
  })
  return `{\n${fields.join('')}${indent}}`
}

/** The description of a schema, or of its option that is not null. */
const aboutOf = ({ description, anyOf }: JsonSchema) =>
  description ?? anyOf?.find(option => option.description)?.description

/** The text of client/src/wire.ts. */
function wireText(): string {
  const codes = Object.keys(errorStatuses).map(literal)
  // TypeScript knows no patterns, but template literals.
  const types = names
    .filter(name => name !== 'WebhookEventName')
    .map(name => {
      const schema = shapes.get(name)!
      const about = [schema.description, ...usesOf(name)].filter(text => text !== undefined)
      const comment = about.length > 0 ? `/** ${about.join(' ')} */\n` : ''
      return `${comment}export type ${name} = ${inlineType(schema, '')}\n`
    })
  return [
    '// generated by scripts/wire.ts from the schemas that the service validates with. Change the schemas instead.\n',
    `/** The error codes, a closed list. */\nexport type ErrorCode =\n  | ${codes.join('\n  | ')}\n`,
    '/** What happens to a subject, in the names of events. */',
    `export type WebhookEventKind = ${allEvents.map(literal).join(' | ')}\n`,
    '/** An event that a webhook asks for: one of a subject, or all of it. */',
    `export type WebhookEventName = \`\${${eventSubjects.map(literal).join(' | ')}}.\${WebhookEventKind | '*'}\`\n`,
    types.join('\n'),
  ].join('\n')
}

/** The generated files, by path, each as a function of its present text. */
export const generated: Record<string, (present: string) => string> = {
  'client/src/wire.ts': () => formatted(wireText()),
  'client/src/endpoints.ts': () => formatted(endpointsText(typeOf, names)),
  'client/src/vocabulary.ts': () => formatted(vocabularyText()),
  ...Object.fromEntries(documents.map(path => [path, documentText])),
}

/** The text of a source in the format of the repository. */
function formatted(input: string): string {
  const words = ['check', '--write', '--stdin-file-path', join(root, 'client/src/generated.ts')]
  return execFileSync(join(root, 'node_modules/.bin/biome'), words, { cwd: root, input, encoding: 'utf8' })
}

if (import.meta.main)
  for (const [path, write] of Object.entries(generated)) {
    const file = join(root, path)
    writeFileSync(file, write(existsSync(file) ? readFileSync(file, 'utf8') : ''))
  }
