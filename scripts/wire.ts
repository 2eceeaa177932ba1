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
import { endpointsText } from './wire-endpoints.ts'
import { documents, documentText, vocabularyText } from './wire-vocabulary.ts'

const { limits } = loadConfig({})

/** The types by their names in the client. */
const shapes: Record<string, { about: string; schema: TSchema }> = {
  Person: {
    about: 'A person as reads return it. Unset fields are null, never absent. Times are RFC 3339 in UTC.',
    schema: person,
  },
  EffectiveConsent: {
    about: 'The effective consent to one consent type on one channel, from an answer or the default.',
    schema: effectiveConsent,
  },
  ConsentAssignment: { about: 'An answer to one consent type on one channel.', schema: consentAssignment },
  RecordedAnswer: {
    about: 'An answer as the consent history shows it. A member that was not given is null.',
    schema: recordedAnswer,
  },
  ConsentHistoryPage: { about: 'A page of the consent history of a person, newest first.', schema: consentHistoryPage },
  ContactReason: { about: 'A rule that allows or forbids writing to a person, with its facts.', schema: contactReason },
  ContactDecision: { about: 'Whether a person may be written to.', schema: contactDecision },
  ContactDecisions: { about: 'Which people may be written to, in the order of the request.', schema: contactDecisions },
  ContactableBody: { about: 'Body of POST /v1/people/{external_id}/contactable.', schema: contactableBody },
  PersonBody: {
    about: 'Body of create, PUT, PATCH and upsert of a person. A null clears the field.',
    schema: personBody(limits),
  },
  LookupBody: {
    about: 'Body of POST /v1/people/lookup: one of email, phone number and external identifier.',
    schema: lookupBody(limits),
  },
  SearchBody: { about: 'Body of POST /v1/people/search and of a stack.', schema: searchBody },
  PersonSearchPage: { about: 'A page of POST /v1/people/search.', schema: searchPageSchema(person) },
  RecordSearchPage: { about: 'A page of POST /v1/stacks/{stack_key}/search.', schema: searchPageSchema(record) },
  OwnersSearchBody: { about: 'Body of POST /v1/search.', schema: ownersSearchBody },
  SearchHit: { about: 'A person or record that POST /v1/search finds.', schema: searchHitSchema({ person, record }) },
  SearchPage: {
    about: 'A page of POST /v1/search.',
    schema: searchPageSchema(searchHitSchema({ person, record }), 'SearchPage'),
  },
  StackRecord: { about: 'A record of a stack as reads return it.', schema: record },
  RecordBody: {
    about: 'Body of create, PUT, PATCH and upsert of a record. A null clears the field.',
    schema: recordBody(limits),
  },
  DryRun: {
    about: 'The outcome that a write would have: the response of a write of one person or record with `dry_run=true`.',
    schema: dryRunShape,
  },
  DryRunIdentifiers: {
    about: 'The response of a dry run instead of `DryRun`, if the token may not read the person or record.',
    schema: dryRunReduced,
  },
  BatchDryRun: {
    about: 'The outcomes that the operations of a batch would have: its response with `dry_run=true`.',
    schema: batchDryRunAnswer,
  },
  DefinitionDryRun: {
    about: 'The changes that a write of definitions would make: its response with `dry_run=true`.',
    schema: definitionDryRun,
  },
  MergeResult: {
    about: 'The outcome of a merge, or of its dry run: POST /v1/people/{external_id}/merge.',
    schema: mergeAnswer(person),
  },
  UnmergeResult: {
    about: 'The outcome of an unmerge, or of its dry run: POST /v1/people/{external_id}/unmerge.',
    schema: unmergeAnswer(person),
  },
  MergeBody: { about: 'Body of a merge and of an unmerge.', schema: identityBody(limits) },
  ConsentLinks: { about: 'The links of a person: POST /v1/people/{external_id}/consent-links.', schema: consentLinks },
  ConsentLinksBody: { about: 'Body of POST /v1/people/{external_id}/consent-links.', schema: consentLinksBody },
  DuplicateGroup: { about: 'A group of people who may be one.', schema: duplicateGroup },
  DuplicatesBody: { about: 'Body of POST /v1/people/duplicates.', schema: duplicatesBody },
  DuplicatesPage: { about: 'A page of POST /v1/people/duplicates.', schema: duplicatesPage },
  AggregateBody: {
    about: 'Body of POST /v1/people/aggregate and /v1/stacks/{stack_key}/aggregate.',
    schema: aggregateBody,
  },
  Aggregate: {
    about: 'The groups of an aggregate. Numbers beyond 2^53 lose digits in JSON.parse.',
    schema: aggregateAnswer,
  },
  AggregateLine: {
    about: 'A line of a stream of groups: a group, or at the end what was counted.',
    schema: aggregateLine,
  },
  ObservedTypes: { about: 'Numbers of values by type.', schema: observedTypeCounts },
  ObservedKey: { about: 'A key that was not declared when values were written under it.', schema: observedKey },
  ObservedKeys: { about: 'The undeclared keys of an owner: GET /v1/schema/observed.', schema: observedKeys },
  DeclareBody: { about: 'Body of PUT /v1/schema/observed/declare.', schema: declareBody },
  Declared: { about: 'The outcome of PUT /v1/schema/observed/declare, or of its dry run.', schema: declared },
  DossierLine: { about: 'A line of a dossier: everything that is held about one person.', schema: dossierLine },
  Settings: { about: 'The settings of the pages for people. Unset ones are null.', schema: settings },
  SettingsPatch: { about: 'Body of PATCH /v1/schema/settings. A null clears the setting.', schema: settingsPatch },
  Definitions: { about: 'All definitions of an organization: GET /v1/schema.', schema },
  Organization: { about: 'The organization of the token: GET /v1/organization.', schema: organization },
  Stack: { about: 'A stack as reads return it.', schema: stack },
  NewStack: { about: 'Body of POST /v1/schema/stacks.', schema: newStack },
  StackPatch: { about: 'Body of PATCH /v1/schema/stacks/{stack_key}.', schema: stackPatch },
  Attribute: { about: 'An attribute as reads return it.', schema: attribute },
  NewAttribute: { about: 'Body of POST /v1/schema/attributes.', schema: newAttribute },
  AttributePatch: { about: 'Body of PATCH /v1/schema/attributes/{id}.', schema: attributePatch },
  Violation: { about: 'An entity whose stored value stands against rules of an attribute.', schema: violation },
  ViolationPage: { about: 'A page of GET /v1/schema/attributes/{id}/violations.', schema: violationPage },
  ConsentType: { about: 'A consent type as reads return it.', schema: consent_type },
  NewConsentType: { about: 'Body of POST /v1/schema/consent-types.', schema: newConsentType },
  Segment: { about: 'A segment as reads return it.', schema: segment },
  WrittenSegment: { about: 'A segment as the response to a write returns it.', schema: writtenSegment },
  NewSegment: { about: 'Body of POST /v1/segments.', schema: newSegment },
  SegmentPatch: { about: 'Body of PATCH /v1/segments/{segment_key}.', schema: segmentPatch },
  Change: { about: 'A change of the change log.', schema: change },
  ChangePage: { about: 'A page of the change log: GET /v1/changes.', schema: changePage },
  HistoryPage: { about: 'A page of the changes of one person or record, newest first.', schema: historyPage },
  Webhook: { about: 'A webhook as reads return it.', schema: webhook },
  WebhookWithSecret: {
    about: 'A webhook with the secret that was just made: POST /v1/webhooks, and its rotation.',
    schema: webhookWithSecret,
  },
  NewWebhook: { about: 'Body of POST /v1/webhooks.', schema: newWebhook },
  WebhookPatch: { about: 'Body of PATCH /v1/webhooks/{id}.', schema: webhookPatch },
  WebhookBacklog: { about: 'The changes that a webhook has not delivered yet.', schema: backlog },
  WebhookTestDelivery: { about: 'A test event that was sent, and its outcome.', schema: testDelivery },
  WebhookDelivery: { about: 'A delivery of a webhook, with its last attempt.', schema: delivery },
  WebhookDeliveryPage: { about: 'A page of the deliveries of a webhook, newest first.', schema: deliveryPage },
  WebhookTest: { about: 'The outcome of POST /v1/webhooks/{id}/test.', schema: testResult },
  WebhookReplay: { about: 'Body of POST /v1/webhooks/{id}/replay.', schema: replayBody },
  WebhookReplayed: { about: 'The range that POST /v1/webhooks/{id}/replay sends again.', schema: replayResult },
  ConsoleSession: { about: 'A session of the console that has not ended: GET /v1/sessions.', schema: listedSession },
  ConsentText: { about: 'A text that people answer to. It never changes.', schema: consentText },
  NewConsentText: { about: 'Body of POST /v1/schema/consent-types/{id}/texts.', schema: newConsentText },
  ConsentTextPage: { about: 'A page of GET /v1/schema/consent-types/{id}/texts.', schema: textPage },
  ConsentTypePatch: { about: 'Body of PATCH /v1/schema/consent-types/{id}.', schema: consentTypePatch },
  LedgerEntry: {
    about: 'An answer as the ledger sealed it. A member without a value is absent.',
    schema: ledgerEntry,
  },
  ErasureBody: { about: 'Body of POST /v1/people/{external_id}/erase.', schema: eraseBody },
  Erased: {
    about:
      'The data that an erasure removed. `certificate` is null in a dry run, and while a long log is being erased.',
    schema: erased,
  },
  Erasure: { about: 'An erasure of a person.', schema: listedErasure },
  ErasurePage: { about: 'A page of erasures, newest first.', schema: erasurePage },
  ConsentReceipt: {
    about: 'The signed receipt of a consent answer. docs/receipts.md describes it.',
    schema: consentReceipt,
  },
  ConsentStatisticsBody: { about: 'Body of POST /v1/consents/statistics.', schema: statisticsBody },
  ConsentStatistics: {
    about: 'How many answers were in force over time, and how many people may be written to now.',
    schema: consentStatistics,
  },
  Scope: { about: 'A scope of a token.', schema: scope },
  ApiClient: { about: 'A program that fetches its own tokens.', schema: apiClient },
  ApiClientPage: { about: 'A page of GET /v1/clients, newest first.', schema: apiClientPage },
  ApiClientWithSecret: {
    about: 'A client with the secret that was just made: POST /v1/clients.',
    schema: apiClientWithSecret,
  },
  NewApiClient: { about: 'Body of POST /v1/clients.', schema: newClient },
  SigningKey: { about: 'The public part of a key that signs tokens.', schema: signingKey },
  NewApiToken: { about: 'Body of POST /v1/tokens.', schema: newToken },
  ApiToken: { about: 'A token that was just made: POST /v1/tokens.', schema: apiToken },
  DoctorReport: { about: 'The findings of the checks of `kith doctor`.', schema: doctorReport },
  OperationsMetrics: { about: 'The metrics of the service: GET /v1/operations/metrics.', schema: operationsMetrics },
}

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

/** The type names by the titles of the schemas, for types that other types contain. */
const names = new Map(Object.entries(shapes).map(([name, { schema }]) => [(schema as JsonSchema).title ?? name, name]))

// TypeScript knows no patterns, but template literals.
names.set('WebhookEventName', 'WebhookEventName')

/** Returns the TypeScript type of a JSON Schema. Throws if the schema has no TypeScript type. */
export function typeOf(schema: JsonSchema, indent = ''): string {
  return names.get(schema.title ?? '') ?? inlineType(schema, indent)
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
  const types = Object.entries(shapes).map(
    ([name, { about, schema }]) => `/** ${about} */\nexport type ${name} = ${inlineType(schema as JsonSchema, '')}\n`,
  )
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
  'client/src/endpoints.ts': () => formatted(endpointsText(typeOf, names.values())),
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
