import { timeColumns } from '../../entities/indexes/sort-field.ts'
import { profileTexts } from '../../values/profile-fields.ts'
import { type Condition, type Linked, type Measured, otherEndOf, type Test } from '../grammar/grammar.ts'
import { selectSources, shownValue } from './attribute.ts'
import { type Comparable, instantColumn, numericColumn, testsOf, textColumn } from './comparable.ts'
import {
  allCandidates,
  type Candidates,
  type CompiledCondition,
  candidateRanks,
  compiled,
  distinctCandidates,
  type Subject,
} from './condition.ts'
import { always, columnFragments, type Fragment, negated, sql } from './fragment.ts'
import { dateOf, secondsOf } from './json-value.ts'

/** The aliases of the rows in `entities` and in `links`, by the number of relationships that lead to them. */
export const rows = [sql`e`, sql`e1`, sql`e2`, sql`e3`] as const
const links = [sql`l`, sql`l1`, sql`l2`, sql`l3`] as const

/** The alias of the link that leads to a row. */
const linkTo = ({ relationDepth }: Subject) => links[relationDepth]!

/** The rows at the other end, the condition on them, and a value of each row. */
type LinkedRows = { other: Subject; inner: CompiledCondition; value: Fragment }

type Compile = (condition: Condition, subject: Subject) => CompiledCondition

/** Some, none or all entities at the other end of the links satisfy a condition. */
export function relatedCondition(
  condition: Extract<Condition, { kind: 'related' }>,
  subject: Subject,
  compile: Compile,
): CompiledCondition {
  const { quantifier } = condition
  const { other, inner } = otherEnd(condition, subject, compile)
  // Every entity satisfies the condition if none fails it.
  const checked = quantifier === '$every' ? compiled(negated(inner.check)) : inner
  const linked = { other, inner: checked, value: noValue }
  const exists = subject.isWholeStack
    ? sql`exists (select from (select ${endsOf(condition, linkTo(other)).here} as id ${allLinkedRows(condition, subject, linked)}) m
        where m.id = ${subject.row}.id)`
    : sql`exists (select ${linkedRows(condition, subject, linked)})`
  if (quantifier !== '$some') return compiled(negated(exists))
  return compiled(exists, candidatesOf(condition, inner, subject, exists))
}

/** A count or a measure of the entities at the other end that satisfy a condition passes tests. */
export function measuredCondition(condition: LinkMeasured, subject: Subject, compile: Compile): CompiledCondition {
  const end = measuredEnd(condition, subject, compile)
  const passes = testsOf(end.comparable(sql`m.v`), condition.tests)
  const isForNothing = condition.tests.every(test => holdsForNothing(condition.measured, test))
  if (subject.isWholeStack) {
    // The measures of all entities have no row for an entity without links.
    const exists = (test: Fragment) =>
      sql`exists (select from (${measureOfAll(condition, subject, compile)}) m where m.id = ${subject.row}.id and ${test})`
    return compiled(isForNothing ? negated(exists(negated(passes))) : exists(passes))
  }
  const from = linkedRows(condition, subject, end)
  const check = sql`exists (select from (select ${end.measure} as v ${from}) m where ${passes})`
  return compiled(check, isForNothing ? undefined : candidatesOf(condition, end.inner, subject, check))
}

/** A measure of linked entities. */
export type LinkMeasured = Extract<Condition, { kind: 'measured' }>

/** The measure of the entities that link to one row. */
export function measureOfOne(linked: LinkMeasured, subject: Subject, compile: Compile): Fragment {
  const end = measuredEnd(linked, subject, compile)
  return sql`(select ${end.measure} ${linkedRows(linked, subject, end)})`
}

/**
 * The measure of all linked entities, as rows of `id` and `v`. PostgreSQL reads both tables once for it. An entity
 * without links has no row.
 */
export function measureOfAll(linked: LinkMeasured, subject: Subject, compile: Compile): Fragment {
  const end = measuredEnd(linked, subject, compile)
  const { here } = endsOf(linked, linkTo(end.other))
  return sql`select ${here} as id, ${end.measure} as v ${allLinkedRows(linked, subject, end)} group by 1`
}

/** The rows at the other end, and how to compute a measure of them. */
function measuredEnd(linked: LinkMeasured, subject: Subject, compile: Compile): LinkedRows & Computed {
  const end = otherEnd(linked, subject, compile)
  return { ...end, ...measureOf(linked.measured, end.other) }
}

/** The row at the other end, and the condition on it. */
function otherEnd({ condition, ...linked }: Linked, subject: Subject, compile: Compile) {
  const relationDepth = subject.relationDepth + 1
  const other = {
    ...subject,
    stack_id: otherEndOf(linked),
    row: rows[relationDepth]!,
    relationDepth,
    isWholeStack: false,
  }
  return { other, inner: compile(condition, other) }
}

/**
 * The linked rows that pass a check, with a value of each. The statement checks link by link and is fenced
 * (`offset 0`), so the cost of a row depends on its links and not on the estimates of PostgreSQL's planner. As joins,
 * three hops among fifty entities without statistics took a minute.
 */
function linkedRows(linked: Linked, { organization, row }: Subject, wanted: LinkedRows): Fragment {
  const { other, inner, value } = wanted
  const [target, link] = [other.row, linkTo(other)]
  const { here, there } = endsOf(linked, link)
  const own = sql`${link}.organization_id = ${organization} and ${here} = ${row}.id and ${link}.attribute_id = ${linked.attribute.id}::integer`
  if (areLinksAlone(linked, wanted)) return sql`from links ${link} where ${own} offset 0`
  return sql`from links ${link} cross join lateral (
      select ${value} from entities ${target} where ${target}.organization_id = ${organization}
        and ${target}.stack_id = ${other.stack_id}::integer and ${target}.id = ${there} and ${inner.check} offset 0
    ) ${target}
    where ${own} offset 0`
}

