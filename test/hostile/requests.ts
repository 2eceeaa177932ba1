import fc from 'fast-check'
import type { OpenApiDocument } from '../../src/openapi/document.ts'
import { fieldGenerators, withSelection } from './generators.ts'
import { ndjsonType, type Operation } from './operations.ts'
import type { RawRequest } from './sender.ts'
import { ownImport, type TestTenant } from './test-tenant.ts'
import { external_id, padded } from './texts.ts'
import { formats, valuesOf } from './values.ts'

/** A generated request. `createdIndex` selects the internal identifier of an entity that the tenant created. */
export type Plan = {
  operation: Operation
  params: Record<string, string | { createdIndex: number }>
  headers: Record<string, string>
  /** Undefined if the request has no body. */
  body: Record<string, unknown> | undefined
  asQuery: boolean
  /** Whether a dry run of the request comes before it. */
  isRehearsed: boolean
}

/** Generates requests to an operation that the document allows. */
export function planOf(operation: Operation, document: OpenApiDocument): fc.Arbitrary<Plan> {
  const takesStack = operation.params.includes('stack_key') && !operation.template.startsWith('/v1/schema')
  const plans = (takesStack ? ['orders', 'orders', 'visits'] : ['orders']).map(stack_key =>
    fc.record<Plan>(
      {
        operation: fc.constant(operation),
        params: paramsOf(operation, stack_key),
        headers: headersOf(operation),
        body: bodyOf(operation, stack_key, document),
        asQuery: fc.integer({ max: 5, min: 0 }).map(draw => draw === 0),
        isRehearsed: fc.integer({ max: 3, min: 0 }).map(draw => operation.hasDryRun && draw === 0),
      },
      { noNullPrototype: true },
    ),
  )
  return fc.oneof(...plans)
}

function bodyOf(operation: Operation, stack_key: string, document: OpenApiDocument): fc.Arbitrary<Plan['body']> {
  if (!operation.body) return fc.constant(undefined)
  if (operation.template.endsWith('/lookup')) return lookupBody
  const bodies = valuesOf(operation.body, document, fieldGenerators(operation, stack_key, document))
  const isMerge = /\/(un)?merge$/.test(operation.template)
  const validBodies = (bodies as fc.Arbitrary<Record<string, unknown>>)
    .map(withoutUndefined)
    .map(withoutAlias)
    .map(withOneOrder)
    .chain(body => (operation.template.endsWith('/aggregate') ? withSelection(body) : fc.constant(body)))
    // Merges are rehearsals, because other requests expect the name that they were sent with.
    .map(body => (isMerge ? { ...body, dry_run: true } : body))
  // The related endpoint requires `target`, so its body is always sent.
  return operation.isBodyRequired || operation.template.endsWith('/related')
    ? validBodies
    : fc.option(validBodies, { freq: 6, nil: undefined })
}

/** One of the keys that people are found by. */
const lookupBody = fc.oneof(
  fc.record({ email: padded(formats.email!) }, { noNullPrototype: true }),
  fc.record({ external_id }, { noNullPrototype: true }),
  fc.constantFrom({ mobile_number: '+39 333 1234567' }, { mobile_prefix: '0039', mobile_number: '333/1234567' }),
)

/** JSON has no undefined, and a query would send it as a text. */
const withoutUndefined = (body: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined))

/** An upsert by email or phone that has a name too may make it an alias. Aliases read as the name of their person. */
const withoutAlias = ({ external_id, ...body }: Record<string, unknown>): Record<string, unknown> =>
  external_id === undefined || (Array.isArray(body.match) && body.match.some(kind => kind !== 'external_id'))
    ? body
    : { external_id, ...body }

/** A sort has its own direction, and no page starts after an identifier then. The fuzzer knows no cursor of a page. */
function withOneOrder(body: Record<string, unknown>): Record<string, unknown> {
  const { sorting_type, sort_direction, cursor_configuration, ...rest } = body
  const { cursor: _, ...place } = (cursor_configuration ?? {}) as Record<string, unknown>
  const configured = (members: object) => cursor_configuration !== undefined && { cursor_configuration: members }
  if (body.sort === undefined) return withoutUndefined({ ...rest, sorting_type, sort_direction, ...configured(place) })
  return { ...rest, ...configured('size' in place ? { size: place.size } : {}) }
}

/** The first ids of definitions that the fuzzer creates. It never changes the ones below, on which the generators rely. */
const firstGeneratedIds = { attribute: 17, consent: 3, webhook: 2, rule: 1 }

/** Stands for the client that the tenant has. */
const ownClient = 'own'
/** Stands for the account that the tenant has. */
const ownAccount = 'own'

/** The person whose answers are sealed. A receipt of another person would be waited for. */
export const sealedPerson = 'sealed'

