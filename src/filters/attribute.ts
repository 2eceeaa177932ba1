import { type Attribute, isRelationship } from '../organizations/definitions.ts'
import { type Comparable, testOf, textColumn } from './comparable.ts'
import { type CompiledCondition, type IndexCandidates, indexCandidateRanks, type Subject } from './condition.ts'
import { allOf, anyOf, type Fragment, type Parameter, sql, unionAll } from './fragment.ts'
import { isRange, type Test } from './grammar.ts'
import { selectTerms } from './index-candidates.ts'
import { jsonValue } from './json-value.ts'

/** What the definitions say of a key: its active attribute, and every relationship that ever had the key. */
type Key = { key: string; declared: Attribute | undefined; relationships: readonly Attribute[] }

/** Tests of the value that a read shows under a key. */
export function attributeCondition(name: string, tests: readonly Test[], subject: Subject): CompiledCondition {
  const { definitions, stack_id } = subject
  const key: Key = {
    key: name,
    declared: definitions.declared.get(stack_id)?.get(name),
    relationships: definitions.relationships.get(stack_id)?.get(name) ?? [],
  }
  const value = comparable(key, subject)
  return { check: allOf(tests.map(test => testOf(value, test))), guide: guideTo(key, tests, subject) }
}

/** A key that was never a relationship has its value on the row; else the links are looked at first, as a read does. */
function comparable({ key, declared, relationships }: Key, subject: Subject): Comparable {
  const plain = sql`${subject.row}.attributes->${key}::text`
  const holdsMany = declared?.cardinality === 'many'
  if (relationships.length === 0) return ofElements(sql`(${plain})`, declared, holdsMany)
  const shown = sql`select coalesce((${shownLinks(relationships, subject)}), ${plain}) as v offset 0`
  const inner = ofElements(sql`s.v`, declared, holdsMany)
  const within = (test: Fragment) => sql`exists (select from (${shown}) s where ${test})`
  return {
    missing: within(inner.missing),
    among: values => within(inner.among(values)),
    ranges: (operator, operand) => within(inner.ranges(operator, operand)),
    searches: (operator, operand) => within(inner.searches(operator, operand)),
  }
}

/** Of an attribute that holds many, the value or one of its elements has to match. */
function ofElements(value: Fragment, declared: Attribute | undefined, holdsMany: boolean): Comparable {
  const whole = jsonValue(value, declared?.type)
  if (!holdsMany) return whole
  const element = jsonValue(sql`c.v`, declared?.type)
  const elements = sql`jsonb_array_elements(case when jsonb_typeof(${value}) = 'array' then ${value} end) c(v)`
  const either = (test: (of: Comparable) => Fragment) =>
    anyOf([test(whole), sql`exists (select from ${elements} where ${test(element)})`])
  return {
    missing: whole.missing,
    among: values => either(of => of.among(values)),
    ranges: (operator, operand) => either(of => of.ranges(operator, operand)),
    searches: (operator, operand) => either(of => of.searches(operator, operand)),
  }
}

/**
 * The names that a read shows under a key: of the last relationship that has links to entities that stand. The target
 * is fenced (`offset 0`): a join may be planned as a scan of all entities where the planner knows too little of them.
 */
function shownLinks(relationships: readonly Attribute[], { organization, row }: Subject): Fragment {
  const ids = relationships.map(({ id }) => id)
  const many = relationships.filter(({ cardinality }) => cardinality === 'many').map(({ id }) => id)
  const names = sql`jsonb_agg(t.external_id order by l.position)`
  return sql`select case when l.attribute_id = any(${many}::integer[]) then ${names} else ${names}->0 end
    from links l cross join lateral (
      select t.external_id from entities t
      where t.organization_id = ${organization} and t.stack_id = l.target_stack_id and t.id = l.target_id offset 0
    ) t
    where l.organization_id = ${organization} and l.source_id = ${row}.id and l.attribute_id = any(${ids}::integer[])
    group by l.attribute_id order by l.attribute_id desc limit 1`
}

/** Finds all entities of which the tests hold, and maybe more; undefined where no index is ready or of use. */
function guideTo(key: Key, tests: readonly Test[], subject: Subject): IndexCandidates | undefined {
  const terms = key.declared?.index?.ready ? selectTerms(key.declared, tests, subject.organization) : undefined
  if (!terms || key.relationships.length === 0) return terms
  const ids = unionAll([linkedTo(key, tests, subject), terms.ids])
  return ids && { rank: Math.max(terms.rank, indexCandidateRanks.links), ids }
}

/** The sources of links whose target's name passes one of the tests that `selectTerms` has chosen an index for. */
function linkedTo({ relationships }: Key, tests: readonly Test[], { organization }: Subject): Fragment | undefined {
  const guiding = tests.find(isEqualityOfNames)
  const asked = guiding ? [guiding] : tests.filter(({ operator }) => isRange(operator))
  const name = textColumn(sql`t.external_id`)
  // Of several names each may pass another test.
  const tested = relationships.some(({ cardinality }) => cardinality === 'many') ? asked.slice(0, 1) : asked
  const selects = relationships.filter(isRelationship).map(({ id, target_stack_id }) => {
    const targets = sql`select t.id from entities t where t.organization_id = ${organization}
      and t.stack_id = ${target_stack_id}::integer and ${allOf(tested.map(test => testOf(name, test)))}`
    return selectSources(id, targets, organization)
  })
  return unionAll(selects)
}

/** Whether a test is passed by one name, and by neither a whole array of names nor a missing one. */
function isEqualityOfNames({ operator, operand }: Test): boolean {
  if (operator === '$eq') return typeof operand === 'string'
  return operator === '$in' && operand.every(name => typeof name === 'string')
}

/** The entities that an attribute links to one of the targets. An array is made first, and looked up by index then. */
export function selectSources(attribute_id: number, targets: Fragment, organization: Parameter): Fragment {
  return sql`select l.source_id from links l where l.organization_id = ${organization}
    and l.target_id = any(array(${targets})) and l.attribute_id = ${attribute_id}::integer`
}
