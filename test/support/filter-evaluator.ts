import { isDeepStrictEqual } from 'node:util'
import { isDate, isDateTime } from '../../src/formats.ts'
import type { Attribute, Definitions } from '../../src/organizations/definitions.ts'

/** An entity as a read shows it, and the ids of those it links to, by attribute. */
export type Read = { stack_id: number; id: string; shown: Shown; links: ReadonlyMap<number, readonly string[]> }

/** All entities of an organization. */
export type World = { definitions: Definitions; reads: ReadonlyMap<string, Read> }

type Shown = Record<string, unknown>

/** Whether a filter holds of an entity, by the words of the documentation and what a read shows; it knows no SQL. */
export function holds(filter: unknown, read: Read, world: World): boolean {
  return Object.entries(filter as Shown).every(([key, operand]) => memberHolds(key, operand, read, world))
}

function memberHolds(key: string, operand: unknown, read: Read, world: World): boolean {
  if (key === '$and') return (operand as unknown[]).every(filter => holds(filter, read, world))
  if (key === '$or') return (operand as unknown[]).some(filter => holds(filter, read, world))
  if (key === '$not') return !holds(operand, read, world)
  if (typeof operand !== 'object' || operand === null || Array.isArray(operand))
    return testHolds(key, '$eq', operand, read, world)
  return Object.entries(operand).every(([operator, value]) => testHolds(key, operator, value, read, world))
}

function testHolds(key: string, operator: string, operand: unknown, read: Read, world: World): boolean {
  const { shown } = read
  if (key === 'consents') {
    const wanted = Object.entries((operand as Shown) ?? {})
    return (shown.consents as Shown[]).some(entry => wanted.every(([name, value]) => entry[name] === value))
  }
  if (!key.startsWith('attribute_values.')) {
    if (key === 'created_at' || key === 'updated_at') return compareMoments(operator, shown[key], operand)
    const cased = key === 'id' || key === 'record_id' ? lowered(operand) : operand
    return valueHolds(operator, [shown[key]], cased, undefined)
  }
  const name = key.slice('attribute_values.'.length)
  const attribute = world.definitions.declared.get(read.stack_id)?.get(name)
  if (operator === '$some' || operator === '$none' || operator === '$every')
    return quantified(operator, operand, attribute!, read, world)
  const values = shown.attribute_values as Shown
  const value = Object.hasOwn(values, name) ? values[name] : undefined
  const elements = attribute?.cardinality === 'many' && Array.isArray(value) ? value.filter(one => one !== null) : []
  return valueHolds(operator, [value, ...elements], operand, attribute)
}

const lowered = (operand: unknown): unknown =>
  typeof operand === 'string' ? operand.toLowerCase() : Array.isArray(operand) ? operand.map(lowered) : operand

function quantified(operator: string, filter: unknown, { id }: Attribute, read: Read, world: World): boolean {
  const targets = (read.links.get(id) ?? []).map(target => world.reads.get(target)!)
  if (operator === '$every') return targets.every(target => holds(filter, target, world))
  return targets.some(target => holds(filter, target, world)) === (operator === '$some')
}

/** `candidates`: the value, and its elements where the attribute holds many. */
function valueHolds(operator: string, candidates: unknown[], operand: unknown, attribute?: Attribute): boolean {
  const missing = candidates[0] === null || candidates[0] === undefined
  const equals = (wanted: unknown) =>
    wanted === null ? missing : candidates.some(candidate => isDeepStrictEqual(candidate, wanted))
  if (operator === '$eq') return equals(operand)
  if (operator === '$neq') return !equals(operand)
  if (operator === '$in') return (operand as unknown[]).some(equals)
  if (operator === '$nin') return !(operand as unknown[]).some(equals)
  if (operator === '$exists') return missing !== operand
  return candidates.some(candidate => {
    if (operator in order) return inOrder(operator, compared(candidate, operand, attribute))
    if (typeof candidate !== 'string') return false
    const [text, sought] = [candidate.toLowerCase(), String(operand).toLowerCase()]
    if (operator === '$contains') return text.includes(sought)
    return operator === '$starts_with' ? text.startsWith(sought) : text.endsWith(sought)
  })
}

const order: Record<string, (sign: number) => boolean> = {
  $lt: sign => sign < 0,
  $lte: sign => sign <= 0,
  $gt: sign => sign > 0,
  $gte: sign => sign >= 0,
}

const inOrder = (operator: string, sign: number | undefined) => sign !== undefined && order[operator]!(sign)

/** Less than zero, zero, or more; undefined where the two have no order. */
function compared(value: unknown, operand: unknown, attribute?: Attribute): number | undefined {
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
