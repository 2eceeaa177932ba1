import { fail, pointer } from '../errors.ts'
import { type Definitions, isRelationship, peopleStackId } from '../organizations/definitions.ts'
import { consentFault, consentFromQuery } from './consent-operands.ts'
import { fieldOf } from './fields.ts'
import {
  type Condition,
  filterLimits,
  isQuantifier,
  type Quantifier,
  type RelationshipAttribute,
  type Test,
} from './grammar.ts'
import { type OperandType, operandTypeOf } from './operand-types.ts'
import { operandFromQuery, testFrom } from './operands.ts'

/** A key that no active attribute has, and where a filter names it: a JSON Pointer. */
export type UndeclaredKey = { stack_id: number; key: string; path: string }

/** A filter after it was understood. */
export type ParsedFilter = { condition: Condition; undeclared: UndeclaredKey[] }

/** Where in the filter something stands. */
type Place = {
  definitions: Definitions
  boundFrom: BoundFrom
  /** Whose fields are meant here. */
  stack_id: number
  path: readonly (string | number)[]
  depth: number
  hops: number
  /** Of the whole filter. */
  counted: { conditions: number }
  /** Of the whole filter. */
  undeclared: UndeclaredKey[]
}

type BoundFrom = 'body' | 'query'

/**
 * Understands a filter on the entities of a stack. Throws a Fault of 400 with the JSON Pointer, from `/filter` on, of
 * the first thing that is no part of the grammar, beyond a limit, or an operand that its field can never equal. The operands
 * of a query string are texts, and are read as their fields have them.
 */
export function parseFilter(
  filter: unknown,
  definitions: Definitions,
  stack_id: number,
  boundFrom: BoundFrom = 'body',
): ParsedFilter {
  const ofAll = { counted: { conditions: 0 }, undeclared: [] }
  const condition = parseObject(filter, {
    definitions,
    stack_id,
    boundFrom,
    path: ['filter'],
    depth: 1,
    hops: 0,
    ...ofAll,
  })
  return { condition, undeclared: ofAll.undeclared }
}

function refuse({ path }: Pick<Place, 'path'>, message: string): never {
  return fail('invalid_parameter', 'The filter cannot be understood.', {
    details: [{ path: pointer(...path), message }],
  })
}

const within = (place: Place, ...segments: (string | number)[]): Place => ({
  ...place,
  path: [...place.path, ...segments],
})

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function parseObject(filter: unknown, place: Place): Condition {
  if (!isObject(filter)) return refuse(place, 'must be an object of conditions')
  if (place.depth > filterLimits.depth) return refuse(place, `is nested deeper than ${filterLimits.depth} levels`)
  const of = Object.entries(filter).map(([key, operand]) => parseMember(key, operand, within(place, key)))
  return of.length === 1 ? of[0]! : { kind: 'all', of }
}

function parseMember(key: string, operand: unknown, place: Place): Condition {
  const deeper = { ...place, depth: place.depth + 1 }
  if (key === '$not') return { kind: 'not', of: parseObject(operand, deeper) }
  if (key === '$and' || key === '$or') {
    if (!Array.isArray(operand)) return refuse(place, 'must be an array of filters')
    const of = operand.map((filter, index) => parseObject(filter, within(deeper, index)))
    return { kind: key === '$and' ? 'all' : 'any', of }
  }
  if (key.startsWith('$')) return refuse(place, 'is neither a field nor one of $and, $or, $not')
  return parseField(key, operand, place)
}

function parseField(key: string, operand: unknown, place: Place): Condition {
  if (key === 'consents' && place.stack_id === peopleStackId) return parseConsents(operand, place)
  const field = fieldOf(key, place.stack_id)
  if (!field)
    return refuse(place, `is no field of a ${place.stack_id === peopleStackId ? 'person' : 'record'} to filter by`)
  if (field.kind === 'attribute' && !place.definitions.declared.get(place.stack_id)?.has(field.key))
    place.undeclared.push({ stack_id: place.stack_id, key: field.key, path: pointer(...place.path) })
  const type = operandTypeOf(field, place.definitions, place.stack_id)
  if (!isObject(operand)) return { kind: 'field', field, tests: [parseTest(type, '$eq', operand, place)] }
  const operators = Object.entries(operand)
  if (operators.length === 0) return refuse(place, 'names no operator')
  const tests = operators
    .filter(([name]) => !isQuantifier(name))
    .map(([name, value]) => parseTest(type, name, value, within(place, name)))
  const related = operators.flatMap(([name, value]): Condition[] => {
    if (!isQuantifier(name)) return []
    const at = within(place, name)
    countCondition(at)
    return [parseRelated(field.kind === 'attribute' ? field.key : undefined, name, value, at)]
  })
  const of = [...(tests.length > 0 ? [{ kind: 'field', field, tests } as const] : []), ...related]
  return of.length === 1 ? of[0]! : { kind: 'all', of }
}

function parseTest(type: OperandType, operator: string, operand: unknown, place: Place): Test {
  countCondition(place)
  const given = place.boundFrom === 'query' ? operandFromQuery(type, operator, operand) : operand
  const test = testFrom(type, operator, given)
  return 'refused' in test ? refuse(within(place, ...test.refused.path), test.refused.message) : test
}

function countCondition(place: Place) {
  place.counted.conditions += 1
  if (place.counted.conditions > filterLimits.conditions)
    refuse(place, `is one condition more than the ${filterLimits.conditions} a filter may have`)
}

function parseRelated(key: string | undefined, quantifier: Quantifier, filter: unknown, place: Place): Condition {
  const attribute = relationshipOf(key, place) ?? refuse(place, 'belongs to a declared relationship')
  const hops = place.hops + 1
  if (hops > filterLimits.hops) return refuse(place, `is one relationship more than ${filterLimits.hops} in a row`)
  const of = parseObject(filter, { ...place, stack_id: attribute.target_stack_id, hops, depth: place.depth + 1 })
  return { kind: 'related', attribute, quantifier, of }
}

function relationshipOf(key: string | undefined, { definitions, stack_id }: Place): RelationshipAttribute | undefined {
  const attribute = key === undefined ? undefined : definitions.declared.get(stack_id)?.get(key)
  return attribute && isRelationship(attribute) ? attribute : undefined
}

function parseConsents(operand: unknown, place: Place): Condition {
  if (!isObject(operand)) return refuse(place, 'must be an object with $some')
  for (const name of Object.keys(operand))
    if (name !== '$some') refuse(within(place, name), 'is no operator of consents')
  const at = within(place, '$some')
  const { $some } = operand
  if (!isObject($some)) return refuse(at, 'must be an object of consent_type_id, channel and state')
  const given = place.boundFrom === 'query' ? consentFromQuery($some) : $some
  const fault = consentFault(given, place.definitions.consent_types)
  if (fault) return refuse(within(at, ...fault.path), fault.message)
  countCondition(at)
  return { kind: 'consents', ...given }
}
