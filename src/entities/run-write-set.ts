import { flushed, type Transaction } from '../db/db.ts'
import type { Definitions } from '../organizations/definitions.ts'
import { readSchemaVersionSql } from '../organizations/definitions-sql.ts'
import { type Item, takeSet } from './conflicts.ts'
import type { Decision, DecisionLimits } from './decide.ts'
import { decideSet } from './decide-set.ts'
import { maxBatchedRowBytes, type SerializedEntity } from './entity-reader.ts'
import type { CurrentState, EntityRow, Links, LockedRow } from './entity-row.ts'
import { unlimitedRowBytes } from './pagination.ts'
import { nameKey } from './plan-write.ts'
import {
  type Accepted,
  lockRows,
  placeholdersOf,
  readLastVersions,
  readReferences,
  readRepresentations,
} from './read-stage.ts'
import { readDeletedEntities } from './restore-stage.ts'
import { appendAnswers, applyChanges, insertEntities, replaceLinks } from './store-stage.ts'
import { indexTerms } from './term-index-stage.ts'
import { isCompleting, type Outcome } from './write-request.ts'

/** Outcomes by index. An item without one conflicts with another item of the set and is deferred to the next set. */
export type SetOutcomes = Map<number, Outcome>

// The items already form a set, so its size is not limited again.
const unlimited = { items: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY }

/**
 * Runs the stages of one set in one transaction: read, decide, make, link, index, answer, apply. A stage without work
 * issues no statement. With `commit`, COMMIT is pipelined with the last statement. Throws {@link DefinitionsChanged},
 * the `LostRace` of the read stage, and database errors.
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
  const readingVersions = readLastVersions(tx, organization_id, items)
  await flushed([locking, readingVersions])
  const [rows, lastVersionOf] = [await locking, await readingVersions]
  const { set } = takeSet(items, { rows, size: unlimited })
  const { idsByName, links } = await readReferences(tx, definitions, set, rows)
  const deleted = await readDeletedEntities(tx, definitions, set, rows)

  const decisions = decideSet(set, {
    definitions,
    at,
    limits,
    idByExternalId: name => idsByName.get(nameKey(name)),
    lastVersionOf,
    currentState: item => currentStateOf(rows.get(item), links),
    deletedEntity: item => deleted.get(item),
  })
  const accepted: Accepted[] = []
  for (const [item, decision] of decisions) if ('change' in decision) accepted.push({ item, change: decision.change })

  const placeholders = placeholdersOf(accepted, lastVersionOf)
  const stores = storeAll(tx, definitions, accepted, placeholders, rows, at)
  const maxRowBytes = items.some(({ write }) => write.represent === 'whole') ? unlimitedRowBytes : maxBatchedRowBytes
  const reading = readRepresentations(tx, definitions, toRepresent(decisions), maxRowBytes)
  await flushed([...stores, reading, ...(ending === 'commit' ? [tx.commit()] : [])])
  const representations = await reading
  const outcomes: SetOutcomes = new Map()
  for (const [item, decision] of decisions)
    outcomes.set(item.index, outcomeOf(item, decision, rows.get(item), representations))
  return outcomes
}

/** Pipelines make, link, index, answer and apply in one flush. Apply is last, because it holds the lock of the head. */
function storeAll(
  tx: Transaction,
  definitions: Definitions,
  accepted: Accepted[],
  placeholders: ReturnType<typeof placeholdersOf>,
  rows: Map<Item, LockedRow>,
  at: string,
): Promise<unknown>[] {
  // Without changes, apply does not compare the version. A refusal must not rest on outdated definitions either.
  if (accepted.length === 0) return [checkSchemaVersion(tx, definitions)]
  return [
    ...insertEntities(tx, definitions.organization_id, accepted, placeholders.values(), at),
    ...replaceLinks(tx, definitions.organization_id, accepted, placeholders),
    ...indexTerms(tx, definitions, accepted, rows),
    ...appendAnswers(tx, definitions.organization_id, accepted, at),
    ...applyChanges(tx, definitions, accepted, placeholders, rows, at),
  ]
}

/** The definitions changed after they were read. The set is decided again. */
export class DefinitionsChanged extends Error {}

async function checkSchemaVersion(tx: Transaction, { organization_id, version }: Definitions) {
  const [head] = await tx.query<{ schema_version: number }>(readSchemaVersionSql, [organization_id])
  if (head?.schema_version !== version) throw new DefinitionsChanged('the definitions changed during the write')
}

function currentStateOf(row: EntityRow | undefined, links: Map<string, Links>): CurrentState | null {
  return row ? { row, links: links.get(row.id) ?? new Map() } : null
}

function toRepresent(decisions: Map<Item, Decision>): { stack_id: number; id: string }[] {
  const entities: { stack_id: number; id: string }[] = []
  for (const [{ write }, decision] of decisions)
    if (write.represent && !('refusal' in decision))
      entities.push({ stack_id: write.stack_id, id: 'change' in decision ? decision.change.id : decision.unchanged.id })
  return entities
}

const results = { create: 'created', update: 'updated', delete: 'deleted', restore: 'restored' } as const

function outcomeOf(
  { write }: Item,
  decision: Decision,
  row: EntityRow | undefined,
  representations: Map<string, SerializedEntity>,
): Outcome {
  if ('refusal' in decision) return { refusal: decision.refusal }
  if ('unchanged' in decision) {
    const { id, external_id, version } = decision.unchanged
    return { done: withRepresentation({ result: 'unchanged', id, external_id, version }, representations) }
  }
  const { id, external_id, version, operation } = decision.change
  // A create that completes a placeholder is stored as an update, but its result is `created`.
  const result = isCompleting(write, row) ? 'created' : results[operation]
  return { done: withRepresentation({ result, id, external_id, version }, representations) }
}

function withRepresentation<D extends { id: string }>(
  done: D,
  representations: Map<string, SerializedEntity>,
): D & { representation?: SerializedEntity } {
  const representation = representations.get(done.id)
  return representation ? { ...done, representation } : done
}
