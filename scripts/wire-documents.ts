// The tables of the documents that derive from the lists, schemas and routes of the service. A comment before each names its source.

import { operationFacts, operations } from '../src/organizations/logged-changes.ts'
import { defaultLimits } from '../src/process/config.ts'
import { filterLimits } from '../src/queries/grammar/grammar.ts'
import type { Route } from '../src/route/route.ts'
import { type Scope, scopes } from '../src/route/scopes.ts'
import { attributeRules, ruleNames, typesText } from '../src/values/attribute-rules.ts'
import { type ErrorCode, errorStatuses } from '../src/values/errors.ts'
import { rows } from './wire-endpoints.ts'
import { limits, profileFields } from './wire-vocabulary.ts'

/** The documents with such tables. */
export const documents = [
  'docs/api.md',
  'docs/api-people.md',
  'docs/api-consents.md',
  'docs/api-writes.md',
  'docs/api-access.md',
  'docs/queries.md',
  'docs/changes.md',
  'docs/webhooks.md',
  'docs/import-export.md',
]

type Schema = {
  title?: string
  description?: string
  properties?: Record<string, Schema>
  anyOf?: Schema[]
  minimum?: number
  maximum?: number
}

const errorMeanings: Record<ErrorCode, string> = {
  failed_binding_json: 'the body is not JSON in UTF-8',
  invalid_json: 'the top level is no object, a known field has the wrong JSON type, or a key occurs twice in an object',
  invalid_parameter:
    'a value breaks a rule, a field is missing or a key unknown (400); wrong method, see `Allow` (405); the state forbids it, or a request under this Idempotency-Key is running (409); a position of another change log, or an expired link (410); `If-Match` does not match (412); too large or too long (413, 414, 431); a compressed body (415); an Idempotency-Key of another request (422)',
  unauthorized: 'no token, or an invalid one',
  forbidden: 'the token lacks a scope',
  not_found: 'no such entity, definition or path; 500 on PATCH /v1/people/{external_id} alone',
  duplicate_entry: 'the identifier, key or unique value is taken; 400 on PATCH /v1/people/{external_id} alone',
  rate_limit_exceeded: 'too many requests; `Retry-After` says when to retry',
  operation_failed:
    'an internal error (500); unavailable or overloaded, with `Retry-After` (503); longer than 10 seconds (504)',
}

const scopeMeanings: Record<Scope, string> = {
  'people:read': 'reads people, also in pages and filters',
  'people:write': 'writes people and their consents, merges, imports, makes consent links',
  'people:erase': 'erases people and reads the certificates',
  'records:read': 'reads records',
  'records:write': 'writes and imports records',
  'consents:read': 'reads consent histories, contact decisions, statistics, receipts and the ledger',
  'schema:read': 'reads definitions, segments, settings and the organization',
  'schema:write': 'changes them',
  'changes:read': 'reads the change log, histories, past states and imports, of what the other scopes show',
  'exports:read': 'exports and makes dossiers, of what the other scopes show',
  'webhooks:read': 'reads webhooks and deliveries',
  'webhooks:write': 'changes webhooks, tests and replays',
  'access:read': 'reads clients, tokens, keys and sessions',
  'access:write': 'makes and ends clients, tokens and sessions',
  'operations:read': 'reads the findings of the doctor and the metrics of the whole service',
}

const number = (value: number) => value.toLocaleString('en-US')
const kibibytes = (bytes: number) => (bytes < 1_048_576 ? `${bytes / 1024} KiB` : `${bytes / 1_048_576} MiB`)

/** The limits that a client meets, unless the operator has set others. */
const limitRows: string[][] = [
  [
    'body of a request, line of an import; of a batch',
    `${kibibytes(defaultLimits.bodyBytes)}; ${kibibytes(defaultLimits.batchBytes)}`,
  ],
  ['operations of a batch', number(limits.batchOperations)],
  [
    'levels of nesting; keys, objects and arrays of a body, an operation or a line',
    `${limits.jsonDepth}; ${number(defaultLimits.jsonMembers)}`,
  ],
  [
    'attribute values of a request; of an entity',
    `${defaultLimits.requestKeys}; ${number(defaultLimits.entityKeys)}, ${kibibytes(defaultLimits.entityBytes)} as JSON`,
  ],
  [
    'a key; a string; a string of the profile; an email',
    `${limits.keyBytes} bytes; ${kibibytes(limits.stringBytes)}; ${defaultLimits.profileCharacters}; ${defaultLimits.emailCharacters} characters`,
  ],
  [
    'consents of a request; links of a value; placeholders of a request',
    `${defaultLimits.consents}; ${number(defaultLimits.links)}; ${defaultLimits.placeholders}`,
  ],
  [
    'stacks; attributes; consent types, archived ones included',
    `${number(defaultLimits.stacks)}; ${number(defaultLimits.attributes)}; ${defaultLimits.consentTypes}`,
  ],
  ['items of a page; of a search; members in `fields`', `${limits.page}; ${limits.searchPage}; ${limits.fields}`],
  [
    'a filter: levels; conditions; elements of a list; relationships in a row',
    Object.values(filterLimits).map(number).join('; '),
  ],
  [
    'path and query; headers; token',
    [defaultLimits.urlBytes, defaultLimits.headerBytes, defaultLimits.tokenBytes].map(kibibytes).join('; '),
  ],
  ['the whole time of a request', `${defaultLimits.requestMs / 1000} s`],
]

