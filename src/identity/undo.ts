import { jsonEqual } from '../entities/write/decide/json-equal.ts'
import type { Definitions } from '../organizations/definitions.ts'
import { channels, channelTable } from '../values/channels.ts'
import { profileFlags } from '../values/profile-fields.ts'
import type { LinkFill, Undo } from './merge.ts'

/** A merge that is not undone, with its undo record. */
export type UndoableMerge = { id: number; merged_id: string; undo: Undo }

/** The fields and attribute keys that were written since a merge, except by merges. */
export type Written = { fields: ReadonlySet<string>; keys: ReadonlySet<string> }

/** The keys of the attributes whose plain value a merge changed. */
export const plainKeys = ({ filled }: Pick<Undo, 'filled'>) =>
  new Set([...Object.keys(filled.attributes), ...Object.keys(filled.replaced ?? {})])

/** A member of an object whose keys a client chose. */
export const ownMember = (values: Readonly<Record<string, unknown>> | undefined, key: string): unknown =>
  values && Object.hasOwn(values, key) ? values[key] : undefined

/** Whether the merged person had refused the flag of this name. */
export const isRefusedBy = ({ other }: Undo, name: string) => (other.columns as Record<string, unknown>)[name] === false

/** The values of the survivor that some merges decided, so that they no longer depend on an earlier merge. */
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

/**
 * Whether later merges decided a field. They never decide a flag, which depends on the refusals of all merged people.
 */
export const isDecided = ({ fields }: Decided, name: string) =>
  fields.has(name) && !(profileFlags as string[]).includes(name)

/**
 * The written targets of the links that merged people brought, without links that a choice for the survivor left out.
 * `merges` are in order: a merge that chose the other's links leaves none of the merges before it.
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

/**
 * A list of links without those that a merge added, except for `kept`. The links from before the merge have the order
 * of that time.
 */
export function withoutFilled(ids: readonly string[], { before, after }: LinkFill, kept: readonly string[]): string[] {
  const [had, has] = [new Set(before), new Set(after)]
  const added = has.difference(had).difference(new Set(kept))
  const rest = ids.filter(id => !added.has(id))
  const returned = before.filter(id => !has.has(id) && !rest.includes(id))
  const positionOf = (id: string) => (had.has(id) ? before.indexOf(id) : before.length)
  return [...rest, ...returned].toSorted((one, other) => positionOf(one) - positionOf(other))
}

/**
 * Two merges into the same person, the merges between them that are not undone, and the values that those decided. The
 * values of merges before the two are in the state before them, unless a write ended them.
 */
type TwoMerges = { later: Undo; earlier: Undo; written: Written; between: readonly UndoableMerge[]; since: Decided }

/**
 * The record of a later merge after an earlier merge into the same person is undone: its state before the merge no
 * longer has values of the earlier one. `written` are the values written since the earlier merge, `remaining` the
 * merges that are not undone.
 */
export function undoWithout(
  later: Pick<UndoableMerge, 'id' | 'undo'>,
  earlier: Pick<UndoableMerge, 'id' | 'undo'>,
  { written, remaining }: { written: Written; remaining: readonly UndoableMerge[] },
  definitions: Definitions,
): Undo {
  const between = remaining.filter(({ id }) => id > earlier.id && id < later.id)
  const merges = { later: later.undo, earlier: earlier.undo, written, between, since: decidedBy(between) }
  const columns = columnsWithout(merges)
  const filled = { columns, links: linksWithout(merges, definitions), replaced: replacedWithout(merges) }
  return { ...later.undo, flags: flagsWithout(merges), filled: { ...later.undo.filled, ...filled } }
}

function columnsWithout({ later, earlier, written, between, since }: TwoMerges): Undo['filled']['columns'] {
  const columns = { ...later.filled.columns }
  for (const [name, { before, after }] of Object.entries(earlier.filled.columns)) {
    if (written.fields.has(name) || isDecided(since, name)) continue
    const change = columns[name]
    if (change && change.before === after) columns[name] = { ...change, before }
    // If both people refused, the refusal now belongs to the later merge, or to the first of several later merges.
    const isFirst = !between.some(({ undo }) => isRefusedBy(undo, name))
    if (!change && after === false && isRefusedBy(later, name) && isFirst) columns[name] = { before, after }
  }
  return columns
}

function flagsWithout({ later, earlier, written }: TwoMerges): Undo['flags'] {
  const flags = channels.map(channel => channelTable[channel].flag)
  return Object.fromEntries(
    flags.map(flag => [flag, (written.fields.has(flag) ? later : earlier).flags[flag]]),
  ) as Undo['flags']
}

function linksWithout(
  { later, earlier, written, between, since }: TwoMerges,
  { attributeById }: Definitions,
): LinkFill[] {
  const broughtByLater = (attribute_id: number) => broughtBy([{ undo: later }], attribute_id)
  const links = later.filled.links.map(change => {
    const { attribute_id, chosen } = change
    const filled = earlier.filled.links.find(link => link.attribute_id === attribute_id)
    const isWritten = written.keys.has(attributeById.get(attribute_id)?.key ?? '')
    if (!filled || isWritten || since.attribute_ids.has(attribute_id)) return change
    const kept = broughtBy(between, attribute_id)
    const keptAfter = [...kept, ...broughtByLater(attribute_id)]
    return {
      ...change,
      before: withoutFilled(change.before, filled, kept),
      after: chosen ? change.after : withoutFilled(change.after, filled, keptAfter),
    }
  })
  const changedByLater = new Set(links.map(({ attribute_id }) => attribute_id))
  for (const { attribute_id, before: had, after: has } of earlier.filled.links) {
    const key = attributeById.get(attribute_id)?.key
    if (changedByLater.has(attribute_id) || key === undefined || written.keys.has(key)) continue
    const others = new Set([...had, ...broughtBy(between, attribute_id)])
    // A link that both people brought stays as a link of the later merge.
    const stays = new Set(has).difference(others).intersection(new Set(broughtByLater(attribute_id)))
    if (stays.size > 0) links.push({ attribute_id, before: [], after: [...stays] })
  }
  return links
}

/** The plain values that the later merge replaced, as if the earlier merge had not given them. */
function replacedWithout({ later, earlier, written, since }: TwoMerges): Record<string, unknown> {
  const replaced = new Map(Object.entries(later.filled.replaced ?? {}))
  for (const key of plainKeys(later).intersection(plainKeys(earlier))) {
    if (written.keys.has(key) || since.keys.has(key)) continue
    if (!jsonEqual(replaced.get(key), ownMember(earlier.filled.attributes, key))) continue
    const before = ownMember(earlier.filled.replaced, key)
    if (before === undefined) replaced.delete(key)
    else replaced.set(key, before)
  }
  return Object.fromEntries(replaced)
}
