/** A filter as the API takes it. */
export type Filter = Record<string, unknown>

/** How the conditions of a group combine: all hold, at least one holds, or none holds. */
export type GroupMode = 'all' | 'any' | 'none'

/** The operators that have their name of the API after a `$`. */
export const comparisons = [
  'eq',
  'neq',
  'contains',
  'starts_with',
  'ends_with',
  'in',
  'nin',
  'gt',
  'gte',
  'lt',
  'lte',
  'exists',
] as const

/** The operators of the builder. `missing` is written as `{"$exists": false}`, and the spans of time after it as comparisons with relative times. */
export const operators = [...comparisons, 'missing', 'in_last', 'in_next', 'before_today', 'anniversary'] as const
export type Operator = (typeof operators)[number]

export const quantifiers = ['some', 'none', 'every'] as const
export type Quantifier = (typeof quantifiers)[number]

/** The measures of the entities that link to one: their number, or a measure of one of their fields. */
export const measures = ['count', 'sum', 'avg', 'min', 'max'] as const
export type Measure = (typeof measures)[number]

/** How a value is tested. An operand that is not complete, such as an empty one, leaves its condition out of the filter. */
export type Test = { operator: Operator; operand: string }

/** The type of a field, which decides about its operators and the form of their operands. */
export type FieldType = 'text' | 'number' | 'boolean' | 'date' | 'datetime' | 'state' | 'json' | 'relation' | 'incoming'

export const isTime = (type: FieldType): type is 'date' | 'datetime' => type === 'date' || type === 'datetime'

const orderedTypes = ['number', 'text', 'date', 'datetime'] as const satisfies FieldType[]

/** The types of the fields that each measure takes. */
export const measurableTypes: Record<Measure, readonly FieldType[]> = {
  ...{ count: [], sum: ['number'], avg: ['number'] },
  ...{ min: orderedTypes, max: orderedTypes },
}

/** A part of the filter in the builder. `id` tells the parts of a tree apart. */
export type FilterNode =
  | FilterGroup
  | ({ id: number; kind: 'field'; field: string } & Test)
  /** Entities at the other end of a relationship, in either direction. */
  | { id: number; kind: 'related'; field: string; quantifier: Quantifier; group: FilterGroup }
  /** A measure of the entities that link here. `group` selects those that are measured, `of` is the measured field of all measures but `count`. */
  | ({ id: number; kind: 'measured'; field: string; measure: Measure; of: string; group: FilterGroup } & Test)
  | { id: number; kind: 'consent'; consentTypeId: string; channel: string; state: string }
  | { id: number; kind: 'contactable'; consentTypeId: string; channel: string }
  /** An address of a person, on the channel or on any, that messages reach or that is suppressed. */
  | { id: number; kind: 'deliverability'; channel: '' | 'email' | 'sms'; state: 'suppressed' | 'deliverable' }
  | { id: number; kind: 'segment'; key: string }
  /** A part of a filter that the builder has no controls for. */
  | { id: number; kind: 'raw'; filter: Filter }

export type FilterGroup = { id: number; kind: 'group'; mode: GroupMode; children: FilterNode[] }

export type NodeOf<Kind extends FilterNode['kind']> = Extract<FilterNode, { kind: Kind }>

let lastId = 0
export const newId = () => ++lastId

export const newGroup = (mode: GroupMode = 'all', children: FilterNode[] = []): FilterGroup => ({
  id: newId(),
  kind: 'group',
  mode,
  children,
})

/** A condition whose field is not chosen yet. It is no part of the written filter. */
export const newCondition = (): FilterNode => ({ id: newId(), kind: 'field', field: '', operator: 'eq', operand: '' })

/** How many conditions a tree has, without those that are incomplete. */
export function countConditions(filter: Filter): number {
  return Object.entries(filter).reduce((sum, [key, value]) => {
    if (key === '$and' || key === '$or')
      return sum + (value as Filter[]).reduce((n, part) => n + countConditions(part), 0)
    if (key === '$not') return sum + countConditions(value as Filter)
    return sum + 1
  }, 0)
}
