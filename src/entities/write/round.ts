import { answerOf } from '../../idempotency/kept-responses.ts'
import type { Author } from '../../organizations/change-organization.ts'
import type { Definitions } from '../../organizations/definitions.ts'
import { yieldIfDue } from '../../process/event-loop.ts'
import type { EntityRow, Links } from '../entity-row.ts'
import { newEntityId } from '../identifiers.ts'
import type { Changed, RoundDecision } from './changed.ts'
import type { PlannedTarget } from './decide/attributes.ts'
import { buildPlaceholder, type Change, type DecisionContext, decide } from './decide/decide.ts'
import { erasableValues, erasedRefusal } from './decide/erasable-values.ts'
import { type Loaded, rowOf } from './load/loaded.ts'
import { type Item, nameKey, type Reference, referenceKey, requiredLinkAttributes } from './plan.ts'

/**
 * A change and the row before it. `item` is the write that it follows from: for a placeholder, the write that links to
 * it. The changes of a merge and an erasure have none.
 */
export type Accepted = {
  item?: Item
  author: Author
  stack_id: number
  change: Change
  row: EntityRow | undefined
  isPlaceholder?: boolean
}

/** The decisions and changes of a round, for the stages that store and represent it. */
export type DecidedRound = {
  definitions: Definitions
  at: string
  /** The decisions in order. The round ends before the first item without one. */
  decisions: ReadonlyMap<Item, RoundDecision>
  /** The rows that the items address, before their decisions. */
  rows: ReadonlyMap<Item, EntityRow>
  /** The changes in order. Each entity has one at most. */
  accepted: readonly Accepted[]
  /** The ids of entities that were created by name, by {@link nameKey}. */
  placeholders: ReadonlyMap<string, string>
}

type Given = Pick<DecisionContext, 'definitions' | 'limits' | 'at'>

/**
 * Decides items in order, up to one that depends on a change since round `since`, in which the items were loaded. Many
 * items take several turns of the event loop.
 */
export async function decideRound(
  loaded: Loaded,
  since: number,
  changed: Changed,
  { definitions, limits, at }: Given,
): Promise<DecidedRound> {
  const { otherwiseNamed, lastVersionOf, knownAnswers, holders, erased } = loaded
  const resolve = (reference: Reference) => {
    const key = referenceKey(reference)
    return changed.created.get(key) ?? loaded.ids.get(key)
  }
  const newId = ({ stack_id }: Item['write']) => newEntityId(stack_id)
  const shared = { definitions, limits, at, otherwiseNamed, lastVersionOf, knownAnswers, resolve, newId, holders }
  const decisions = new Map<Item, RoundDecision>()
  const rows = new Map<Item, EntityRow>()
  const accepted: Accepted[] = []
  for (const item of loaded.items) {
    if (changed.concerns(item, loaded, since)) break
    const turn = decisions.size > 0 ? yieldIfDue() : undefined
    if (turn) await turn
    const { write, plan } = item
    const row = rowOf(loaded, item)
    const decideItem = (): RoundDecision => {
      const answer = write.keyed && answerOf(write.keyed, loaded.keys)
      if (answer) return answer
      const refusal = loaded.refused.get(item)
      if (refusal) return { refusal }
      const current = row ? { row, links: linksOf(loaded, row.id, item, definitions) } : null
      const decision = decide(current, write, plan, { ...shared, deleted: loaded.deleted.get(item) })
      if (!erased || write.erased === 'recreate' || !('change' in decision)) return decision
      const ofErased = erasedRefusal(erasableValues(decision.change, write, row, definitions.default_country), erased)
      return ofErased ? { refusal: ofErased } : decision
    }
    const decision = decideItem()
    if (row) rows.set(item, row)
    decisions.set(item, decision)
    if ('change' in decision) {
      const { change } = decision
      for (const { name, id } of changed.create(change.missing.map(({ name }) => name)))
        accepted.push({
          item,
          author: write,
          stack_id: name.stack_id,
          change: buildPlaceholder(id, name.external_id, lastVersionOf(name) + 1),
          row: undefined,
          isPlaceholder: true,
        })
      accepted.push({ item, author: write, stack_id: write.stack_id, change, row })
    }
    changed.add(item, decision, row, erased)
  }
  return { definitions, at, decisions, rows, accepted, placeholders: changed.created }
}

/** The links under the attributes that the item writes. Other items may have loaded more. */
function linksOf({ links }: Loaded, id: string, { write, plan }: Item, definitions: Definitions): Links {
  const all = links.get(id)
  if (!all || all.size === 0) return noLinks
  const required = new Set(requiredLinkAttributes(write, plan, definitions))
  return new Map([...all].filter(([attribute_id, targets]) => required.has(attribute_id) && targets.length > 0))
}

const noLinks: Links = new Map()

/** The id of the target of a link. A placeholder of this round has an id before it is stored. */
export const idOf = (target: PlannedTarget, placeholders: DecidedRound['placeholders']): string =>
  'id' in target ? target.id : placeholders.get(nameKey(target.name))!
