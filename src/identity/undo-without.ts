import { jsonEqual } from '../entities/write/decide/json-equal.ts'
import type { Definitions } from '../organizations/definitions.ts'
import { channels, channelTable } from '../values/channels.ts'
import type { LinkFill, Undo } from './merge.ts'
import {
  broughtBy,
  type Decided,
  decidedBy,
  isDecided,
  isRefusedBy,
  ownMember,
  plainKeys,
  type UndoableMerge,
  withoutFilled,
} from './undo.ts'
import type { UnmergeFacts } from './unmerge.ts'

type Merges = {
  later: Undo
  earlier: Undo
  written: UnmergeFacts['written']
  /** The merges before the later one that stand, and what those between the two decided. */
  before: readonly UndoableMerge[]
  since: Decided
}

/**
 * What undoes a later merge once an earlier one into the same person is undone: the state before the later merge has nothing of the earlier
 * one any more. `written` is what was written since the earlier one, `remaining` are the merges that stand.
 */
export function undoWithout(
  later: Pick<UndoableMerge, 'id' | 'undo'>,
  earlier: Pick<UndoableMerge, 'id' | 'undo'>,
  { written, remaining }: Pick<UnmergeFacts, 'written' | 'remaining'>,
  definitions: Definitions,
): Undo {
  const before = remaining.filter(({ id }) => id < later.id)
  const since = decidedBy(before.filter(({ id }) => id > earlier.id))
  const merges: Merges = { later: later.undo, earlier: earlier.undo, written, before, since }
  const filled = {
    ...later.undo.filled,
    columns: columnsWithout(merges),
    links: linksWithout(merges, definitions),
    replaced: replacedWithout(merges),
  }
  return { ...later.undo, flags: flagsWithout(merges), filled }
}

function columnsWithout({ later, earlier, written, since }: Merges): Undo['filled']['columns'] {
  const columns = { ...later.filled.columns }
  for (const [name, { before, after }] of Object.entries(earlier.filled.columns)) {
    if (written.fields.has(name) || isDecided(since, name)) continue
    const change = columns[name]
    if (change && change.before === after) columns[name] = { ...change, before }
    // The refusal of both stays as that of the later one.
    if (!change && after === false && isRefusedBy(later, name)) columns[name] = { before, after }
  }
  return columns
}

function flagsWithout({ later, earlier, written }: Merges): Undo['flags'] {
  const flags = channels.map(channel => channelTable[channel].flag)
  return Object.fromEntries(
    flags.map(flag => [flag, (written.fields.has(flag) ? later : earlier).flags[flag]]),
  ) as Undo['flags']
}

function linksWithout({ later, earlier, written, before, since }: Merges, { attributeById }: Definitions): LinkFill[] {
  const broughtByLater = (attribute_id: number) => broughtBy([{ undo: later }], attribute_id)
  const links = later.filled.links.map(change => {
    const { attribute_id, chosen } = change
    const filled = earlier.filled.links.find(link => link.attribute_id === attribute_id)
    if (!filled || since.attribute_ids.has(attribute_id)) return change
    const kept = broughtBy(before, attribute_id)
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
    const others = new Set([...had, ...broughtBy(before, attribute_id)])
    // A link that both brought stays as one of the later.
    const stays = new Set(has).difference(others).intersection(new Set(broughtByLater(attribute_id)))
    if (stays.size > 0) links.push({ attribute_id, before: [], after: [...stays] })
  }
  return links
}

/** The plain values that the later merge replaced, as if the earlier one had not given them. */
function replacedWithout({ later, earlier, written, since }: Merges): Record<string, unknown> {
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
