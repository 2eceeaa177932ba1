import { comparesExactly, kindBounds, termOf } from '../entities/indexes/index-keys.ts'
import type { Attribute } from '../organizations/definitions.ts'
import { type IndexCandidates, indexCandidateRanks } from './condition.ts'
import { allOf, type Fragment, type Parameter, sql } from './fragment.ts'
import { isRange, type Test } from './grammar.ts'

type RangeTest = Test & { operand: string | number }

/**
 * Selects from an attribute's index the ids of all entities that pass the tests, and possibly others. Undefined if the index
 * does not help: missing values, objects and arrays have no terms, and the index does not support text search.
 */
export function selectTerms(
  attribute: Attribute,
  tests: readonly Test[],
  organization: Parameter,
): IndexCandidates | undefined {
  const equal = equality(attribute, tests)
  const condition = equal ?? range(attribute, tests)
  if (!condition) return undefined
  const select = sql`select x.entity_id from terms x where x.organization_id = ${organization}
      and x.index_id = ${attribute.index!.id}::integer and ${condition}`
  const isExact = !equal && isExactRange(attribute, tests)
  return { rank: equal ? indexCandidateRanks.term : indexCandidateRanks.range, selects: [select], isExact }
}

function equality({ type }: Attribute, tests: readonly Test[]): Fragment | undefined {
  const test = tests.find(({ operator }) => operator === '$eq' || operator === '$in')
  if (!test) return undefined
  const operands = test.operator === '$in' ? test.operand : [test.operand]
  const terms = operands.map(operand => termOf(type, operand))
  if (terms.includes(undefined)) return undefined
  return terms.length === 1 ? sql`x.value = ${terms[0]}::text` : sql`x.value = any(${terms}::text[])`
}

/**
 * The index stores texts cut to a maximum length, so a range includes both of its ends here. With several values, a different
 * value may pass each test, so only one test is used.
 */
function range(attribute: Attribute, tests: readonly Test[]): Fragment | undefined {
  const ranges = tests.filter((test): test is RangeTest => isRange(test.operator))
  if (ranges.length === 0) return undefined
  const usedRanges = attribute.cardinality === 'many' ? ranges.slice(0, 1) : ranges
  return allOf(usedRanges.map(test => bounds(attribute, test)))
}

/** Whether the terms of a range are those of the values that pass all tests. They include both of its ends. */
const isExactRange = ({ type, cardinality }: Attribute, tests: readonly Test[]) =>
  cardinality === 'one' &&
  tests.every(
    ({ operator, operand }) =>
      (operator === '$gte' || operator === '$lte') && comparesExactly(termOf(type, operand) ?? ''),
  )

function bounds({ type }: Attribute, { operator, operand }: RangeTest): Fragment {
  const term = termOf(type, operand)!
  const [first, end] = kindBounds(term)
  return operator === '$lt' || operator === '$lte'
    ? sql`x.value >= ${first}::text and x.value <= ${term}::text`
    : sql`x.value >= ${term}::text and x.value < ${end}::text`
}
