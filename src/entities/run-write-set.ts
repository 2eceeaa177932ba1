import { flushed, type Transaction } from '../db/db.ts'
import type { Definitions } from '../organizations/definitions.ts'
import { readSchemaVersionSql } from '../organizations/definitions-sql.ts'
import { type Item, takeSet } from './conflicts.ts'
import type { Decision, DecisionLimits } from './decide.ts'
import { decideSet } from './decide-set.ts'
import { besideOctets, type SerializedEntity } from './entity-reader.ts'
import type { CurrentState, EntityRow, Links, LockedRow } from './entity-row.ts'
import { unboundedOctets } from './pagination.ts'
import { nameKey } from './plan-write.ts'
import {
  type Accepted,
  lockRows,
  placeholdersOf,
  readNamesLeft,
  readReferences,
  readRepresentations,
} from './read-stage.ts'
import { appendAnswers, applyChanges, makeEntities, replaceLinks } from './store-stage.ts'
import { indexTerms } from './term-index-stage.ts'
import { isCompleting, type Outcome } from './write-request.ts'

/** Outcomes by index; an item without one has turned out to conflict with another, and waits for the next set. */
export type SetOutcomes = Map<number, Outcome>

// The items are a set already, however large.
const unlimited = { items: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY }

/**
 * The write path of one set within one transaction: read, decide, make, link, index, answer, apply. A stage with nothing to do
 * issues no statement. With `commit`, COMMIT travels with the last of them.
 */
export async function runWriteSet(
  tx: Transaction,
  definitions: Definitions,
  items: Item[],
  limits: DecisionLimits,
  ending: 'commit' | 'continue',
): Promise<SetOutcomes> {
  const { organization_id } = definitions
  const at = new Date().toISOString()
  const locking = lockRows(tx, organization_id, items)
  const looking = readNamesLeft(tx, organization_id, items)
  await flushed([locking, looking])
  const [rows, leftAt] = [await locking, await looking]
  const { set } = takeSet(items, { rows, size: unlimited })
  const { bearers, links } = await readReferences(tx, definitions, set, rows)

  const decisions = decideSet(set, {
    definitions,
    at,
    limits,
    bearer: name => bearers.get(nameKey(name)),
    leftAt,
    standing: item => standingOf(rows.get(item), links),
  })
  const accepted: Accepted[] = []
  for (const [item, decision] of decisions) if ('change' in decision) accepted.push({ item, change: decision.change })

  const placeholders = placeholdersOf(accepted, leftAt)
  const stored = storeAll(tx, definitions, accepted, placeholders, rows, at)
  const rowOctets = items.some(({ write }) => write.represent === 'whole') ? unboundedOctets : besideOctets
  const shown = readRepresentations(tx, definitions, toRepresent(decisions), rowOctets)
  await flushed([...stored, shown, ...(ending === 'commit' ? [tx.commit()] : [])])
  const standings = await shown
  const settled: SetOutcomes = new Map()
  for (const [item, decision] of decisions)
    settled.set(item.index, outcomeOf(item, decision, rows.get(item), standings))
  return settled
}

/** Make, link, index, answer and apply travel in one flush with COMMIT; apply is the last, for it holds the head. */
function storeAll(
  tx: Transaction,
  definitions: Definitions,
  accepted: Accepted[],
  placeholders: ReturnType<typeof placeholdersOf>,
  rows: Map<Item, LockedRow>,
  at: string,
): Promise<unknown>[] {
  // Nothing to apply, so nothing compares the version: a refusal by old definitions must not be answered either.
  if (accepted.length === 0) return [compareVersion(tx, definitions)]
  return [
    ...makeEntities(tx, definitions.organization_id, accepted, placeholders.values(), at),
    ...replaceLinks(tx, definitions.organization_id, accepted, placeholders),
    ...indexTerms(tx, definitions, accepted, rows),
    ...appendAnswers(tx, definitions.organization_id, accepted, at),
    ...applyChanges(tx, definitions, accepted, placeholders, rows, at),
  ]
}

/** The definitions have changed since they were read: the set is decided again. */
export class DefinitionsMovedOn extends Error {}

async function compareVersion(tx: Transaction, { organization_id, version }: Definitions) {
  const [head] = await tx.query<{ schema_version: number }>(readSchemaVersionSql, [organization_id])
  if (head?.schema_version !== version) throw new DefinitionsMovedOn('the definitions have changed meanwhile')
}

function standingOf(row: EntityRow | undefined, links: Map<string, Links>): CurrentState | null {
  return row ? { row, links: links.get(row.id) ?? new Map() } : null
}

function toRepresent(decisions: Map<Item, Decision>): { stack_id: number; id: string }[] {
  const wanted: { stack_id: number; id: string }[] = []
  for (const [{ write }, decision] of decisions)
    if (write.represent && !('refusal' in decision))
      wanted.push({ stack_id: write.stack_id, id: 'change' in decision ? decision.change.id : decision.unchanged.id })
  return wanted
}

const results = { create: 'created', update: 'updated', delete: 'deleted' } as const

function outcomeOf(
  { write }: Item,
  decision: Decision,
  row: EntityRow | undefined,
  standings: Map<string, SerializedEntity>,
): Outcome {
  if ('refusal' in decision) return { refusal: decision.refusal }
  if ('unchanged' in decision) {
    const { id, external_id, version } = decision.unchanged
    return { done: withStanding({ result: 'unchanged', id, external_id, version }, standings) }
  }
  const { id, external_id, version, operation } = decision.change
  // What completes a placeholder is stored as an update and answered as the creation it is.
  const result = isCompleting(write, row) ? 'created' : results[operation]
  return { done: withStanding({ result, id, external_id, version }, standings) }
}

function withStanding<D extends { id: string }>(
  done: D,
  standings: Map<string, SerializedEntity>,
): D & { standing?: SerializedEntity } {
  const standing = standings.get(done.id)
  return standing ? { ...done, standing } : done
}
