import type { Definitions } from '../organizations/definitions.ts'
import { attributeCondition, selectSources } from './attribute.ts'
import { booleanColumn, identifierColumn, stateColumn, testOf, textColumn, timeColumn } from './comparable.ts'
import { and, type CompiledCondition, indexCandidateRanks, or, type Subject, unindexed } from './condition.ts'
import { consentCondition } from './consents.ts'
import { allOf, type Fragment, negated, type Parameter, sql } from './fragment.ts'
import {
  type BooleanColumn,
  type Condition,
  type Field,
  isRange,
  type Test,
  type TextColumn,
  type TimeColumn,
} from './grammar.ts'

/** The aliases of the rows in `entities`, by the relationships between them and what is filtered. */
const rows = [sql`e`, sql`e1`, sql`e2`, sql`e3`] as const

/**
 * A filter on the entities of a stack as a condition on the row `e` of `entities`, which is true or false and never
 * null, and the index that finds who is worth checking. No value and no key is in the text.
 */
export function compileCondition(
  condition: Condition,
  definitions: Definitions,
  stack_id: number,
  organization: Parameter,
): CompiledCondition {
  return ask(condition, { definitions, organization, stack_id, row: rows[0], hops: 0 })
}

function ask(condition: Condition, subject: Subject): CompiledCondition {
  switch (condition.kind) {
    case 'all':
      return and(condition.of.map(one => ask(one, subject)))
    case 'any':
      return or(condition.of.map(one => ask(one, subject)))
    case 'not':
      return unindexed(negated(ask(condition.of, subject).check))
    case 'consents':
      return unindexed(consentCondition(condition, subject))
    case 'related':
      return askRelated(condition, subject)
    case 'field':
      return askField(condition.field, condition.tests, subject)
  }
}

/**
 * Somebody, nobody or everybody at the other ends of a relationship's links. Link by link and fenced (`offset 0`), so
 * that a row costs as much as it has links whatever the planner believes: as joins, three hops of fifty entities with
 * no statistics took a minute.
 */
function askRelated(
  { attribute, quantifier, of }: Extract<Condition, { kind: 'related' }>,
  subject: Subject,
): CompiledCondition {
  const { organization, row } = subject
  const { id, target_stack_id } = attribute
  const hops = subject.hops + 1
  const [target, link] = [rows[hops]!, links[hops]!]
  const asked = ask(of, { ...subject, stack_id: target_stack_id, row: target, hops })
  const wanted = quantifier === '$every' ? negated(asked.check) : asked.check
  const exists = sql`exists (select from links ${link} cross join lateral (
      select from entities ${target} where ${target}.organization_id = ${organization}
        and ${target}.stack_id = ${target_stack_id}::integer and ${target}.id = ${link}.target_id and ${wanted} offset 0
    ) ${target}
    where ${link}.organization_id = ${organization} and ${link}.source_id = ${row}.id
      and ${link}.attribute_id = ${id}::integer offset 0)`
  if (quantifier !== '$some') return unindexed(negated(exists))
  const ids = asked.guide && selectSources(id, asked.guide.ids, organization)
  return { check: exists, guide: ids && { rank: asked.guide!.rank + indexCandidateRanks.links, ids } }
}

const links = [sql`l`, sql`l1`, sql`l2`, sql`l3`] as const

function askField(field: Field, tests: readonly Test[], subject: Subject): CompiledCondition {
  const { row } = subject
  switch (field.kind) {
    case 'attribute':
      return attributeCondition(field.key, tests, subject)
    case 'text':
      return askTextColumn(field.column, tests, subject)
    case 'boolean':
      return unindexed(allOf(tests.map(test => testOf(booleanColumn(booleanColumns[field.column](row)), test))))
    case 'time':
      return unindexed(allOf(tests.map(test => testOf(timeColumn(timeColumns[field.column](row)), test))))
    case 'state':
      return unindexed(allOf(tests.map(test => testOf(stateColumn(sql`${row}.active`), test))))
    default:
      return askIdentifier(field.kind, tests, subject)
  }
}

type ColumnOf = (row: Fragment) => Fragment

const textColumns: Record<TextColumn, ColumnOf> = {
  external_id: row => sql`${row}.external_id`,
  first_name: row => sql`${row}.first_name`,
  last_name: row => sql`${row}.last_name`,
  email: row => sql`${row}.email`,
  mobile_prefix: row => sql`${row}.mobile_prefix`,
  mobile_number: row => sql`${row}.mobile_number`,
  date_of_birth: row => sql`${row}.date_of_birth`,
  language: row => sql`${row}.language`,
}

const booleanColumns: Record<BooleanColumn, ColumnOf> = {
  email_consent: row => sql`${row}.email_consent`,
  sms_consent: row => sql`${row}.sms_consent`,
  push_notification_consent: row => sql`${row}.push_notification_consent`,
}

const timeColumns: Record<TimeColumn, ColumnOf> = {
  created_at: row => sql`${row}.created_at`,
  updated_at: row => sql`${row}.updated_at`,
}

/** Email and external identifier have indexes of their own. */
function askTextColumn(
  column: TextColumn,
  tests: readonly Test[],
  { row, organization, stack_id }: Subject,
): CompiledCondition {
  const checkOn = (alias: Fragment) => allOf(tests.map(test => testOf(textColumn(textColumns[column](alias)), test)))
  const check = checkOn(row)
  const isIndexed = column === 'email' || column === 'external_id'
  const isEquality = tests.some(({ operator, operand }) => equalities[operator]?.(operand))
  if (!isIndexed || !(isEquality || tests.some(({ operator }) => isRange(operator)))) return unindexed(check)
  const ids = sql`select g.id from entities g
    where g.organization_id = ${organization} and g.stack_id = ${stack_id}::integer and ${checkOn(sql`g`)}`
  const rank = column === 'email' ? indexCandidateRanks.email : indexCandidateRanks.identifier
  return { check, guide: { rank: isEquality ? rank : indexCandidateRanks.range, ids } }
}

/** Whether an equality finds only who has a value. */
const equalities: Partial<Record<Test['operator'], (operand: unknown) => boolean>> = {
  $eq: operand => operand !== null,
  $in: operand => Array.isArray(operand) && !operand.includes(null),
}

function askIdentifier(
  kind: 'id' | 'record_id',
  tests: readonly Test[],
  { row, organization, stack_id }: Subject,
): CompiledCondition {
  const checkOn = (alias: Fragment) => allOf(tests.map(test => testOf(identifierColumn(sql`${alias}.id`, kind), test)))
  const check = checkOn(row)
  if (!tests.some(({ operator, operand }) => equalities[operator]?.(operand))) return unindexed(check)
  const ids = sql`select g.id from entities g
    where g.organization_id = ${organization} and g.stack_id = ${stack_id}::integer and ${checkOn(sql`g`)}`
  return { check, guide: { rank: indexCandidateRanks.identifier, ids } }
}
