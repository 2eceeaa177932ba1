import { type SortField, timeColumns } from '../../entities/indexes/sort-field.ts'
import { emailKey } from '../../entities/match-keys.ts'
import type { Definitions } from '../../organizations/definitions.ts'
import { profileFlags, profileTexts } from '../../values/profile-fields.ts'
import { type Condition, type Field, isRange, type Test } from '../grammar/grammar.ts'
import { mayHaveAliases, nameOrAlias, selectByAlias } from './aliases.ts'
import { attributeCondition } from './attribute.ts'
import { booleanColumn, identifierColumn, stateColumn, testOf, testsOf, textColumn, timeColumn } from './comparable.ts'
import {
  and,
  type Candidates,
  type CompiledCondition,
  candidateRanks,
  compiled,
  or,
  type Subject,
} from './condition.ts'
import { consentCondition, contactableCondition, deliverabilityCondition } from './consents.ts'
import { always, columnFragments, type Fragment, negated, type Parameter, sql } from './fragment.ts'
import { type LinkMeasured, measuredCondition, measureOfAll, measureOfOne, relatedCondition, rows } from './linked.ts'

/**
 * Compiles a filter on the entities of a stack to a condition on the row `e` of `entities`, which is true or false and
 * never null, and to the candidates of indexes. The SQL text contains no value and no key.
 */
export function compileCondition(
  condition: Condition,
  definitions: Definitions,
  stack_id: number,
  organization: Parameter,
  isWholeStack = false,
): CompiledCondition {
  return compile(condition, { definitions, organization, stack_id, row: rows[0], relationDepth: 0, isWholeStack })
}

/**
 * Whether every match has to satisfy a condition on linked entities. A check of a whole stack then joins the links
 * once.
 */
export function needsLinked(condition: Condition): boolean {
  if (condition.kind === 'all') return condition.conditions.some(needsLinked)
  return isLinked(condition.kind === 'not' ? condition.condition : condition)
}

const isLinked = ({ kind }: Condition) => kind === 'related' || kind === 'measured'

/** Compiles the measure of the entities that link to the row `e`, and of those that link to any row. */
export function compileMeasure(
  linked: LinkMeasured,
  definitions: Definitions,
  stack_id: number,
  organization: Parameter,
): { ofOne: Fragment; ofAll: Fragment } {
  const subject: Subject = { definitions, organization, stack_id, row: rows[0], relationDepth: 0 }
  return { ofOne: measureOfOne(linked, subject, compile), ofAll: measureOfAll(linked, subject, compile) }
}

function compile(condition: Condition, subject: Subject): CompiledCondition {
  switch (condition.kind) {
    case 'all':
      return and(condition.conditions.map(inner => compile(inner, subject)))
    case 'any':
      return or(condition.conditions.map(inner => compile(inner, rowByRow(subject))))
    case 'not':
      return compiled(
        negated(compile(condition.condition, isLinked(condition.condition) ? subject : rowByRow(subject)).check),
      )
    case 'consents':
      return compiled(consentCondition(condition, subject))
    case 'contactable':
      return compiled(contactableCondition(condition, subject))
    case 'deliverability':
      return deliverabilityCondition(condition, subject)
    case 'related':
      return relatedCondition(condition, subject, compile)
    case 'measured':
      return measuredCondition(condition, subject, compile)
    case 'field':
      return compileField(condition.field, condition.tests, subject)
  }
}

/**
 * PostgreSQL joins only a condition that every match has to satisfy. For any other, it would run a statement on all
 * links for each row.
 */
const rowByRow = (subject: Subject): Subject => ({ ...subject, isWholeStack: false })

