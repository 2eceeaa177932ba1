import type { Reading } from '../db/context.ts'
import { peopleStackId } from '../organizations/definitions.ts'
import type { Signal } from '../process/signal.ts'
import { recordIdOf } from '../values/formats.ts'
import type { ChangesQuery } from './schema.ts'
import { readLinkNamesSql } from './sql.ts'

/**
 * The links that a change has replaced, in the log: the ids of the targets by attribute id. A side without targets is
 * absent. `hidden` are the targets of `after` that were deleted at that time, so that no read showed them.
 */
export type LoggedLinks = Record<string, { before?: string[]; after?: string[]; hidden?: string[] }>

/**
 * The current name of a target: its external identifier, or an object. The `id` of a merged person is the survivor's.
 */
type Target = string | { id: string; external_id: string | null; is_erased: boolean }

/** Without `targets`, they are shown by their ids. */
type Relationship = {
  key: string
  is_many: boolean
  target_stack_id: number | null
  targets: Record<string, Target> | null
}

/** The relationships of the links of a page of changes by attribute id, with their targets by uuid. */
export type LinkNames = ReadonlyMap<string, Relationship>

/** The form of the targets of links: their internal identifiers, or by default their current names. */
export type LinksForm = ChangesQuery['links']

/** Reads the current names of the targets, unless their ids are shown. Sends no statement if there are no links. */
export async function readLinkNames(
  { db: reader, organization_id }: Reading,
  links: readonly LoggedLinks[],
  { form, signal }: { form?: LinksForm; signal?: Signal | undefined } = {},
): Promise<LinkNames> {
  const asked = new Map<string, Set<string>>()
  for (const [attribute_id, { before = [], after = [] }] of links.flatMap(Object.entries<LoggedLinks[string]>)) {
    const targets = asked.get(attribute_id) ?? new Set()
    asked.set(attribute_id, targets)
    if (form !== 'id') for (const id of [...before, ...after]) targets.add(id)
  }
  if (asked.size === 0) return new Map()
  const attribute_ids: number[] = []
  const target_ids: (string | null)[] = []
  // A relationship whose links were all hidden has no target on either side, but its key is needed.
  for (const [attribute_id, targets] of asked)
    for (const id of targets.size > 0 ? targets : [null]) {
      attribute_ids.push(Number(attribute_id))
      target_ids.push(id)
    }
  const values = [organization_id, attribute_ids, target_ids]
  const rows = await reader.query<NamedRow>(readLinkNamesSql, values, signal)
  const targetsOf = ({ targets }: NamedRow) => (form === 'id' ? null : JSON.parse(targets ?? '{}'))
  return new Map(
    rows.map(row => {
      const { id, key, is_many, target_stack_id } = row
      return [`${id}`, { key, is_many, target_stack_id, targets: targetsOf(row) }]
    }),
  )
}

type NamedRow = Omit<Relationship, 'targets'> & { id: number; targets: string | null }

const identifierOf = (id: string, { target_stack_id }: Relationship) =>
  target_stack_id === peopleStackId ? id : recordIdOf(id)

/** The values of the relationships by key, as JSON. */
export function printTargets(links: LoggedLinks, side: 'before' | 'after', names: LinkNames): Map<string, string> {
  const values = new Map<string, string>()
  for (const attribute_id in links) {
    const relationship = names.get(attribute_id)
    const printed = relationship ? targetsOf(links[attribute_id]!, side, relationship) : []
    if (printed.length > 0)
      values.set(relationship!.key, relationship!.is_many ? `[${printed.join(', ')}]` : printed[0]!)
  }
  return values
}

/**
 * The targets of a relationship on one side. By id, all targets are listed as they were written, even if no read showed
 * them. By name, only the shown ones are listed, and targets that a merge has made one are named once.
 */
function targetsOf(link: LoggedLinks[string], side: 'before' | 'after', relationship: Relationship): string[] {
  const { [side]: logged = [], hidden } = link
  const { targets } = relationship
  if (targets === null) return logged.map(id => referenceTo(id, relationship))
  const ids = side === 'after' && hidden ? logged.filter(id => !hidden.includes(id)) : logged
  const printed = new Map<string, string>()
  for (const id of ids) {
    const target = targets[id]!
    printed.set(typeof target === 'string' ? id : target.id, nameOf(target, relationship))
  }
  return [...printed.values()]
}

function nameOf(target: Target, relationship: Relationship): string {
  if (typeof target === 'string') return JSON.stringify(target)
  const { id, external_id, is_erased } = target
  if (external_id !== null) return JSON.stringify(external_id)
  return referenceTo(id, relationship, is_erased)
}

function referenceTo(id: string, relationship: Relationship, is_erased = false): string {
  const name = relationship.target_stack_id === peopleStackId ? 'id' : 'record_id'
  return `{"${name}":"${identifierOf(id, relationship)}"${is_erased ? ',"erased":true' : ''}}`
}

/**
 * The targets before and after by key, as JSON: {key: {"before": [ids], "after": [ids]}}. If several relationships had
 * a key in turn, each side has those of the last one.
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

export function printMembers(values: Map<string, string>): string {
  let printed = ''
  for (const [key, json] of values) printed += `${printed && ', '}${JSON.stringify(key)}: ${json}`
  return printed
}
