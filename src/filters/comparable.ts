import { instantOf, numericOf } from '../attributes/instant.ts'
import { uuidOfRecord } from '../entities/identifiers.ts'
import { allOf, anyOf, type Fragment, negated, never, sql } from './fragment.ts'
import type { Range, Search, Test } from './grammar.ts'

/** How a value in SQL is compared with operands that `operand-types.ts` accepts. Every fragment is true or false, never null. */
export type Comparable = {
  missing: Fragment
  /** Equal to one of these, none of which is null. */
  among: (values: readonly unknown[]) => Fragment
  ranges: (operator: Range, operand: string | number) => Fragment
  searches: (operator: Search, operand: string) => Fragment
}

/** A test of a comparable value. What is missing is unequal to everything. */
export function testOf(value: Comparable, test: Test): Fragment {
  switch (test.operator) {
    case '$eq':
      return test.operand === null ? value.missing : value.among([test.operand])
    case '$neq':
      return negated(testOf(value, { operator: '$eq', operand: test.operand }))
    case '$in': {
      const present = test.operand.filter(operand => operand !== null)
      return anyOf([present.length < test.operand.length ? value.missing : never, value.among(present)])
    }
    case '$nin':
      return negated(testOf(value, { operator: '$in', operand: test.operand }))
    case '$exists':
      return test.operand ? negated(value.missing) : value.missing
    case '$contains':
    case '$starts_with':
    case '$ends_with':
      return value.searches(test.operator, test.operand)
    default:
      return value.ranges(test.operator, test.operand)
  }
}

export const rangeSigns: Record<Range, Fragment> = { $lt: sql`<`, $lte: sql`<=`, $gt: sql`>`, $gte: sql`>=` }

// The letters of every language, whatever the locale of the database is: an embedded one has C.
const lower = (text: Fragment) => sql`lower(${text} collate "und-x-icu") collate "C"`

/** Whether a text that is not null contains, begins or ends with another, in any case. */
export function searchText(text: Fragment, operator: Search, operand: string): Fragment {
  const sought = lower(sql`${operand}::text`)
  if (operator === '$contains') return sql`strpos(${lower(text)}, ${sought}) > 0`
  if (operator === '$starts_with') return sql`starts_with(${lower(text)}, ${sought})`
  return sql`right(${lower(text)}, length(${sought})) = ${sought}`
}

/** Equal to the one, or to one of several. A plain `=` keeps the order of an index. */
function equals(column: Fragment, values: readonly string[]): Fragment {
  if (values.length === 0) return never
  return values.length === 1 ? sql`${column} = ${values[0]}::text` : sql`${column} = any(${values}::text[])`
}

/** A column of text, or null. Code points decide the order; what bears no null check of its own could become null. */
export function textColumn(column: Fragment): Comparable {
  const known = (test: Fragment) => allOf([sql`${column} is not null`, test])
  const ordered = sql`${column} collate "C"`
  return {
    missing: sql`${column} is null`,
    among: values => known(equals(ordered, values.map(String))),
    ranges: (operator, operand) => known(sql`${ordered} ${rangeSigns[operator]} ${operand}::text`),
    searches: (operator, operand) => known(searchText(column, operator, operand)),
  }
}

export function booleanColumn(column: Fragment): Comparable {
  const known = (value: boolean) => sql`(${column} is not null and ${column} = ${value}::boolean)`
  return {
    missing: sql`${column} is null`,
    among: values => anyOf([...new Set(values as boolean[])].map(known)),
    ranges: () => never,
    searches: () => never,
  }
}

const numericInstant = (text: string) => numericOf(instantOf(text))

/** A time, compared with moments of RFC 3339: exactly, where a timestamp would round to microseconds. */
export function timeColumn(column: Fragment): Comparable {
  const seconds = sql`extract(epoch from ${column})`
  return {
    missing: never,
    among: values => {
      const moments = values.map(value => numericInstant(String(value)))
      return moments.length === 0 ? never : sql`${seconds} = any(${moments}::numeric[])`
    },
    ranges: (operator, operand) => sql`${seconds} ${rangeSigns[operator]} ${numericInstant(String(operand))}::numeric`,
    searches: () => never,
  }
}

/** An internal identifier as a read shows it. Its letters are equal in either case, as in paths. */
export function identifierColumn(id: Fragment, kind: 'id' | 'record_id'): Comparable {
  const toUuid = kind === 'id' ? (text: string) => text : uuidOfRecord
  const shown = kind === 'id' ? sql`${id}::text` : sql`left(replace(${id}::text, '-', ''), 24)`
  return {
    missing: never,
    among: values => {
      const ids = values.map(value => toUuid(String(value)))
      return ids.length === 0 ? never : sql`${id} = any(${ids}::uuid[])`
    },
    ranges: (operator, operand) =>
      sql`${shown} collate "C" ${rangeSigns[operator]} ${String(operand).toLowerCase()}::text`,
    searches: (operator, operand) => searchText(shown, operator, operand),
  }
}

/** `active` or `placeholder`. */
export function stateColumn(active: Fragment): Comparable {
  const shown = sql`case when ${active} then 'active' else 'placeholder' end`
  return { ...textColumn(sql`(${shown})`), missing: never }
}
