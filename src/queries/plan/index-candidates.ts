import { isInOrder, isOneValue, kindBounds, prefixBounds, termOf } from '../../entities/indexes/index-keys.ts'
import type { Attribute } from '../../organizations/definitions.ts'
import { isRange, type RangeOperator, type Test } from '../grammar/grammar.ts'
import { rangeSigns } from './comparable.ts'
import { candidateRanks } from './condition.ts'
import { allOf, type Fragment, type Parameter, sql } from './fragment.ts'

type RangeTest = Extract<Test, { operator: RangeOperator }>

/** The ids that an attribute's index selects, and the tests that all of them pass. */
type SelectedTerms = {
  rank: number
  select: Fragment
  covered: readonly Test[]
  isOrdered: boolean
  isDistinct: boolean
}

/**
 * Selects from an attribute's index the ids of all entities that pass the tests, and possibly others. Undefined if the index
 * does not help: missing values, objects and arrays have no terms, and the index does not support text search.
 */
export function selectTerms(
  attribute: Attribute,
  tests: readonly Test[],
  organization: Parameter,
): SelectedTerms | undefined {
  const found = equality(attribute, tests) ?? range(attribute, tests)
  if (!found) return undefined
  const { condition, ...selected } = found
  const select = sql`select x.entity_id from terms x where x.organization_id = ${organization}
      and x.index_id = ${attribute.index!.id}::integer and ${condition}`
  return { ...selected, select }
}

type Found = Omit<SelectedTerms, 'select'> & { condition: Fragment }

function equality({ type, cardinality }: Attribute, tests: readonly Test[]): Found | undefined {
  const test = tests.find(({ operator }) => operator === '$eq' || operator === '$in')
  if (!test) return undefined
  const operands = test.operator === '$in' ? test.operand : [test.operand]
  const terms = operands.map(operand => termOf(type, operand))
  if (!terms.every(term => term !== undefined)) return undefined
  const isOne = terms.length === 1
  return {
    rank: candidateRanks.term,
    condition: isOne ? sql`x.value = ${terms[0]}::text` : sql`x.value = any(${terms}::text[])`,
    // An equality of times compares their texts.
    covered: terms.every(isOneValue) ? [test] : [],
    isOrdered: isOne,
    isDistinct: isOne || cardinality === 'one',
  }
}

/** With several values, different values may pass different tests, so only one test is used. */
function range(attribute: Attribute, tests: readonly Test[]): Found | undefined {
  const isMany = attribute.cardinality === 'many'
  const ranges = tests.filter((test): test is RangeTest => isRange(test.operator))
  if (ranges.length === 0) return undefined
  const used = isMany ? ranges.slice(0, 1) : ranges
  return {
    rank: candidateRanks.range,
    condition: allOf(used.map(test => bounds(attribute, test))),
    covered: used.filter(({ operand }) => isInOrder(operand)),
    isOrdered: false,
    isDistinct: !isMany,
  }
}

/** The bounds of the terms of a range. An operand longer than a term includes all texts with the same beginning. */
function bounds({ type }: Attribute, { operator, operand }: RangeTest): Fragment {
  const isAbove = operator === '$gt' || operator === '$gte'
  const [first, end] = kindBounds(termOf(type, operand)!)
  if (!isInOrder(operand)) {
    const [from, to] = prefixBounds(String(operand))
    return isAbove
      ? sql`x.value >= ${from}::text and x.value < ${end}::text`
      : sql`x.value >= ${first}::text and x.value <= ${to}::text`
  }
  const isWithin = sql`x.value ${rangeSigns[operator]} ${termOf(type, operand)}::text`
  return isAbove ? sql`${isWithin} and x.value < ${end}::text` : sql`x.value >= ${first}::text and ${isWithin}`
}