function compileField(field: Field, tests: readonly Test[], subject: Subject): CompiledCondition {
  const { row } = subject
  switch (field.kind) {
    case 'attribute':
      return attributeCondition(field.key, tests, subject)
    case 'text':
      return compileTextColumn(field, tests, subject)
    case 'boolean':
      return compiled(testsOf(booleanColumn(columnsOf[field.column](row)), tests))
    case 'time':
      return compiled(testsOf(timeColumn(columnsOf[field.column](row)), tests))
    case 'state':
      return compiled(testsOf(stateColumn(sql`${row}.active`), tests))
    default:
      return compileIdentifier(field.kind, tests, subject)
  }
}

const columnsOf = columnFragments(['external_id', ...profileTexts, ...profileFlags, ...timeColumns])

type TextField = Extract<SortField, { kind: 'text' }>

/** An index has the external identifier, and another the keys of emails. The other text columns have no index. */
function compileTextColumn({ column }: TextField, tests: readonly Test[], subject: Subject): CompiledCondition {
  const { row, organization, stack_id } = subject
  const hasAliases = column === 'external_id' && mayHaveAliases(subject, stack_id)
  const checkOn = (alias: Fragment) => {
    const value = columnsOf[column](alias)
    return testsOf(hasAliases ? nameOrAlias(value, sql`${alias}.id`, organization) : textColumn(value), tests)
  }
  const check = checkOn(row)
  const equality = tests.find(({ operator, operand }) => equalities[operator]?.(operand))
  const select = (condition: Fragment) => sql`select g.id from entities g
    where g.organization_id = ${organization} and g.stack_id = ${stack_id}::integer and ${condition}`
  const checked = checkOn(sql`g`)
  if (column === 'email' && equality) {
    const ofKey = (key: Fragment) => select(sql`g.email_key = ${key} and ${checked}`)
    return compiled(check, { rank: candidateRanks.email, rest: always, isDistinct: true, ...byEmail(equality, ofKey) })
  }
  const isByRange = tests.some(({ operator }) => isRange(operator))
  if (column !== 'external_id' || !(equality || isByRange)) return compiled(check)
  const rank = equality ? candidateRanks.identifier : candidateRanks.range
  if (hasAliases && equality) {
    const selects = [select(testOf(textColumn(sql`g.external_id`), equality)), selectByAlias(equality, organization)]
    return compiled(check, { rank, selects, rest: check })
  }
  const isOrdered = equality?.operator === '$eq'
  return compiled(check, { rank, selects: [select(checked)], rest: always, isDistinct: true, isOrdered })
}

/** Looks up the key of one email, whose ids are ordered, or the keys of several. */
function byEmail(
  { operator, operand }: Test,
  ofKey: (key: Fragment) => Fragment,
): Pick<Candidates, 'selects' | 'isOrdered'> {
  const keys = new Set([operand].flat().map(email => emailKey(email as string) ?? ''))
  if (operator === '$eq') return { selects: [ofKey(sql`${[...keys][0]}::text`)], isOrdered: true }
  const each = sql`select f.id from unnest(${[...keys]}::text[]) k(key) cross join lateral (${ofKey(sql`k.key`)} offset 0) f`
  return { selects: [each] }
}

/** Whether an equality with this operand finds only rows with a value. */
const equalities: Partial<Record<Test['operator'], (operand: unknown) => boolean>> = {
  $eq: operand => operand !== null,
  $in: operand => Array.isArray(operand) && !operand.includes(null),
}

function compileIdentifier(
  kind: 'id' | 'record_id',
  tests: readonly Test[],
  { row, organization, stack_id }: Subject,
): CompiledCondition {
  const checkOn = (alias: Fragment) => testsOf(identifierColumn(sql`${alias}.id`, kind), tests)
  const check = checkOn(row)
  if (!tests.some(({ operator, operand }) => equalities[operator]?.(operand))) return compiled(check)
  const select = sql`select g.id from entities g
    where g.organization_id = ${organization} and g.stack_id = ${stack_id}::integer and ${checkOn(sql`g`)}`
  return compiled(check, { rank: candidateRanks.identifier, selects: [select], rest: always, isDistinct: true })
}
