import { uuidOfRecord } from '../../values/formats.ts'
import { instantOf, numericOf } from '../../values/instant.ts'
import type { RangeOperator, Search, Test } from '../grammar/grammar.ts'
import { allOf, anyOf, type Fragment, negated, never, sql } from './fragment.ts'

/** Compares a value in SQL with operands that `operand-types.ts` accepts. Every fragment is true or false, never null. */
export type Comparable = {
  isMissing: Fragment
  /** Equality with one of the values, none of which is null. */
  equalsAny: (values: readonly unknown[]) => Fragment
  isInRange: (operator: RangeOperator, operand: string | number) => Fragment
  matchesText: (operator: Search, operand: string) => Fragment
  /** The condition that a date is on one of the days of the year, `MM-DD`. Only dates have it. */
  isOnDay?: (days: readonly string[]) => Fragment
}

/** Compiles a test of a value. A missing value is unequal to everything. */
export function testOf(value: Comparable, test: Test): Fragment {
  switch (test.operator) {
    case '$eq':
      return test.operand === null ? value.isMissing : value.equalsAny([test.operand])
    case '$neq':
      return negated(testOf(value, { operator: '$eq', operand: test.operand }))
    case '$in': {
      const present = test.operand.filter(operand => operand !== null)
      return anyOf([present.length < test.operand.length ? value.isMissing : never, value.equalsAny(present)])
    }
    case '$nin':
      return negated(testOf(value, { operator: '$in', operand: test.operand }))
    case '$exists':
      return test.operand ? negated(value.isMissing) : value.isMissing
    case '$contains':
    case '$starts_with':
    case '$ends_with':
      return value.matchesText(test.operator, test.operand)
    case '$anniversary':
      return value.isOnDay?.(test.operand) ?? never
    default:
      return value.isInRange(test.operator, test.operand)
  }
}

/** Compiles tests of a value. All of them have to pass. */
export const testsOf = (value: Comparable, tests: readonly Test[]): Fragment =>
  allOf(tests.map(test => testOf(value, test)))

/** The SQL operator of each range operator. */
export const rangeSigns: Record<RangeOperator, Fragment> = { $lt: sql`<`, $lte: sql`<=`, $gt: sql`>`, $gte: sql`>=` }

// The ICU collation lowercases the letters of every language. The database's locale may not: that of the embedded
// PostgreSQL is C.
const lower = (text: Fragment) => sql`lower(${text} collate "und-x-icu") collate "C"`

// ICU lowercases Σ to ς at the end of a word, and to σ elsewhere. The end of an operand may be in the middle of a word.
const lowerSigma = (text: Fragment) => sql`translate(${lower(text)}, chr(962), chr(963))`
const sigma = /[Σσς]/

/** The condition that a text, which is not null, contains, starts with or ends with another, ignoring case. */
export function searchText(text: Fragment, operator: Search, operand: string): Fragment {
  // Only an operand with a sigma changes the statement. Otherwise the hash of every segment with a text operator would
  // change.
  const fold = sigma.test(operand) ? lowerSigma : lower
  const [value, needle] = [fold(text), fold(sql`${operand}::text`)]
  if (operator === '$contains') return sql`strpos(${value}, ${needle}) > 0`
  if (operator === '$starts_with') return sql`starts_with(${value}, ${needle})`
  return sql`right(${value}, length(${needle})) = ${needle}`
}

/** Equality with one of the values. A single value is compared with `=`, which keeps the order of an index. */
function equals(column: Fragment, values: readonly string[]): Fragment {
  if (values.length === 0) return never
  return values.length === 1 ? sql`${column} = ${values[0]}::text` : sql`${column} = any(${values}::text[])`
}

/**
 * A text column that may be null, in the order of code points. Each comparison tests for null, so that none returns
 * null.
 */
export function textColumn(column: Fragment): Comparable {
  const whenPresent = (test: Fragment) => allOf([sql`${column} is not null`, test])
  const ordered = sql`${column} collate "C"`
  return {
    isMissing: sql`${column} is null`,
    equalsAny: values => whenPresent(equals(ordered, values.map(String))),
    isInRange: (operator, operand) => whenPresent(sql`${ordered} ${rangeSigns[operator]} ${operand}::text`),
    matchesText: (operator, operand) => whenPresent(searchText(column, operator, operand)),
    isOnDay: days => whenPresent(dayIsIn(column, days)),
  }
}

/** The condition that a text in the form of a date is on one of the days of the year. */
export const dayIsIn = (text: Fragment, days: readonly string[]): Fragment =>
  sql`substr(${text}, 6) = any(${days}::text[])`

/** A boolean column that may be null. It has no order and no text. */
export function booleanColumn(column: Fragment): Comparable {
  const whenPresent = (value: boolean) => sql`(${column} is not null and ${column} = ${value}::boolean)`
  return {
    isMissing: sql`${column} is null`,
    equalsAny: values => anyOf([...new Set(values as boolean[])].map(whenPresent)),
    isInRange: () => never,
    matchesText: () => never,
  }
}

const numericInstant = (text: string) => numericOf(instantOf(text))

/** A time column, compared with RFC 3339 times as numbers, because a timestamp would round them to microseconds. */
export function timeColumn(column: Fragment): Comparable {
  const seconds = sql`extract(epoch from ${column})`
  return {
    isMissing: never,
    equalsAny: values => {
      const instants = values.map(value => numericInstant(String(value)))
      return instants.length === 0 ? never : sql`${seconds} = any(${instants}::numeric[])`
    },
    isInRange: (operator, operand) =>
      sql`${seconds} ${rangeSigns[operator]} ${numericInstant(String(operand))}::numeric`,
    matchesText: () => never,
  }
}

/** Compares a numeric value, which may be null, with operands that `toNumeric` converts to numbers. */
const numeric =
  (toNumeric: (operand: string) => string) =>
  (value: Fragment): Comparable => ({
    isMissing: sql`${value} is null`,
    equalsAny: values =>
      values.length === 0
        ? never
        : sql`coalesce(${value} = any(${values.map(each => toNumeric(String(each)))}::numeric[]), false)`,
    isInRange: (operator, operand) =>
      sql`coalesce(${value} ${rangeSigns[operator]} ${toNumeric(String(operand))}::numeric, false)`,
    matchesText: () => never,
  })
/** A number that may be null. */
export const numericColumn = numeric(text => text)
/** Seconds since 1970 that may be null, compared with RFC 3339 times. */
export const instantColumn = numeric(numericInstant)

/** An internal identifier as reads show it. The comparison ignores case, as paths do. */
export function identifierColumn(id: Fragment, kind: 'id' | 'record_id'): Comparable {
  const toUuid = kind === 'id' ? (text: string) => text : uuidOfRecord
  const shown = kind === 'id' ? sql`${id}::text` : sql`left(replace(${id}::text, '-', ''), 24)`
  return {
    isMissing: never,
    equalsAny: values => {
      const ids = values.map(value => toUuid(String(value)))
      return ids.length === 0 ? never : sql`${id} = any(${ids}::uuid[])`
    },
    isInRange: (operator, operand) =>
      sql`${shown} collate "C" ${rangeSigns[operator]} ${String(operand).toLowerCase()}::text`,
    matchesText: (operator, operand) => searchText(shown, operator, operand),
  }
}

/** The state of an entity: `active` or `placeholder`. */
export function stateColumn(active: Fragment): Comparable {
  const shown = sql`case when ${active} then 'active' else 'placeholder' end`
  return { ...textColumn(sql`(${shown})`), isMissing: never }
}
