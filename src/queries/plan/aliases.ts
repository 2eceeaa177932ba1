import { type Attribute, peopleStackId } from '../../organizations/definitions.ts'
import type { Test } from '../grammar/grammar.ts'
import { type Comparable, textColumn } from './comparable.ts'
import type { Subject } from './condition.ts'
import { anyOf, type Fragment, never, type Parameter, sql } from './fragment.ts'

// An equality with an alias finds the person of the alias, as a read does. Searches and ranges compare only the name
// that a read shows.

/** Whether a filter on the names of a stack's entities has to compare aliases. */
export const mayHaveAliases = ({ definitions }: Pick<Subject, 'definitions'>, stack_id: number): boolean =>
  definitions.has_aliases && stack_id === peopleStackId

/** The external identifier of a person, which also equals the person's aliases. */
export function nameOrAlias(name: Fragment, id: Fragment, organization: Parameter): Comparable {
  const own = textColumn(name)
  return { ...own, equalsAny: values => anyOf([own.equalsAny(values), hasAlias(id, values, organization)]) }
}

/** Whether one of the values is an alias of a person. */
function hasAlias(id: Fragment, values: readonly unknown[], organization: Parameter): Fragment {
  const names = namesOf(values)
  if (names.length === 0) return never
  return sql`exists (select from aliases s where s.organization_id = ${organization} and s.person_id = ${id}
    and s.external_id = any(${names}::text[]))`
}

const namesOf = (values: readonly unknown[]) => values.filter(value => typeof value === 'string')

/** Selects the people whose aliases are operands of an equality. */
export function selectByAlias({ operand }: Test, organization: Parameter): Fragment {
  const names = namesOf([operand].flat())
  return sql`select s.person_id from aliases s
    where s.organization_id = ${organization} and s.external_id = any(${names}::text[])`
}

/** The condition that a link, which a read shows under a key, leads to a person with one of the values as an alias. */
export function linksToAlias(
  values: readonly unknown[],
  relationships: readonly Attribute[],
  { organization, row }: Subject,
): Fragment {
  const ids = relationships.map(({ id }) => id)
  const shown = sql`select k.attribute_id from links k cross join lateral (
      select from entities t
      where t.organization_id = ${organization} and t.stack_id = k.target_stack_id and t.id = k.target_id offset 0
    ) t
    where k.organization_id = ${organization} and k.source_id = ${row}.id and k.attribute_id = any(${ids}::integer[])
    order by k.attribute_id desc limit 1`
  const isAlias = hasAlias(sql`l.target_id`, values, organization)
  if (isAlias === never) return never
  return sql`exists (select from links l
    where l.organization_id = ${organization} and l.source_id = ${row}.id and l.attribute_id = (${shown}) and ${isAlias})`
}
