import type { Question } from '../../consents/answers.ts'
import type { SortField } from '../../entities/indexes/sort-field.ts'
import type { Attribute } from '../../organizations/definitions.ts'
import type { Channel } from '../../values/channels.ts'

/**
 * The limits of a filter: levels of nesting, total conditions, elements of `$in` or `$nin`, and consecutive
 * relationships.
 */
export const filterLimits = { depth: 5, conditions: 50, listElements: 500, relationDepth: 3 } as const

const ranges = ['$lt', '$lte', '$gt', '$gte'] as const
const searches = ['$contains', '$starts_with', '$ends_with'] as const
export const quantifiers = ['$some', '$none', '$every'] as const
/** The measures of linking entities that a condition can compute. */
export const linkMeasures = ['$count', '$sum', '$avg', '$min', '$max'] as const
export const comparisons = ['$eq', '$neq', ...ranges, '$in', '$nin', ...searches, '$exists', '$anniversary'] as const

export type RangeOperator = (typeof ranges)[number]
export type Search = (typeof searches)[number]
export type Quantifier = (typeof quantifiers)[number]
export type LinkMeasure = (typeof linkMeasures)[number]
export type Comparison = (typeof comparisons)[number]

const isOneOf =
  <Name extends string>(names: readonly Name[]) =>
  (name: string): name is Name =>
    names.some(each => each === name)

export const isRange = isOneOf(ranges)
export const isSearch = isOneOf(searches)
export const isQuantifier = isOneOf(quantifiers)
export const isLinkMeasure = isOneOf(linkMeasures)
export const isComparison = isOneOf(comparisons)

/** The field that a condition tests. */
export type Field = SortField | { kind: 'id' } | { kind: 'record_id' } | { kind: 'state' }

/** The type of a field's values. `json` is a value of any type, `name` the external identifier of a linked entity. */
export type ValueType = Exclude<Attribute['type'], 'person' | 'stack'> | 'name' | 'identifier'

/** An operator and its operand. The operand has a shape that the operator accepts. */
export type Test =
  | { operator: '$eq' | '$neq'; operand: unknown }
  | { operator: '$in' | '$nin'; operand: readonly unknown[] }
  | { operator: RangeOperator; operand: string | number }
  | { operator: Search; operand: string }
  | { operator: '$exists'; operand: boolean }
  /** The operand is a list of days of the year, `MM-DD`. */
  | { operator: '$anniversary'; operand: readonly string[] }

/** The fields of a consent that operators test. They are missing for a consent without an answer. */
export const consentFields = ['text_version', 'method', 'answered_at'] as const
export type ConsentField = (typeof consentFields)[number]
export const isConsentField = isOneOf(consentFields)

/** The states of a person's address on a channel that a filter can test. */
export const addressStates = ['deliverable', 'suppressed'] as const
type AddressState = (typeof addressStates)[number]

/** An attribute that links to entities. */
export type RelationshipAttribute = Attribute & { target_stack_id: number }

/** A parsed filter: the condition that a matching entity satisfies. */
export type Condition =
  | { kind: 'all' | 'any'; conditions: Condition[] }
  | { kind: 'not'; condition: Condition }
  | { kind: 'field'; field: Field; tests: Test[] }
  | {
      kind: 'consents'
      consent_type_id?: number
      channel?: Channel
      state?: boolean
      pending?: boolean
      tests: readonly { field: ConsentField; test: Test }[]
    }
  | ({ kind: 'contactable'; at: string } & Question)
  | { kind: 'deliverability'; channel?: Channel; state?: AddressState; at: string }
  | (Linked & { kind: 'related'; quantifier: Quantifier })
  | (Linked & { kind: 'measured'; measured: Measured; tests: Test[] })

/**
 * The entities at the other end of an attribute's links: its targets, or with `isIncoming` the entities that have the
 * attribute.
 */
export type Linked = { attribute: RelationshipAttribute; isIncoming: boolean; condition: Condition }

/** The number of linked entities, or a measure of one of their fields. */
export type Measured = { op: '$count' } | { op: Exclude<LinkMeasure, '$count'>; field: Field; type: ValueType }

/** The stack of the entities at the other end. */
export const otherEndOf = ({ attribute, isIncoming }: Pick<Linked, 'attribute' | 'isIncoming'>): number =>
  isIncoming ? attribute.owner_stack_id : attribute.target_stack_id

/**
 * Visits a condition and then its parts, recursively. Each comes with the stack whose entities it tests and the number
 * of relationships that lead there.
 */
export function* visit(
  condition: Condition,
  stack_id: number,
  relationDepth = 0,
): Generator<{ condition: Condition; stack_id: number; relationDepth: number }> {
  yield { condition, stack_id, relationDepth }
  switch (condition.kind) {
    case 'all':
    case 'any':
      for (const inner of condition.conditions) yield* visit(inner, stack_id, relationDepth)
      break
    case 'not':
      yield* visit(condition.condition, stack_id, relationDepth)
      break
    case 'related':
    case 'measured':
      yield* visit(condition.condition, otherEndOf(condition), relationDepth + 1)
  }
}

/** Whether a filter itself names a segment. Segments that other segments name do not count. */
export function namesSegment(filter: unknown, key: string): boolean {
  if (Array.isArray(filter)) return filter.some(each => namesSegment(each, key))
  if (typeof filter !== 'object' || filter === null) return false
  return Object.entries(filter).some(([name, operand]) => {
    if (name === '$segment') return operand === key
    if (name === '$and' || name === '$or' || name === '$not') return namesSegment(operand, key)
    const operators = typeof operand === 'object' && operand !== null ? Object.entries(operand) : []
    return operators.some(
      ([operator, inner]) => (isQuantifier(operator) || operator === '$where') && namesSegment(inner, key),
    )
  })
}
