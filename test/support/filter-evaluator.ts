import { isDeepStrictEqual } from 'node:util'
import type { Question } from '../../src/consents/answers.ts'
import { emailKey } from '../../src/entities/match-keys.ts'
import type { Attribute, Definitions } from '../../src/organizations/definitions.ts'
import { isDate, isDateTime } from '../../src/values/formats.ts'
import { mobileKey } from '../../src/values/phone-numbers.ts'

/** An entity, and the ids of its link targets by attribute. */
export type StoredEntity = {
  stack_id: number
  id: string
  /** As a read returns it. */
  json: Json
  links: ReadonlyMap<number, readonly string[]>
}

/** The definitions and all entities of an organization, the entities by id, and the questions that addresses refuse, by {@link refusalKey}. */
export type Dataset = {
  definitions: Definitions
  entities: ReadonlyMap<string, StoredEntity>
  refusals: ReadonlySet<string>
}

/** The key of a question that an address refuses. */
export const refusalKey = ({ channel, consent_type_id }: Question, address: string) =>
  `${channel} ${consent_type_id} ${address}`

type Json = Record<string, unknown>

/** Whether an entity matches a filter. It follows the documentation and the entity's JSON, and uses no SQL. */
export function matches(filter: unknown, read: StoredEntity, world: Dataset): boolean {
  return Object.entries(filter as Json).every(([key, operand]) => memberMatches(key, operand, read, world))
}

function memberMatches(key: string, operand: unknown, read: StoredEntity, world: Dataset): boolean {
  if (key === '$and') return (operand as unknown[]).every(filter => matches(filter, read, world))
  if (key === '$or') return (operand as unknown[]).some(filter => matches(filter, read, world))
  if (key === '$not') return !matches(operand, read, world)
  if (typeof operand !== 'object' || operand === null || Array.isArray(operand))
    return testMatches(key, '$eq', operand, read, world)
  if (key === 'contactable') return isContactable(operand as Question, read, world)
  if (key.startsWith('incoming.')) return incomingMatches(key, operand as Json, read, world)
  return Object.entries(operand).every(([operator, value]) => testMatches(key, operator, value, read, world))
}

function isContactable(question: Question, { json }: StoredEntity, { definitions, refusals }: Dataset): boolean {
  const { consent_type_id, channel } = question
  const { state, mandatory } = definitions.consent_types.find(({ id }) => id === consent_type_id)!
  const isGranted = (json.consents as Json[]).some(
    entry => entry.consent_type_id === consent_type_id && entry.channel === channel && entry.state === true,
  )
  const { email, mobile_prefix, mobile_number } = json as Record<string, string | null>
  const address = channel === 'email' ? emailKey(email) : mobileKey(mobile_prefix, mobile_number, null)
  return (
    state === 'active' &&
    Boolean(address) &&
    (mandatory || (isGranted && !refusals.has(refusalKey(question, address!))))
  )
}

function testMatches(key: string, operator: string, operand: unknown, read: StoredEntity, world: Dataset): boolean {
  const { json } = read
  if (key === 'consents') {
    const conditions = Object.entries((operand as Json) ?? {})
    return (json.consents as Json[]).some(entry => conditions.every(([name, value]) => entry[name] === value))
  }
  if (!key.startsWith('attribute_values.')) {
    if (key === 'created_at' || key === 'updated_at') return compareMoments(operator, json[key], operand)
    const normalized = key === 'id' || key === 'record_id' ? toLowerCase(operand) : operand
    return valueMatches(operator, [json[key]], normalized, undefined)
  }
  const name = key.slice('attribute_values.'.length)
  const attribute = world.definitions.declared.get(read.stack_id)?.get(name)
  if (operator === '$some' || operator === '$none' || operator === '$every')
    return quantifierMatches(operator, operand, attribute!, read, world)
  const values = json.attribute_values as Json
  const value = Object.hasOwn(values, name) ? values[name] : undefined
  const elements = attribute?.cardinality === 'many' && Array.isArray(value) ? value.filter(one => one !== null) : []
  return valueMatches(operator, [value, ...elements], operand, attribute)
}

const toLowerCase = (operand: unknown): unknown =>
  typeof operand === 'string' ? operand.toLowerCase() : Array.isArray(operand) ? operand.map(toLowerCase) : operand

function quantifierMatches(
  operator: string,
  filter: unknown,
  { id }: Attribute,
  read: StoredEntity,
  world: Dataset,
): boolean {
  const targets = (read.links.get(id) ?? []).map(target => world.entities.get(target)!)
  return quantified(operator, targets, filter, world)
}

function quantified(operator: string, others: StoredEntity[], filter: unknown, world: Dataset): boolean {
  if (operator === '$every') return others.every(other => matches(filter, other, world))
  return others.some(other => matches(filter, other, world)) === (operator === '$some')
}

