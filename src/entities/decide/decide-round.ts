import type { Refusal } from '../../errors.ts'
import { yieldIfDue } from '../../event-loop.ts'
import { answerOf } from '../../idempotency/kept-responses.ts'
import type { Definitions } from '../../organizations/definitions.ts'
import type { EntityRow } from '../entity-row.ts'
import { newEntityId } from '../identifiers.ts'
import type { Item } from '../write/plan.ts'
import { type Accepted, type Loaded, mergeValues, type RoundDecision, WriteState } from '../write/state.ts'
import { type Change, type DecisionContext, decide, idOfDecision } from './decide.ts'
import { erasableValues, erasedRefusal } from './erasable-values.ts'

/** What the writes of a round change, for the stages that store and represent it. */
export type DecidedRound = {
  definitions: Definitions
  at: string
  /** The decisions in order. The round ends before the first item without one. */
  decisions: ReadonlyMap<Item, RoundDecision>
  /** The rows that the items address, before their decisions. */
  rows: ReadonlyMap<Item, EntityRow>
  /** The changes in order, as the log tells them. */
  accepted: readonly Accepted[]
  /** The same changes, those of an entity as one, as they are stored. */
  net: readonly Accepted[]
  placeholders: WriteState['placeholders']
}

/** The values whose tombstones were read, and those of them that belonged to an erased person. */
export type ErasedValues = { asked: ReadonlySet<string>; found: ReadonlySet<string> }

type Given = Pick<DecisionContext, 'definitions' | 'limits' | 'at'> & {
  erased?: ErasedValues | undefined
  /** The items that recognize nobody for certain. */
  refused: ReadonlyMap<Item, Refusal>
}

/**
 * Decides items one after the other. Each sees what those before it did. The round ends before a change that gives a value whose tombstone was
 * not asked for: an earlier write may have hidden it until it was refused.
 */
export async function decideRound(
  items: readonly Item[],
  loaded: Loaded,
  { definitions, limits, at, erased, refused }: Given,
): Promise<DecidedRound> {
  const state = new WriteState(loaded, items, definitions, erased?.found)
  const { otherwiseNamed, lastVersionOf, knownAnswers, deleted } = loaded
  const decisions = new Map<Item, RoundDecision>()
  const rows = new Map<Item, EntityRow>()
  for (const item of items) {
    if (state.needsStored(item)) break
    if (decisions.size > 0) await yieldIfDue()
    const refusal = refused.get(item)
    const { keyed } = item.write
    const answer = keyed && answerOf(keyed, loaded.keys)
    const context: DecisionContext = {
      definitions,
      limits,
      at,
      otherwiseNamed,
      lastVersionOf,
      knownAnswers,
      resolve: state.resolve,
      newId: write => newEntityId(write.stack_id),
      deleted: deleted.get(item),
      holders: state.holders,
    }
    const current = state.currentOf(item)
    let decision: RoundDecision = answer ?? (refusal ? { refusal } : decide(current, item.write, item.plan, context))
    if (erased && 'change' in decision) {
      const given = erasableValues(decision.change, item.write, current?.row, definitions.default_country)
      if (!given.every(({ value }) => erased.asked.has(value))) break
      const isErased = item.write.erased !== 'recreate' && erasedRefusal(given, state.erased!)
      if (isErased) decision = { refusal: isErased }
    }
    if (current) rows.set(item, current.row)
    decisions.set(item, decision)
    state.add(item, decision)
  }
  const { accepted, placeholders } = state
  return { definitions, at, decisions, rows, accepted, net: netOf(accepted), placeholders }
}

/** Joins the changes of each entity. */
export function netOf(accepted: readonly Accepted[]): readonly Accepted[] {
  const net = new Map<string, Accepted>()
  for (const entry of accepted) {
    const first = net.get(entry.change.id)
    net.set(entry.change.id, first ? { ...first, change: join(first.change, entry.change) } : entry)
  }
  return net.size === accepted.length ? accepted : [...net.values()]
}

/** The row of an entity after an item of a round, and what later items change again, as one change. */
export type ChangedLater = { row: EntityRow; change: Change }

/** Returns the items after which later ones change their entity again. Most rounds have none. */
export function changedLater({ decisions, accepted, net }: DecidedRound): ReadonlyMap<Item, ChangedLater> {
  const found = new Map<Item, ChangedLater>()
  if (accepted.length === net.length) return found
  const later = new Map<string, ChangedLater>()
  const earlier = [...accepted]
  for (const [item, decision] of [...decisions].reverse()) {
    if ('refusal' in decision || 'replayed' in decision) continue
    const changes = later.get(idOfDecision(decision))
    if (changes) found.set(item, changes)
    for (; earlier.at(-1)?.item === item; earlier.pop()) {
      const { row, change } = earlier.at(-1)!
      const next = later.get(change.id)
      if (row) later.set(change.id, { row, change: next ? join(change, next.change) : change })
    }
  }
  return found
}

/** A creation or an update, and an update after it. What becomes of a deleted entity is decided in another round. */
function join(first: Change, next: Change): Change {
  const relinked = new Map([...first.relinked, ...next.relinked].map(links => [links.attribute.id, links]))
  return {
    ...next,
    operation: first.operation,
    columns: { ...first.columns, ...next.columns },
    set: mergeValues(first.set, next),
    removed: [...new Set([...first.removed, ...next.removed])].filter(key => !Object.hasOwn(next.set, key)),
    relinked: [...relinked.values()],
    ...(first.created_at !== undefined && { created_at: first.created_at }),
  }
}
