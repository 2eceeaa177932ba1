import { profileFlags } from '../values/profile-fields.ts'
import type { LinkFill, Undo } from './merge.ts'

/** A merge that stands, with what undoes it. */
export type UndoableMerge = { id: number; merged_id: string; undo: Undo }

/** The attributes of which a merge changed a plain value. */
export const plainKeys = ({ filled }: Pick<Undo, 'filled'>) =>
  new Set([...Object.keys(filled.attributes), ...Object.keys(filled.replaced ?? {})])

/** A member of an object whose keys a client chose. */
export const ownMember = (values: Readonly<Record<string, unknown>> | undefined, key: string): unknown =>
  values && Object.hasOwn(values, key) ? values[key] : undefined

/** Whether the merged person refuses what a field says. */
export const isRefusedBy = ({ other }: Undo, name: string) => (other.columns as Record<string, unknown>)[name] === false

/** Values of the survivor that some merges decided: what the survivor has of them since owes nothing to an earlier merge. */
export type Decided = { fields: ReadonlySet<string>; keys: ReadonlySet<string>; attribute_ids: ReadonlySet<number> }

export function decidedBy(merges: readonly { undo: Undo }[]): Decided {
  const filled = merges.map(({ undo }) => undo.filled)
  const chosenLinks = filled.flatMap(({ links }) => links.filter(({ chosen }) => chosen))
  return {
    fields: new Set(filled.flatMap(({ columns }) => Object.keys(columns))),
    keys: new Set(merges.flatMap(({ undo }) => [...plainKeys(undo)])),
    attribute_ids: new Set(chosenLinks.map(({ attribute_id }) => attribute_id)),
  }
}

/** Whether later merges decided a field. A flag stays with the refusals of those who are still merged. */
export const isDecided = ({ fields }: Decided, name: string) =>
  fields.has(name) && !(profileFlags as string[]).includes(name)

/**
 * What the links of merged people named, without those that the survivor was not to get. The merges are in their order: of those before
 * the last choice of the other's links nothing is left.
 */
export function broughtBy(merges: readonly { undo: Undo }[], attribute_id: number): string[] {
  const isChoice = ({ undo }: { undo: Undo }) =>
    undo.filled.links.some(link => link.attribute_id === attribute_id && link.chosen)
  return merges
    .slice(Math.max(0, merges.findLastIndex(isChoice)))
    .flatMap(({ undo: { other, filled } }) =>
      filled.left?.includes(attribute_id) ? [] : (other.links[attribute_id] ?? []),
    )
}

/** A list of links as if a merge had not filled it, but for those in `kept`. The links from before the merge have the order of that time. */
export function withoutFilled(ids: readonly string[], { before, after }: LinkFill, kept: readonly string[]): string[] {
  const [had, has] = [new Set(before), new Set(after)]
  const added = has.difference(had).difference(new Set(kept))
  const rest = ids.filter(id => !added.has(id))
  const returned = before.filter(id => !has.has(id) && !rest.includes(id))
  const positionOf = (id: string) => (had.has(id) ? before.indexOf(id) : before.length)
  return [...rest, ...returned].toSorted((one, other) => positionOf(one) - positionOf(other))
}
