import { maxRowBytesOf, type Position } from '../../entities/read/pagination.ts'
import { pickedKeys } from '../../entities/read/projection.ts'
import { arrayOfKeys, rowOfMembers, rowWithin } from '../../entities/read/read-sql.ts'
import type { Definitions } from '../../organizations/definitions.ts'
import { constant, type Fragment, Parameter, type Rendered, render, sql } from '../plan/fragment.ts'

/** The names in the statements of a page, and how they show its rows. */
export type ShownRows = {
  organization: Parameter
  /** The condition that a row e belongs to the stack. */
  own: Fragment
  /** The direction of the page, for identifiers. */
  order: Fragment
  /** The condition that an identifier comes after another one in the direction of the page. */
  isAfter: (id: Fragment, start: string) => Fragment
  /** `row`: the text of an entity e with the members of the page, or null if it is too large. */
  row: Fragment
  /** The text of a row x, or its id if the text is too large. */
  shown: Fragment
  schemaVersion: Fragment
  /** The rows of the page whose ids are in the table `matching`. */
  ofMatching: Fragment
  /** The statement of a page of rows x of `id` and `row`, with more members of its row. */
  page: (rows: Fragment, members: Fragment, order: Fragment) => Fragment
  /** Renders a statement that shows rows. */
  render: (statement: Fragment) => Rendered
  /** Renders a statement that shows no rows. */
  renderPlain: (statement: Fragment) => Rendered
}

const asParameter = (value: unknown) => new Parameter(value)

/** Returns how to show the rows of a page of a stack. The text of the statement depends only on its projection. */
export function shownRows(definitions: Definitions, stack_id: number, position: Position): ShownRows {
  const leading = [definitions.organization_id, maxRowBytesOf(position), stack_id].map(asParameter)
  const [organization, maxRowBytes, stack] = leading as [Parameter, Parameter, Parameter]
  const { row: rowText, parameters } = rowOf(position, definitions, stack_id)
  const own = sql`e.organization_id = ${organization} and e.stack_id = ${stack}::integer`
  const row = constant(rowText)
  const isAscending = position.direction === 'asc'
  const shown = sql`coalesce(case when octet_length(x.row) <= ${maxRowBytes}::integer then x.row end, x.id::text)`
  return {
    organization,
    own,
    order: isAscending ? sql`asc` : sql`desc`,
    isAfter: (id, start) => (isAscending ? sql`${id} > ${start}::uuid` : sql`${id} < ${start}::uuid`),
    row,
    shown,
    ofMatching: sql`(select e.id, e.row from matching m cross join lateral (
        select e.id, ${row} from entities e where ${own} and e.id = m.id offset 0
      ) e)`,
    page: (rows, members, order) => sql`
      select string_agg(${shown}, E'\\n' order by x.id ${order}) as rows, count(*)::integer as found, ${members} from ${rows} x`,
    schemaVersion: sql`(select h.schema_version from change_heads h where h.organization_id = ${organization})`,
    render: statement => render(statement, [...leading, ...parameters]),
    renderPlain: statement => render(statement, [organization]),
  }
}

function rowOf({ projection }: Position, definitions: Definitions, stack_id: number) {
  if (!projection) return { row: rowWithin('$2'), parameters: [] }
  const keys = pickedKeys(projection)
  const relationshipsByKey = definitions.relationships.get(stack_id)
  const relationships = keys.flatMap(key => relationshipsByKey?.get(key) ?? []).map(({ id }) => id)
  const parameters = [arrayOfKeys(keys), relationships].filter(each => each.length > 0).map(asParameter)
  const names = {
    keys: keys.length > 0 ? { array: '$4::text[]', count: keys.length } : undefined,
    relationships: relationships.length > 0 ? '$5' : undefined,
  }
  return { row: rowOfMembers('$2', { mask: projection.mask, ...names }), parameters }
}