const shapes = new Map<string, Schema>()
function collect(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  const schema = value as Schema
  if (typeof schema.title === 'string' && schema.properties) shapes.set(schema.title, schema)
  for (const [keyword, part] of Object.entries(value)) if (keyword !== 'examples') collect(part)
}
for (const { body, query, answer, dryRun } of rows) collect([body, query, answer, dryRun])

/** The description of a member, or of its option that is not null, with its bounds. */
function meaningOf({ description, anyOf, minimum, maximum }: Schema): string {
  const text = description ?? anyOf?.find(option => option.description)?.description ?? ''
  const isBounded = maximum !== undefined && maximum < 2 ** 31 - 1 && !text.includes(number(maximum))
  return isBounded ? `${text} ${number(minimum ?? 0)} to ${number(maximum)}.` : text
}

/** A row for each member of an object, or of those listed, and one for several with the same description. */
function memberRows({ properties = {} }: Schema, listed = Object.keys(properties)): string[][] {
  const names = new Map<string, string[]>()
  for (const name of listed) {
    const meaning = meaningOf(properties[name]!)
    if (meaning !== '') names.set(meaning, [...(names.get(meaning) ?? []), `\`${name}\``])
  }
  return [...names].map(([meaning, members]) => [members.join(', '), meaning])
}

const byInternalIdentifier = /\/internal\/\{\w+\}/

/** The endpoints of some tags, one row for each path. Those by internal identifier that also exist by external one are left out. */
function endpointRows(tags: string[]): string[][] {
  const paths = new Set(rows.map(({ path }) => path))
  const isTwin = (path: string) => paths.has(path.replace(byInternalIdentifier, '/{external_id}'))
  const listed = rows.filter(
    ({ path, tag }) => tags.includes(tag) && !(byInternalIdentifier.test(path) && isTwin(path)),
  )
  return [...Map.groupBy(listed, ({ path }) => path)].map(([path, ways]: [string, Route[]]) => [
    `${ways.map(({ method }) => method).join(', ')} ${path}`,
    [...new Set(ways.map(({ scope }) => `\`${scope}\``))].join(', '),
    ways.map(({ summary }, index) => (index === 0 ? summary : summary[0]!.toLowerCase() + summary.slice(1))).join('; '),
  ])
}

const tables: Record<string, () => string[][]> = {
  'src/values/profile-fields.ts': () =>
    Object.entries(profileFields).map(([name, { type, isSearched, description }]) => [
      `\`${name}\``,
      isSearched ? `${type}, [searched](queries.md#search)` : type,
      description,
    ]),
  'src/values/attribute-rules.ts': () =>
    ruleNames.map(name => [`\`${name}\``, typesText(name), attributeRules[name].description]),
  'src/organizations/logged-changes.ts': () =>
    operations.map(operation => {
      const { event, description } = operationFacts[operation]
      return [`\`${operation}\``, `\`${event}\``, description]
    }),
  'src/values/errors.ts': () =>
    Object.entries(errorStatuses).map(([code, statuses]) => [
      `\`${code}\``,
      statuses.join(', '),
      errorMeanings[code as ErrorCode],
    ]),
  'src/route/scopes.ts': () => scopes.map(scope => [`\`${scope}\``, scopeMeanings[scope]]),
  'src/process/config.ts': () => limitRows,
}

/**
 * The rows of a table: of a list, of the endpoints of tags (`routes:People+Search`), of a schema
 * or of some of its members (`RelatedBody:target`), or of the query of a path.
 */
function rowsOf(source: string): string[][] {
  if (tables[source]) return tables[source]()
  if (source.startsWith('routes:')) return endpointRows(source.slice('routes:'.length).replaceAll('_', ' ').split('+'))
  const [name = '', members] = source.split(':')
  const schema = shapes.get(name) ?? rows.find(({ path, query }) => path === source && query)?.query
  if (!schema) throw new Error(`There is no list, schema or path ${source} to write a table from.`)
  return memberRows(schema as Schema, members?.split(','))
}

/** Returns a document with its tables that derive from the service. */
export const documentText = (document: string): string =>
  document.replace(/(?<=writes this table from (\S+) -->\n\n(?:\|.*\n){2})(?:\|.*\n)*/g, (_, source) =>
    rowsOf(source)
      .map(cells => `| ${cells.map(cell => cell.replaceAll('|', '\\|')).join(' | ')} |\n`)
      .join(''),
  )