/**
 * Whether the links alone give the linked rows. That holds for sources without a condition, because a source exists as
 * long as its links.
 */
const areLinksAlone = ({ isIncoming }: Linked, { inner, value }: LinkedRows) =>
  isIncoming && inner.check === always && value === noValue

/**
 * Like {@link linkedRows}, but for all links and without a fence. If an index gives candidates, the statement looks up
 * only their links.
 */
function allLinkedRows(linked: Linked, { organization }: Subject, wanted: LinkedRows): Fragment {
  const { other, inner, value } = wanted
  const [target, link] = [other.row, linkTo(other)]
  const [candidates] = inner.candidates
  const there = endsOf(linked, link).there
  const own = sql`${link}.organization_id = ${organization} and ${link}.attribute_id = ${linked.attribute.id}::integer`
  if (areLinksAlone(linked, wanted)) return sql`from links ${link} where ${own}`
  if (candidates) {
    const checked = sql`cross join lateral (
        select ${value} from entities ${target} where ${target}.organization_id = ${organization}
          and ${target}.stack_id = ${other.stack_id}::integer and ${target}.id = c.id and ${inner.check} offset 0
      ) ${target}`
    // Reading the 82,000 orders of a month takes a second, and finding them 0.1 s.
    const needed = candidates.rest === always && value === noValue ? noValue : checked
    return sql`from (${distinctCandidates(candidates)} offset 0) c ${needed} cross join lateral (
        select ${link}.source_id, ${link}.target_id from links ${link} where ${own} and ${there} = c.id offset 0
      ) ${link}`
  }
  return sql`from links ${link} cross join lateral (
      select ${value} from entities ${target} where ${target}.organization_id = ${organization}
        and ${target}.stack_id = ${other.stack_id}::integer and ${target}.id = ${there} and ${inner.check}
    ) ${target}
    where ${own}`
}

/** The columns of a link for the entity on this side and for the one at the other end. */
function endsOf({ isIncoming }: Pick<Linked, 'isIncoming'>, link: Fragment) {
  const [source, target] = [sql`${link}.source_id`, sql`${link}.target_id`]
  return isIncoming ? { here: target, there: source } : { here: source, there: target }
}

/** The entities that are linked with the candidates at the other end. */
function candidatesOf(
  { attribute, isIncoming }: Linked,
  { candidates: [best] }: CompiledCondition,
  { organization }: Subject,
  rest: Fragment,
): Candidates | undefined {
  if (!best) return undefined
  const linked = allCandidates(best)
  const select = isIncoming
    ? sql`select l.target_id from links l where l.organization_id = ${organization}
        and l.source_id = any(array(${linked})) and l.attribute_id = ${attribute.id}::integer`
    : selectSources(attribute.id, linked, organization)
  return { rank: best.rank + candidateRanks.links, selects: [select], rest }
}

const noValue = sql``

/**
 * How to compute a measure: the value of each row, the aggregate of the values `v`, and the comparison of the result.
 */
type Computed = { value: Fragment; measure: Fragment; comparable: (result: Fragment) => Comparable }

function measureOf(measured: Measured, other: Subject): Computed {
  if (measured.op === '$count') return { value: noValue, measure: sql`count(*)::numeric`, comparable: numericColumn }
  const { op, field, type } = measured
  const value = sql`${typedValue(field, type, other)} as v`
  const comparable = type === 'number' ? numericColumn : type === 'datetime' ? instantColumn : textColumn
  return { value, measure: measures[op](sql`${other.row}.v`), comparable }
}

const measures: Record<Exclude<Measured['op'], '$count'>, (value: Fragment) => Fragment> = {
  $sum: value => sql`sum(${value})`,
  $avg: value => sql`avg(${value})`,
  $min: value => sql`min(${value})`,
  $max: value => sql`max(${value})`,
}

const columnsOf = columnFragments(['external_id', ...profileTexts, ...timeColumns])

/**
 * The value of a field as its type: a number, a text or date in the order of code points, or seconds since 1970. Null
 * for another type.
 */
function typedValue(field: Extract<Measured, { field: unknown }>['field'], type: string, other: Subject): Fragment {
  if (field.kind === 'time') return sql`extract(epoch from ${columnsOf[field.column](other.row)})`
  if (field.kind === 'text') return sql`${columnsOf[field.column](other.row)} collate "C"`
  const shown = shownValue((field as { key: string }).key, other)
  if (type === 'number') return sql`case when jsonb_typeof(${shown}) = 'number' then ${shown}::numeric end`
  const text = sql`((${shown} #>> '{}') collate "C")`
  if (type === 'datetime') return secondsOf(text)
  return type === 'date'
    ? sql`(${dateOf(text)}::text collate "C")`
    : sql`case when jsonb_typeof(${shown}) = 'string' then ${text} end`
}

/** Whether a test holds for an entity without links. Its count is 0, and every other measure is missing. */
function holdsForNothing({ op }: Measured, { operator, operand }: Test): boolean {
  const nothing = op === '$count' ? 0 : null
  switch (operator) {
    case '$eq':
    case '$in':
      return [operand].flat().includes(nothing)
    case '$neq':
    case '$nin':
      return ![operand].flat().includes(nothing)
    case '$exists':
      return operand === (nothing !== null)
    case '$lt':
      return nothing !== null && nothing < Number(operand)
    case '$lte':
      return nothing !== null && nothing <= Number(operand)
    case '$gt':
      return nothing !== null && nothing > Number(operand)
    case '$gte':
      return nothing !== null && nothing >= Number(operand)
    default:
      return false
  }
}
