import type { Context } from '../../db/context.ts'
import { type Attribute, type Definitions, definitionsAt } from '../../organizations/definitions.ts'
import type { Signal } from '../../process/signal.ts'
import { closeEntity } from '../../route/closed-fields.ts'
import { accessOf, type Rights } from '../../route/field-rights.ts'
import type { Shown } from '../../route/shown.ts'
import { refuse } from '../../values/errors.ts'
import { type AddedMembers, printEach } from './entity-json.ts'
import { wholeById } from './projection.ts'
import { readIncludedSql } from './read-sql.ts'

/** Maximum number of entities that a page includes. An entity counts once for each item that links to it. */
export const maxIncluded = 10_000
/** Maximum size of the entities that a page includes, in bytes of JSON. */
const maxIncludedBytes = 8 * 1024 * 1024

/** The member `included` of each item of a page, with its size in bytes. */
export type Included = AddedMembers & { bytes: number }

export type Relationship = Attribute & { target_stack_id: number }

type IncludedRow = {
  links: [place: number, attribute_id: number, target_id: string][]
  rows: string | null
  octets: number
  schema_version: number
}

/**
 * Reads the entities that the entities `ids` are linked to by some relationships, with one statement. `isById` shows
 * the relationships of these entities by internal identifier. `caller` limits them to the fields of its role. An item
 * shows them by the key of the relationship, in the order of its links: an entity or null for cardinality one, an array
 * for many. A link to a deleted entity is left out. Throws a Fault of 400 if they are too many or too large.
 */
export async function readIncluded(
  context: Context,
  {
    relationships,
    isById,
    caller,
    shown,
  }: {
    relationships: readonly Relationship[]
    isById: boolean
    caller: Rights
    shown: Shown
  },
  ids: readonly string[],
  signal?: Signal,
): Promise<{ included: Included; definitions: Definitions }> {
  const { db, organization_id } = context
  const attributeIds = relationships.map(({ id }) => id)
  const values = [organization_id, ids, attributeIds, maxIncluded, maxIncludedBytes, isById]
  const [read] = await db.query<IncludedRow>(readIncludedSql, values, signal)
  const { links, rows, octets, schema_version } = read!
  if (links.length > maxIncluded) throwTooMany(`${maxIncluded.toLocaleString('en')} entities`)
  if (octets > maxIncludedBytes) throwTooMany('8 MiB')
  const definitions = await definitionsAt(context, schema_version, signal)
  const stackOf = stacksOf(relationships, links)
  const targets = printEach(rows ?? '', definitions, stackOf, isById ? wholeById : undefined)
  for (const id of targets.keys()) shown.add(stackOf(id), id)
  for (const [id, json] of caller.rights ? targets : []) {
    const access = accessOf(caller, stackOf(id))
    if (access) targets.set(id, Buffer.from(closeEntity(json.toString(), access)))
  }
  return { included: includedOf(relationships, ids, links, targets), definitions }
}

function throwTooMany(limit: string): never {
  return refuse('invalid_parameter', 'The page includes too much. Ask for a smaller page.', {
    details: [
      {
        path: '/include',
        message: `includes more than ${limit}: lower cursor_configuration.size, or page through the links with …/related`,
      },
    ],
  })
}

/** The stack of each target, by its id. */
function stacksOf(relationships: readonly Relationship[], links: IncludedRow['links']): (id: string) => number {
  const stacks = new Map(relationships.map(({ id, target_stack_id }) => [id, target_stack_id]))
  const byTarget = new Map(links.map(([, attribute_id, target_id]) => [target_id, stacks.get(attribute_id)!]))
  return id => byTarget.get(id)!
}

const [openList, closeList, comma] = [Buffer.from('['), Buffer.from(']'), Buffer.from(',')]
const [noTarget, end] = [Buffer.from('null'), Buffer.from('}}')]

/** Builds the JSON of each item in pieces, which are copied only when the item is printed. */
function includedOf(
  relationships: readonly Relationship[],
  ids: readonly string[],
  links: IncludedRow['links'],
  targets: ReadonlyMap<string, Buffer>,
): Included {
  const keys = relationships.map(({ key }, index) =>
    Buffer.from(`${index === 0 ? ',"included":{' : ','}${JSON.stringify(key)}:`),
  )
  const linksOf = Map.groupBy(links, ([place]) => place)
  const itemOf = (place: number): Buffer[] => {
    const targetsOf = Map.groupBy(linksOf.get(place) ?? [], ([, attribute_id]) => attribute_id)
    const members = relationships.flatMap(({ id, cardinality }, index) => {
      const found = (targetsOf.get(id) ?? []).flatMap(([, , target_id]) => targets.get(target_id) ?? [])
      if (cardinality === 'one') return [keys[index]!, found[0] ?? noTarget]
      return [
        keys[index]!,
        openList,
        ...found.flatMap((target, at) => (at === 0 ? target : [comma, target])),
        closeList,
      ]
    })
    return [...members, end]
  }
  let bytes = 0
  const items = new Map<string, readonly Buffer[]>()
  for (const [index, id] of ids.entries()) {
    const item = itemOf(index + 1)
    for (const piece of item) bytes += piece.length
    if (bytes > maxIncludedBytes) throwTooMany('8 MiB')
    items.set(id, item)
  }
  return { bytes, of: id => items.get(id) ?? itemOf(0) }
}
