import fc from 'fast-check'
import type { OpenApiDocument } from '../../src/openapi/document.ts'
import { knowledgeOf } from './generators.ts'
import type { Operation } from './operations.ts'
import type { Ask } from './sender.ts'
import type { TestTenant } from './test-tenant.ts'
import { external_id } from './texts.ts'
import { valuesOf } from './values.ts'

/** One request before it is sent: `known` stands for the internal identifier of somebody whom the lane has made. */
export type Plan = {
  operation: Operation
  params: Record<string, string | { known: number }>
  headers: Record<string, string>
  /** Undefined where the request has none. */
  body: Record<string, unknown> | undefined
  asQuery: boolean
}

/** A request that the document allows, to an operation. */
export function planOf(operation: Operation, document: OpenApiDocument): fc.Arbitrary<Plan> {
  const takesStack = operation.params.includes('stack_key') && !operation.template.startsWith('/v1/schema')
  const plans = (takesStack ? ['orders', 'orders', 'visits'] : ['orders']).map(stack_key =>
    fc.record<Plan>(
      {
        operation: fc.constant(operation),
        params: paramsOf(operation, stack_key),
        headers: headersOf(operation),
        body: bodyOf(operation, stack_key, document),
        asQuery: fc.integer({ max: 5, min: 0 }).map(die => die === 0),
      },
      { noNullPrototype: true },
    ),
  )
  return fc.oneof(...plans)
}

function bodyOf(operation: Operation, stack_key: string, document: OpenApiDocument): fc.Arbitrary<Plan['body']> {
  if (!operation.body) return fc.constant(undefined)
  const bodies = valuesOf(operation.body, document, knowledgeOf(operation.template, stack_key, document))
  const given = bodies as fc.Arbitrary<Record<string, unknown>>
  // The document calls the body of related optional, and its `target` required: it is never left out here.
  return operation.bodyRequired || operation.template.endsWith('/related')
    ? given
    : fc.option(given, { freq: 6, nil: undefined })
}

/** Numbers of definitions that the fuzzer makes itself: those that its knowledge stands on are never changed. */
const ofDefinitions = { attribute: 16, consent: 3 }

function paramsOf({ params, template }: Operation, stack_key: string): fc.Arbitrary<Plan['params']> {
  const known = fc.nat({ max: 1_000 }).map(nth => ({ known: nth }))
  const first = template.includes('consent') ? ofDefinitions.consent : ofDefinitions.attribute
  const kinds: Record<string, fc.Arbitrary<string | { known: number }>> = {
    external_id,
    stack_key: fc.constant(stack_key),
    uuid: fc.oneof({ weight: 6, arbitrary: known }, { weight: 1, arbitrary: fc.uuid() }),
    record_id: fc.oneof({ weight: 6, arbitrary: known }, { weight: 1, arbitrary: fc.constant('f'.repeat(24)) }),
    id: fc.oneof(fc.integer({ min: first, max: first + 8 }).map(String), fc.constant('999999999')),
  }
  return fc.record(Object.fromEntries(params.map(name => [name, kinds[name]!])), { noNullPrototype: true })
}

const matches = ['*', '"1"', '"2"', '"1", "3"', 'W/"1"', '"99999999999"']
const preferences = [
  'return=representation',
  'references=strict',
  'return="representation", references=strict',
  'handling=strict',
  'other',
]

function headersOf({ versioned, prefers, method }: Operation): fc.Arbitrary<Record<string, string>> {
  const seldom = (values: string[]) => fc.option(fc.constantFrom(...values), { freq: 4, nil: undefined })
  const rarely = <T>(values: fc.Arbitrary<T>) =>
    fc.integer({ min: 0, max: 3 }).chain(die => (die ? fc.constant(undefined) : values))
  return fc
    .record({
      'If-Match': versioned && method !== 'GET' ? rarely(rarely(seldom(matches))) : fc.constant(undefined),
      Prefer: prefers ? rarely(seldom(preferences)) : fc.constant(undefined),
    })
    .map(headers => JSON.parse(JSON.stringify(headers)))
}

/** The request as it goes out. */
export function askOf(plan: Plan, lane: TestTenant): Ask {
  const { operation, headers, body } = plan
  const path = operation.template.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(paramOf(plan, name, lane)))
  const query = plan.asQuery && body ? queryOf(body) : undefined
  if (query) return { method: operation.method, path: `${path}?${query}`, headers }
  return { method: operation.method, path, headers, body: body && JSON.stringify(body) }
}

const nobody = '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f'

export function paramOf({ params }: Plan, name: string, lane: TestTenant): string {
  const value = params[name]!
  if (typeof value === 'string') return value
  const made = name === 'uuid' ? lane.people : lane.records[String(params.stack_key)]!
  return made[value.known % made.length] ?? (name === 'uuid' ? nobody : 'f'.repeat(24))
}

/** A body in bracket form; undefined where it would not read the same there, or be empty or long. */
export function queryOf(body: Record<string, unknown>): string | undefined {
  const pairs: string[] = []
  const said = Object.entries(body).every(([key, value]) => write(pairs, key, value, key === 'attribute_values'))
  // Filters have types of their own; and so have operations of a batch.
  const isOpen = 'filter' in body || 'operations' in body
  const query = pairs.join('&')
  return said && !isOpen && query !== '' && query.length < 6_000 ? query : undefined
}

function write(pairs: string[], name: string, value: unknown, textsOnly: boolean): boolean {
  if (typeof value !== 'object') {
    pairs.push(`${encodeURIComponent(name).replaceAll('%5B', '[')}=${encodeURIComponent(String(value))}`)
    return typeof value === 'string' || !textsOnly
  }
  const entries = Object.entries(value ?? {})
  if (entries.length === 0) return false
  const isList = Array.isArray(value)
  return entries.every(
    ([key, member]) => (isList || !/^\d+$|[[\]]|^$/.test(key)) && write(pairs, `${name}[${key}]`, member, textsOnly),
  )
}
