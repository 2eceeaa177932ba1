/** A filter in the form of the API. */
export type Filter = Record<string, unknown>

/** How the conditions of a group combine: all hold, at least one holds, or none holds. */
export type GroupMode = 'all' | 'any' | 'none'

/** The operators whose name in the API is the same with a `$`. */
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

/**
 * The operators of the builder. `missing` is written as `{"$exists": false}`. The spans of time after it are written as
 * comparisons with relative times.
 */
export const operators = [...comparisons, 'missing', 'in_last', 'in_next', 'before_today', 'anniversary'] as const
export type Operator = (typeof operators)[number]

export const quantifiers = ['some', 'none', 'every'] as const
export type Quantifier = (typeof quantifiers)[number]

/** The measures of the entities that link to one: their number, or a measure of one of their fields. */
export const measures = ['count', 'sum', 'avg', 'min', 'max'] as const
export type Measure = (typeof measures)[number]

/** The test of a value. An incomplete operand, such as an empty one, omits its condition from the filter. */
export type Test = { operator: Operator; operand: string }

/** The type of a field, which determines its operators and the form of their operands. */
export type FieldType = 'text' | 'number' | 'boolean' | 'date' | 'datetime' | 'state' | 'json' | 'relation' | 'incoming'

export const isTime = (type: FieldType): type is 'date' | 'datetime' => type === 'date' || type === 'datetime'

const orderedTypes = ['number', 'text', 'date', 'datetime'] as const satisfies FieldType[]

/** The types of the fields that each measure takes. */
export const measurableTypes: Record<Measure, readonly FieldType[]> = {
  ...{ count: [], sum: ['number'], avg: ['number'] },
  ...{ min: orderedTypes, max: orderedTypes },
}

/** A part of the filter in the builder. `id` is unique in a tree. */
export type FilterNode =
  | FilterGroup
  | ({ id: number; kind: 'field'; field: string } & Test)
  /** Entities at the other end of a relationship, in either direction. */
  | { id: number; kind: 'related'; field: string; quantifier: Quantifier; group: FilterGroup }
  /**
   * A measure of the entities that link here. `group` selects the measured entities, `of` is the measured field of all
   * measures but `count`.
   */
  | ({ id: number; kind: 'measured'; field: string; measure: Measure; of: string; group: FilterGroup } & Test)
  | { id: number; kind: 'consent'; consentTypeId: string; channel: string; state: string }
  | { id: number; kind: 'contactable'; consentTypeId: string; channel: string }
  /** An address of a person, on the channel or on any channel, that is deliverable or suppressed. */
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

/** A condition whose field is not chosen yet. The written filter omits it. */
export const newCondition = (): FilterNode => ({ id: newId(), kind: 'field', field: '', operator: 'eq', operand: '' })

/** The number of complete conditions in a filter. */
export function countConditions(filter: Filter): number {
  return Object.entries(filter).reduce((sum, [key, value]) => {
    if (key === '$and' || key === '$or')
      return sum + (value as Filter[]).reduce((n, part) => n + countConditions(part), 0)
    if (key === '$not') return sum + countConditions(value as Filter)
    return sum + 1
  }, 0)
}
