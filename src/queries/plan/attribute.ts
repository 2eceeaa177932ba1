import { type Attribute, isRelationship, peopleStackId } from '../../organizations/definitions.ts'
import { isRange, type RelationshipAttribute, type Test } from '../grammar/grammar.ts'
import { linksToAlias, mayHaveAliases, selectByAlias } from './aliases.ts'
import { type Comparable, testsOf, textColumn } from './comparable.ts'
import { type Candidates, type CompiledCondition, candidateRanks, compiled, type Subject } from './condition.ts'
import { anyOf, type Fragment, type Parameter, sql } from './fragment.ts'
import { selectTerms } from './index-candidates.ts'
import { jsonValue } from './json-value.ts'

/** A key with its active attribute and every relationship, active or archived, that ever had the key. */
type Key = { key: string; declared: Attribute | undefined; relationships: readonly Attribute[] }

const keyOf = (key: string, { definitions, stack_id }: Subject): Key => ({
  key,
  declared: definitions.declared.get(stack_id)?.get(key),
  relationships: definitions.relationships.get(stack_id)?.get(key) ?? [],
})

/** The value that a read shows under a key, as jsonb, or null if it is absent. */
export function shownValue(name: string, subject: Subject): Fragment {
  const { key, relationships } = keyOf(name, subject)
  const plain = sql`${subject.row}.attributes->${key}::text`
  return relationships.length === 0
    ? sql`(${plain})`
    : sql`coalesce((${linkedReferences(relationships, subject)}), ${plain})`
}

/** The value by which a read refers to a target: its external identifier, or else its internal one. */
const referenceTo = (target: Fragment) => sql`coalesce(to_jsonb(${target}.external_id), case ${target}.stack_id
  when ${peopleStackId}::integer then jsonb_build_object('id', ${target}.id)
  else jsonb_build_object('record_id', left(replace(${target}.id::text, '-', ''), 24)) end)`

/**
 * Returns the relationship of a key that only ever had this one, if its cardinality is one. {@link joinTargets} joins
 * its target.
 */
export function joinableRelationship(name: string, subject: Subject): RelationshipAttribute | undefined {
  const [only, ...others] = keyOf(name, subject).relationships
  return only && isRelationship(only) && only.cardinality === 'one' && others.length === 0 ? only : undefined
}

/** The value that a read shows under the key of a joinable relationship, after the target was joined. */
export const joinedValue = (key: string, target: Fragment, { row }: Subject): Fragment =>
  sql`coalesce(
    case when ${target}.id is not null then ${referenceTo(target)} end,
    ${row}.attributes->${key}::text
  )`

/**
 * Joins the targets of a relationship to the rows: each existing target, or a row of nulls. PostgreSQL can run the join
 * in parallel, but not a subquery for each row. The names are those of two tables.
 */
export function joinTargets(
  { id, cardinality, target_stack_id }: RelationshipAttribute,
  [link, target]: readonly [Fragment, Fragment],
  { organization, row }: Subject,
): Fragment {
  const isLink = sql`${link}.organization_id = ${organization} and ${link}.source_id = ${row}.id and ${link}.attribute_id = ${id}::integer`
  const isTarget = sql`${target}.organization_id = ${organization} and ${target}.stack_id = ${target_stack_id}::integer
    and ${target}.id = ${link}.target_id`
  return cardinality === 'one'
    ? sql`left join links ${link} on ${isLink} and ${link}.position = 0 left join entities ${target} on ${isTarget}`
    : sql`left join (links ${link} join entities ${target} on ${isTarget}) on ${isLink}`
}

/** Compiles tests of the value that a read shows under a key. */
export function attributeCondition(name: string, tests: readonly Test[], subject: Subject): CompiledCondition {
  const key = keyOf(name, subject)
  const value = comparable(key, subject)
  const restOf = (covered: readonly Test[]) =>
    testsOf(
      value,
      tests.filter(test => !covered.includes(test)),
    )
  return compiled(testsOf(value, tests), candidatesOf(key, tests, subject, restOf))
}

/**
 * A key that was never a relationship has its value on the row. For other keys, links take precedence, as in a read.
 */
function comparable({ key, declared, relationships }: Key, subject: Subject): Comparable {
  const plain = sql`${subject.row}.attributes->${key}::text`
  const isMany = declared?.cardinality === 'many'
  if (relationships.length === 0) return valueOrElement(sql`(${plain})`, declared, isMany)
  const shownValue = sql`select coalesce((${linkedReferences(relationships, subject)}), ${plain}) as v offset 0`
  const inner = valueOrElement(sql`s.v`, declared, isMany)
  const shown = comparableBy(test => sql`exists (select from (${shownValue}) s where ${test(inner)})`)
  const toPeople = relationships.filter(({ target_stack_id }) => mayHaveAliases(subject, target_stack_id!))
  if (toPeople.length === 0) return shown
  return {
    ...shown,
    equalsAny: values => anyOf([shown.equalsAny(values), linksToAlias(values, relationships, subject)]),
  }
}