/** `incoming.<owner>.<key>`: the entities whose relationship leads here. */
function incomingMatches(key: string, operand: Json, read: StoredEntity, world: Dataset): boolean {
  const [, owner, name] = key.split('.')
  const { stacks, declared } = world.definitions
  const stack_id = owner === 'people' ? 0 : stacks.find(stack => stack.key === owner)!.id
  const { id } = declared.get(stack_id)!.get(name!)!
  const sources = [...world.entities.values()].filter(source => source.links.get(id)?.includes(read.id))
  const { $where = {}, ...operators } = operand
  const selected = sources.filter(source => matches($where, source, world))
  return Object.entries(operators).every(([operator, value]) => {
    if (['$some', '$none', '$every'].includes(operator)) return quantified(operator, sources, value, world)
    if (operator === '$count') return measureMatches(selected.length, value)
    return Object.entries(value as Json).every(([field, tests]) => {
      const values = selected.map(
        source => (source.json.attribute_values as Json)[field.slice('attribute_values.'.length)],
      )
      return measureMatches(
        measureOf(
          operator,
          values.filter(each => typeof each === 'number'),
        ),
        tests,
      )
    })
  })
}

/** A measure of numbers that a double has exactly, or whose sums it has. A measure of nothing is missing. */
function measureOf(operator: string, values: number[]): number | null {
  if (values.length === 0) return null
  if (operator === '$min') return Math.min(...values)
  if (operator === '$max') return Math.max(...values)
  const sum = values.reduce((before, value) => before + value, 0)
  return operator === '$sum' ? sum : sum / values.length
}

function measureMatches(value: number | null, tests: unknown): boolean {
  if (typeof tests !== 'object' || tests === null) return valueMatches('$eq', [value], tests)
  return Object.entries(tests).every(([operator, operand]) => valueMatches(operator, [value], operand))
}

/** Compares values with an operand. `candidates`: the value, then its elements if the attribute has many. */
function valueMatches(operator: string, candidates: unknown[], operand: unknown, attribute?: Attribute): boolean {
  const missing = candidates[0] === null || candidates[0] === undefined
  const equals = (expected: unknown) =>
    expected === null ? missing : candidates.some(candidate => isDeepStrictEqual(candidate, expected))
  if (operator === '$eq') return equals(operand)
  if (operator === '$neq') return !equals(operand)
  if (operator === '$in') return (operand as unknown[]).some(equals)
  if (operator === '$nin') return !(operand as unknown[]).some(equals)
  if (operator === '$exists') return missing !== operand
  return candidates.some(candidate => {
    if (operator in order) return inOrder(operator, compareValues(candidate, operand, attribute))
    if (typeof candidate !== 'string') return false
    const [text, search] = [lowerText(candidate), lowerText(String(operand))]
    if (operator === '$contains') return text.includes(search)
    return operator === '$starts_with' ? text.startsWith(search) : text.endsWith(search)
  })
}

/** A Greek sigma at the end of a word equals one elsewhere. */
const lowerText = (text: string) => text.toLowerCase().replaceAll('ς', 'σ')

const order: Record<string, (sign: number) => boolean> = {
  $lt: sign => sign < 0,
  $lte: sign => sign <= 0,
  $gt: sign => sign > 0,
  $gte: sign => sign >= 0,
}

const inOrder = (operator: string, sign: number | undefined) => sign !== undefined && order[operator]!(sign)

/** The order of two values: below zero, zero or above. Undefined if they have no order. */
function compareValues(value: unknown, operand: unknown, attribute?: Attribute): number | undefined {
  if (typeof value === 'number' && typeof operand === 'number') return value - operand
  if (typeof value !== 'string' || typeof operand !== 'string') return undefined
  if (attribute?.type === 'date' && !(isDate(value) && isDate(operand))) return undefined
  if (attribute?.type !== 'datetime') return Buffer.compare(Buffer.from(value), Buffer.from(operand))
  if (!(isDateTime(value) && isDateTime(operand))) return undefined
  return Number(nanoseconds(value) - nanoseconds(operand))
}

function nanoseconds(text: string): bigint {
  const fraction = /\.(\d+)/.exec(text)?.[1] ?? ''
  const whole = Date.parse(text.toUpperCase().replace(/\.\d+/, ''))
  return BigInt(whole) * 1_000_000n + BigInt(fraction.slice(0, 9).padEnd(9, '0'))
}

function compareMoments(operator: string, value: unknown, operand: unknown): boolean {
  const moment = nanoseconds(value as string)
  const same = (other: unknown) => typeof other === 'string' && nanoseconds(other) === moment
  if (operator === '$exists') return operand === true
  if (operator === '$eq') return same(operand)
  if (operator === '$neq') return !same(operand)
  if (operator === '$in') return (operand as unknown[]).some(same)
  if (operator === '$nin') return !(operand as unknown[]).some(same)
  return inOrder(operator, Number(moment - nanoseconds(operand as string)))
}
