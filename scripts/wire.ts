// Writes what the client knows of the service: client/src/wire.ts, the wire types in TypeScript, from the schemas that the service validates
// with, client/src/endpoints.ts from its route table, and client/src/vocabulary.ts from its lists. Each has one definition, and the
// published client imports no file or package outside of it. Also writes the tables of such lists in the documents.
//   npm run wire

import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TSchema } from 'typebox'
import {
  apiClient,
  apiClientPage,
  apiClientWithSecret,
  apiToken,
  newClient,
  newToken,
  scope,
  signingKey,
} from '../src/access/schema.ts'
import { attribute, attributePatch, newAttribute } from '../src/attributes/schema.ts'
import { change, changePage, historyPage } from '../src/changes/schema.ts'
import { loadConfig } from '../src/config.ts'
import {
  consent_type,
  consentHistoryPage,
  consentText,
  consentTypePatch,
  contactableBody,
  contactDecision,
  contactDecisions,
  contactReason,
  effectiveConsent,
  newConsentText,
  newConsentType,
  recordedAnswer,
  textPage,
} from '../src/consents/schema.ts'
import { consentStatistics, statisticsBody } from '../src/consents/statistics-schema.ts'
import { batchDryRunAnswer, dryRunReduced, dryRunShape } from '../src/entities/schema.ts'
import { errorStatuses } from '../src/errors.ts'
import { aggregateAnswer, aggregateBody, aggregateLine } from '../src/filters/aggregate-schema.ts'
import { duplicateGroup, duplicatesBody, duplicatesPage } from '../src/identity/duplicates-schema.ts'
import { lookupBody } from '../src/identity/lookup-schema.ts'
import { identityBody, mergeAnswer, unmergeAnswer } from '../src/identity/merge-schema.ts'
import { consentReceipt, ledgerEntry } from '../src/ledger/schema.ts'
import { consentLinks, consentLinksBody } from '../src/links/schema.ts'
import { declareBody, declared, observedKey, observedKeys, observedTypeCounts } from '../src/observed/schema.ts'
import { doctorReport, operationsMetrics } from '../src/operations/schema.ts'
import { definitionDryRun } from '../src/organizations/definition-dry-run.ts'
import { organization } from '../src/organizations/schema.ts'
import { settings, settingsPatch } from '../src/organizations/settings-schema.ts'
import { consentAssignment, person, personBody } from '../src/people/schema.ts'
import { record, recordBody } from '../src/records/schema.ts'
import { dossierLine } from '../src/rights/dossier-schema.ts'
import { eraseBody, erased, erasurePage, listedErasure } from '../src/rights/erasure/erasure-schema.ts'
import { schema } from '../src/schema/schema.ts'
import { violation, violationPage } from '../src/schema/violations-schema.ts'
import { ownersSearchBody, searchBody, searchHitSchema, searchPageSchema } from '../src/search/schema.ts'
import { newSegment, segment, segmentPatch, writtenSegment } from '../src/segments/schema.ts'
import { listedSession } from '../src/sessions/schema.ts'
import { newStack, stack, stackPatch } from '../src/stacks/schema.ts'
import { allEvents, eventSubjects } from '../src/webhooks/events.ts'
import {
  backlog,
  delivery,
  deliveryPage,
  newWebhook,
  replayBody,
  replayResult,
  testDelivery,
  testResult,
  webhook,
  webhookPatch,
  webhookWithSecret,
} from '../src/webhooks/schema.ts'
import { root } from './source.ts'
import { endpointsText, usesOf } from './wire-endpoints.ts'
import { documents, documentText, vocabularyText } from './wire-vocabulary.ts'

const { limits } = loadConfig({})

/** The schemas whose types the client names, by their titles. */
const shapes = [
  person,
  effectiveConsent,
  consentAssignment,
  recordedAnswer,
  consentHistoryPage,
  contactReason,
  contactDecision,
  contactDecisions,
  contactableBody,
  personBody(limits),
  lookupBody(limits),
  searchBody,
  searchPageSchema(person),
  searchPageSchema(record),
  ownersSearchBody,
  searchHitSchema({ person, record }),
  searchPageSchema(searchHitSchema({ person, record }), 'SearchPage'),
  record,
  recordBody(limits),
  dryRunShape,
  dryRunReduced,
  batchDryRunAnswer,
  definitionDryRun,
  mergeAnswer(person),
  unmergeAnswer(person),
  identityBody(limits),
  consentLinks,
  consentLinksBody,
  duplicateGroup,
  duplicatesBody,
  duplicatesPage,
  aggregateBody,
  aggregateAnswer,
  aggregateLine,
  observedTypeCounts,
  observedKey,
  observedKeys,
  declareBody,
  declared,
  dossierLine,
  settings,
  settingsPatch,
  schema,
  organization,
  stack,
  newStack,
  stackPatch,
  attribute,
  newAttribute,
  attributePatch,
  violation,
  violationPage,
  consent_type,
  newConsentType,
  segment,
  writtenSegment,
  newSegment,
  segmentPatch,
  change,
  changePage,
  historyPage,
  webhook,
  webhookWithSecret,
  newWebhook,
  webhookPatch,
  backlog,
  testDelivery,
  delivery,
  deliveryPage,
  testResult,
  replayBody,
  replayResult,
  listedSession,
  consentText,
  newConsentText,
  textPage,
  consentTypePatch,
  ledgerEntry,
  eraseBody,
  erased,
  listedErasure,
  erasurePage,
  consentReceipt,
  statisticsBody,
  consentStatistics,
  scope,
  apiClient,
  apiClientPage,
  apiClientWithSecret,
  newClient,
  signingKey,
  newToken,
  apiToken,
  doctorReport,
  operationsMetrics,
] satisfies TSchema[] as JsonSchema[]

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

/** The names of the types. A type that another one contains is named there. */
const names = new Set(shapes.map(({ title }) => title!))

// TypeScript knows no patterns, but template literals.
names.add('WebhookEventName')

/** Returns the TypeScript type of a JSON Schema. Throws if the schema has no TypeScript type. */
export function typeOf(schema: JsonSchema, indent = ''): string {
  return names.has(schema.title ?? '') ? schema.title! : inlineType(schema, indent)
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
  const types = shapes.map(schema => {
    const about = [schema.description, ...usesOf(schema.title!)].filter(text => text !== undefined)
    return `/** ${about.join(' ')} */\nexport type ${schema.title} = ${inlineType(schema, '')}\n`
  })
  return [
    '// generated by scripts/wire.ts from the schemas that the service validates with. Change the schemas instead.\n',
    `/** The error codes, a closed list. */\nexport type ErrorCode =\n  | ${codes.join('\n  | ')}\n`,
    '/** A fault of one value. `path` is a JSON Pointer into the body. */',
    'export type Detail = { path: string; message: string }\n',
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
