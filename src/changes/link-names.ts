import type { Database } from '../db/db.ts'
import type { Signal } from '../signal.ts'
import { readLinkNamesSql } from './sql.ts'

/**
 * The links that a change has replaced, in the log: the ids of the targets by attribute id. A side without targets is absent. `hidden` are
 * those of `after` that were deleted then, so that no read showed them.
 */
export type LoggedLinks = Record<string, { before?: string[]; after?: string[]; hidden?: string[] }>

/** What a target is called now. A text is its external identifier; `id` is otherwise that of the person whom a merged one leads to. */
type Target = string | { id: string; external_id: string | null; is_erased: boolean }

type Relationship = { key: string; is_many: boolean; target_stack_id: number | null; targets: Record<string, Target> }

/** The relationships of the links of a page of changes by attribute id, with their targets by uuid. */
export type LinkNames = ReadonlyMap<string, Relationship>

/** Reads what the targets of the links are called now. Sends no statement if there are none. */
export async function readLinkNames(
  reader: Pick<Database, 'query'>,
  organization_id: number,
  links: readonly LoggedLinks[],
  signal?: Signal,
): Promise<LinkNames> {
  const asked = new Map<string, Set<string>>()
  for (const [attribute_id, { before = [], after = [] }] of links.flatMap(Object.entries<LoggedLinks[string]>)) {
    const targets = asked.get(attribute_id) ?? new Set()
    asked.set(attribute_id, targets)
    for (const id of [...before, ...after]) targets.add(id)
  }
  if (asked.size === 0) return new Map()
  const attribute_ids: number[] = []
  const target_ids: (string | null)[] = []
  // A relationship whose links were all hidden has no target on either side, but a key.
  for (const [attribute_id, targets] of asked)
    for (const id of targets.size > 0 ? targets : [null]) {
      attribute_ids.push(Number(attribute_id))
      target_ids.push(id)
    }
  const values = [organization_id, attribute_ids, target_ids]
  const rows = await reader.query<NamedRow>(readLinkNamesSql, values, signal)
  return new Map(rows.map(({ id, targets, ...named }) => [`${id}`, { ...named, targets: JSON.parse(targets ?? '{}') }]))
}

type NamedRow = Omit<Relationship, 'targets'> & { id: number; targets: string | null }

/** The stored uuid of a record begins with the 24 digits of its `record_id`. */
export const recordIdOf = (uuid: string) => uuid.replaceAll('-', '').slice(0, 24)

const peopleStackId = 0

const identifierOf = (id: string, { target_stack_id }: Relationship) =>
  target_stack_id === peopleStackId ? id : recordIdOf(id)

/** The values of the relationships by key, as JSON members. Targets that are one now are named once. */
export function printNames(links: LoggedLinks, side: 'before' | 'after', names: LinkNames): string {
  const values = new Map<string, string>()
  for (const attribute_id in links) {
    const { [side]: logged = [], hidden } = links[attribute_id]!
    const ids = side === 'after' && hidden ? logged.filter(id => !hidden.includes(id)) : logged
    const relationship = names.get(attribute_id)
    if (!relationship || ids.length === 0) continue
    const { key, is_many, targets } = relationship
    const printed = new Map<string, string>()
    for (const id of ids) {
      const target = targets[id]!
      printed.set(typeof target === 'string' ? id : target.id, nameOf(target, relationship))
    }
    const [first] = printed.values()
    values.set(key, is_many ? `[${[...printed.values()].join(', ')}]` : first!)
  }
  return printMembers(values)
}

function nameOf(target: Target, relationship: Relationship): string {
  if (typeof target === 'string') return JSON.stringify(target)
  const { id, external_id, is_erased } = target
  if (external_id !== null) return JSON.stringify(external_id)
  const name = relationship.target_stack_id === peopleStackId ? 'id' : 'record_id'
  return JSON.stringify({ [name]: identifierOf(id, relationship), ...(is_erased && { erased: true }) })
}

/**
 * The targets before and after by key, as JSON: {key: {"before": [ids], "after": [ids]}}. If several relationships had a key in turn, each
 * side has those of the last one.
 */
export function printIdentifiers(links: LoggedLinks, names: LinkNames): string {
  const byKey = new Map<string, Map<string, string>>()
  for (const attribute_id in links) {
    const relationship = names.get(attribute_id)
    if (!relationship) continue
    const sides = byKey.get(relationship.key) ?? new Map()
    for (const side of ['before', 'after'] as const) {
      const ids = links[attribute_id]![side]?.map(id => `"${identifierOf(id, relationship)}"`)
      if (ids) sides.set(side, `[${ids.join(', ')}]`)
    }
    byKey.set(relationship.key, sides)
  }
  const printed = new Map<string, string>()
  for (const [key, sides] of byKey) printed.set(key, `{${printMembers(sides)}}`)
  return `{${printMembers(printed)}}`
}

function printMembers(values: Map<string, string>): string {
  let printed = ''
  for (const [key, json] of values) printed += `${printed && ', '}${JSON.stringify(key)}: ${json}`
  return printed
}