function paramsOf({ params, template, method }: Operation, stack_key: string): fc.Arbitrary<Plan['params']> {
  const created = fc.nat({ max: 1_000 }).map(createdIndex => ({ createdIndex }))
  const kind = template.includes('consent')
    ? 'consent'
    : template.includes('webhook')
      ? 'webhook'
      : template.includes('retention-rule')
        ? 'rule'
        : 'attribute'
  const firstId = firstGeneratedIds[kind]
  const kinds: Record<string, fc.Arbitrary<string | { createdIndex: number }>> = {
    external_id: template.endsWith('/receipt') ? fc.constant(sealedPerson) : external_id,
    stack_key: fc.constant(stack_key),
    segment_key: fc.constantFrom('in_rome', 'in_rome', 'unknown'),
    role_key: fc.constantFrom('reader', 'reader', 'unknown'),
    uuid: template.endsWith('/receipt')
      ? fc.constant(sealedPerson)
      : fc.oneof({ weight: 6, arbitrary: created }, { weight: 1, arbitrary: fc.uuid() }),
    record_id: fc.oneof({ weight: 6, arbitrary: created }, { weight: 1, arbitrary: fc.constant('f'.repeat(24)) }),
    session_id: fc.oneof({ weight: 2, arbitrary: created }, { weight: 1, arbitrary: fc.uuid() }),
    client_id: fc.constantFrom(ownClient, ownClient, 'nobody.Zm9vYmFyYmF6cXV4'),
    version: fc.constantFrom('1', '1', '2', '999999999'),
    consent_type_id: fc.constantFrom('1', '2', '999999999'),
    channel: fc.constantFrom('email', 'sms'),
    id: /\/(texts|replay)/.test(template)
      ? fc.constantFrom('1', '1', '2', '999999999')
      : fc.oneof(
          fc.integer({ min: method === 'GET' ? 1 : firstId, max: firstId + 4 }).map(String),
          fc.constant('999999999'),
        ),
    // The fuzzer's ledgers have two entries.
    tile: fc.constantFrom('0/000.p/2', '0/000.p/1', 'entries/000.p/2', '0/000', '1/000.p/1', 'entries/x001/000'),
    import_id: fc.constantFrom(ownImport, ownImport, 'unknown'),
    mapping_id: fc.constant('unknown'),
    job_id: fc.constant('unknown'),
    index: fc.constantFrom('0', '1', '2', '999999999999999'),
    jti: fc.uuid(),
    account_id: fc.oneof(fc.constant(ownAccount), fc.uuid()),
    key: fc.constantFrom('newsletter', 'unknown'),
    address: fc.constantFrom('ada@example.com', 'bounced@example.com', '+393331234567', 'x'),
    old_size: fc.constantFrom('0', '1', '2'),
  }
  return fc.record(Object.fromEntries(params.map(name => [name, kinds[name]!])), { noNullPrototype: true })
}

const ifMatchValues = ['*', '"1"', '"2"', '"1", "3"', 'W/"1"', '"99999999999"']
const preferences = [
  'return=representation',
  'references=strict',
  'return="representation", references=strict',
  'erased=recreate',
  'handling=strict',
  'other',
]

function headersOf({
  isVersioned,
  preferParameter,
  method,
  hasLines,
}: Operation): fc.Arbitrary<Record<string, string>> {
  const sometimes = (values: string[]) => fc.option(fc.constantFrom(...values), { freq: 4, nil: undefined })
  const rarely = <T>(values: fc.Arbitrary<T>) =>
    fc.integer({ min: 0, max: 3 }).chain(draw => (draw ? fc.constant(undefined) : values))
  return fc
    .record({
      'If-Match': isVersioned && method !== 'GET' ? rarely(rarely(sometimes(ifMatchValues))) : fc.constant(undefined),
      Prefer: preferParameter ? rarely(sometimes(preferences)) : fc.constant(undefined),
      Accept: hasLines ? fc.constantFrom(undefined, ndjsonType, `${ndjsonType}, */*;q=0.1`) : fc.constant(undefined),
    })
    .map(headers => JSON.parse(JSON.stringify(headers)))
}

/** Builds the request of a plan: a query instead of a body if `asQuery` is set and the body fits in a query. */
export function requestOf(plan: Plan, tenant: TestTenant): RawRequest {
  const { operation, headers, body } = plan
  const path = operation.template.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(paramOf(plan, name, tenant)))
  const query = plan.asQuery && body ? toQueryString(body) : undefined
  if (query) return { method: operation.method, path: `${path}?${query}`, headers }
  return { method: operation.method, path, headers, body: body && JSON.stringify(body) }
}

const unknownId = '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f'

export function paramOf({ params }: Plan, name: string, tenant: TestTenant): string {
  const value = params[name]!
  if (name === 'uuid' && value === sealedPerson) return tenant.sealed ?? unknownId
  if (name === 'client_id' && value === ownClient) return tenant.client_id
  if (name === 'account_id' && value === ownAccount) return tenant.account_id
  if (typeof value === 'string') return value
  const createdIds = createdIdsOf(name, String(params.stack_key), tenant)
  return createdIds[value.createdIndex % createdIds.length] ?? (name === 'record_id' ? 'f'.repeat(24) : unknownId)
}

function createdIdsOf(name: string, stack_key: string, { sessions, people, records }: TestTenant): readonly string[] {
  if (name === 'session_id') return sessions
  return name === 'uuid' ? people : records[stack_key]!
}

/** Encodes a body as a query string in bracket notation. Returns undefined if that is not possible, or the result is empty or too long. */
export function toQueryString(body: Record<string, unknown>): string | undefined {
  const pairs: string[] = []
  const isExpressible = Object.entries(body).every(([key, value]) =>
    appendQueryPairs(pairs, key, value, key === 'attribute_values'),
  )
  // In filters, batch operations and enums a query's text would not keep its type.
  const hasTypedFields = 'filter' in body || 'operations' in body || 'enum' in body
  const query = pairs.join('&')
  return isExpressible && !hasTypedFields && query !== '' && query.length < 6_000 ? query : undefined
}

function appendQueryPairs(pairs: string[], name: string, value: unknown, isTextOnly: boolean): boolean {
  if (typeof value !== 'object') {
    pairs.push(`${encodeURIComponent(name).replaceAll('%5B', '[')}=${encodeURIComponent(String(value))}`)
    return typeof value === 'string' || !isTextOnly
  }
  const entries = Object.entries(value ?? {})
  if (entries.length === 0) return false
  const isList = Array.isArray(value)
  return entries.every(
    ([key, member]) =>
      (isList || !/^\d+$|[[\]]|^$/.test(key)) && appendQueryPairs(pairs, `${name}[${key}]`, member, isTextOnly),
  )
}