/** Compares a value. With cardinality `many`, a test holds if the whole value or one of its elements passes it. */
function valueOrElement(value: Fragment, declared: Attribute | undefined, isMany: boolean): Comparable {
  const whole = jsonValue(value, declared?.type)
  if (!isMany) return whole
  const element = jsonValue(sql`c.v`, declared?.type)
  const elements = sql`jsonb_array_elements(case when jsonb_typeof(${value}) = 'array' then ${value} end) c(v)`
  const either = (test: (comparable: Comparable) => Fragment) =>
    anyOf([test(whole), sql`exists (select from ${elements} where ${test(element)})`])
  return { ...comparableBy(either), isMissing: whole.isMissing }
}

/** Compares by tests of JSON values, which `apply` applies. */
const comparableBy = (apply: (test: (comparable: Comparable) => Fragment) => Fragment): Comparable => ({
  isMissing: apply(({ isMissing }) => isMissing),
  equalsAny: values => apply(comparable => comparable.equalsAny(values)),
  isInRange: (operator, operand) => apply(comparable => comparable.isInRange(operator, operand)),
  matchesText: (operator, operand) => apply(comparable => comparable.matchesText(operator, operand)),
  isOnDay: days => apply(comparable => comparable.isOnDay!(days)),
})

/**
 * Selects what a read shows under a key: the targets of the newest relationship with links to existing entities.
 * The target is fenced (`offset 0`), because PostgreSQL may plan a join as a scan of all entities if it has no statistics.
 */
function linkedReferences(relationships: readonly Attribute[], { organization, row }: Subject): Fragment {
  const ids = relationships.map(({ id }) => id)
  const many = relationships.filter(({ cardinality }) => cardinality === 'many').map(({ id }) => id)
  const references = sql`jsonb_agg(t.reference order by l.position)`
  return sql`select case when l.attribute_id = any(${many}::integer[]) then ${references} else ${references}->0 end
    from links l cross join lateral (
      select ${referenceTo(sql`t`)} as reference from entities t
      where t.organization_id = ${organization} and t.stack_id = l.target_stack_id and t.id = l.target_id offset 0
    ) t
    where l.organization_id = ${organization} and l.source_id = ${row}.id and l.attribute_id = any(${ids}::integer[])
    group by l.attribute_id order by l.attribute_id desc limit 1`
}

/** The candidates of a ready index that helps. The links of a relationship come before a value on the row. */
function candidatesOf(
  key: Key,
  tests: readonly Test[],
  subject: Subject,
  restOf: (covered: readonly Test[]) => Fragment,
): Candidates | undefined {
  const terms = key.declared?.index?.ready ? selectTerms(key.declared, tests, subject.organization) : undefined
  if (!terms) return undefined
  const { select, covered, ...ids } = terms
  if (key.relationships.length === 0) return { ...ids, selects: [select], rest: restOf(covered) }
  const selects = [...selectLinkedSources(key, tests, subject), select]
  return { rank: Math.max(terms.rank, candidateRanks.links), selects, rest: restOf([]) }
}

/** Selects the sources of the links to targets whose name passes the tests that `selectTerms` has an index for. */
function selectLinkedSources({ relationships }: Key, tests: readonly Test[], subject: Subject): Fragment[] {
  const { organization } = subject
  const equality = tests.find(isEqualityOfNames)
  const indexable = equality ? [equality] : tests.filter(({ operator }) => isRange(operator))
  const name = textColumn(sql`t.external_id`)
  // With several names, different names may pass different tests, so only one test can narrow the selection.
  const hasMany = relationships.some(({ cardinality }) => cardinality === 'many')
  const usedTests = hasMany ? indexable.slice(0, 1) : indexable
  return relationships.filter(isRelationship).map(({ id, target_stack_id }) => {
    const targets = sql`select t.id from entities t where t.organization_id = ${organization}
      and t.stack_id = ${target_stack_id}::integer and ${testsOf(name, usedTests)}`
    const isByAlias = equality && mayHaveAliases(subject, target_stack_id)
    if (isByAlias)
      return selectSources(id, sql`${targets} union all ${selectByAlias(equality, organization)}`, organization)
    // The index has the sources of one target in order, so a page reads only the first of many.
    return equality?.operator === '$eq'
      ? sourcesOf(id, sql`= (${targets})`, organization)
      : selectSources(id, targets, organization)
  })
}

/** Whether the test matches single names only: no array of names, and no missing value. */
function isEqualityOfNames({ operator, operand }: Test): boolean {
  if (operator === '$eq') return typeof operand === 'string'
  return operator === '$in' && operand.every(name => typeof name === 'string')
}

/**
 * Selects the entities that an attribute links to one of the targets. The array makes PostgreSQL use the index of the
 * links.
 */
export const selectSources = (attribute_id: number, targets: Fragment, organization: Parameter): Fragment =>
  sourcesOf(attribute_id, sql`= any(array(${targets}))`, organization)

const sourcesOf = (attribute_id: number, isTarget: Fragment, organization: Parameter) =>
  sql`select l.source_id from links l where l.organization_id = ${organization}
    and l.target_id ${isTarget} and l.attribute_id = ${attribute_id}::integer`
