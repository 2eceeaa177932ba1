import { type Database, flushed, type Transaction } from '../db/db.ts'
import { isDeadlock, isNullOf, isUnavailable, isUniqueViolation } from '../db/pg-errors.ts'
import { type Definitions, knownDefinitions, reloadDefinitions } from '../organizations/definitions.ts'
import { type Item, takeSet } from './conflicts.ts'
import { type Decision, type DecisionLimits, decide } from './decide.ts'
import { newEntityId } from './identifiers.ts'
import { nameKey, planWrite } from './plan.ts'
import type { EntityRow, Links, Read, Standing } from './row.ts'
import {
  type Accepted,
  appendAnswers,
  applyChanges,
  lockRows,
  lookAround,
  makeEntities,
  NameTakenMeanwhile,
  placeholdersOf,
  replaceLinks,
  represent,
} from './stages.ts'
import type { Outcome, Write } from './write.ts'

export type WriteLimits = DecisionLimits & { links: number }
export type WriteOptions = { limits: WriteLimits; signal?: AbortSignal | undefined }

/** A set that others keep getting ahead of is tried this often before it fails. */
const attempts_limit = 10
/** One row locked elsewhere must not stall the whole set: after this long it is run in halves. */
const set_lock_timeout_ms = 250

/**
 * Writes an array of entities of one organization, and answers each write's outcome in the same order. The array is
 * cut into sets that can be decided side by side; each set is one transaction with a fixed number of statements. One
 * item's refusal or failure does not touch its neighbours. Writes that conflict take effect in order of arrival.
 */
export async function writeEntities(
  db: Database,
  organization_id: number,
  writes: Write[],
  options: WriteOptions,
): Promise<Outcome[]> {
  const outcomes = new Array<Outcome>(writes.length)
  let pending = writes.map((write, index) => ({ write, index }))
  while (pending.length > 0) {
    const definitions = await knownDefinitions(db, organization_id, options.signal)
    const items = pending.map(({ write, index }) => plan(write, index, definitions, options.limits))
    const { set, later } = takeSet(items, () => undefined)
    const settled = await runSet(db, definitions, set, options)
    for (const [item, outcome] of settled) outcomes[item] = outcome
    pending = [...set.filter(({ index }) => !settled.has(index)), ...later].sort((a, b) => a.index - b.index)
  }
  return outcomes
}

function plan(write: Write, index: number, definitions: Definitions, limits: WriteLimits): Item {
  return { write, index, plan: planWrite(write, definitions, limits.links) }
}

/** Outcomes by index; an item without one has turned out to conflict with another, and waits for the next set. */
type Settled = Map<number, Outcome>

async function runSet(db: Database, known: Definitions, set: Item[], options: WriteOptions): Promise<Settled> {
  let definitions = known
  let items = set
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await tryOnce(db, definitions, items, options)
    } catch (error) {
      const stale = isNullOf(error, 'change_heads', 'schema_version')
      const again = stale || error instanceof NameTakenMeanwhile || isUniqueViolation(error) || isDeadlock(error)
      if (options.signal?.aborted || !again || attempt >= attempts_limit) {
        // A set that exceeded its lock timeout, or broke for any other reason, is run in halves: the culprit ends up alone.
        // Not so when the connection is gone: its COMMIT may have been carried out.
        const splits = items.length > 1 && !options.signal?.aborted && !isUnavailable(error)
        return splits
          ? runHalves(db, definitions, items, options)
          : new Map(items.map(({ index }) => [index, { error }]))
      }
      if (stale) {
        definitions = await reloadDefinitions(db, definitions.organization_id, options.signal)
        items = items.map(({ write, index }) => plan(write, index, definitions, options.limits))
      }
    }
  }
}

async function runHalves(
  db: Database,
  definitions: Definitions,
  items: Item[],
  options: WriteOptions,
): Promise<Settled> {
  const middle = Math.ceil(items.length / 2)
  const first = await runSet(db, definitions, items.slice(0, middle), options)
  const second = await runSet(db, definitions, items.slice(middle), options)
  return new Map([...first, ...second])
}

function tryOnce(
  db: Database,
  definitions: Definitions,
  items: Item[],
  { limits, signal }: WriteOptions,
): Promise<Settled> {
  const lock_timeout_ms = items.length > 1 ? set_lock_timeout_ms : undefined
  return db.transaction(tx => transactSet(tx, definitions, items, limits), { signal, lock_timeout_ms })
}

/** The write path: read, decide, make, apply, link, answer. A stage with nothing to do issues no statement. */
async function transactSet(
  tx: Transaction,
  definitions: Definitions,
  items: Item[],
  limits: WriteLimits,
): Promise<Settled> {
  const { organization_id } = definitions
  const at = new Date().toISOString()
  const rows = await lockRows(tx, organization_id, items)
  const { set } = takeSet(items, item => rows.get(item))
  const { bearers, links } = await lookAround(tx, definitions, set, rows)

  const decisions = set.map((item): [Item, Decision] => {
    const circumstances = {
      definitions,
      at,
      limits,
      bearer: (name: Parameters<typeof nameKey>[0]) => bearers.get(nameKey(name)),
      new_id: newEntityId(item.write.stack_id),
    }
    return [item, decide(standingOf(rows.get(item), links), item.write, item.plan, circumstances)]
  })
  const accepted = decisions.flatMap(([item, decision]) =>
    'change' in decision ? [{ item, change: decision.change }] : [],
  )

  const placeholders = placeholdersOf(accepted)
  await makeEntities(tx, organization_id, accepted, placeholders.values(), at)
  const stored = storeAll(tx, definitions, accepted, placeholders, at)
  const shown = represent(tx, organization_id, decisions.flatMap(toRepresent))
  await flushed([...stored, shown, tx.commit()])
  const standings = await shown
  return new Map(decisions.map(([item, decision]) => [item.index, outcomeOf(item, decision, standings)]))
}

/** Apply, link and answer travel in one flush with COMMIT. */
function storeAll(
  tx: Transaction,
  definitions: Definitions,
  accepted: Accepted[],
  placeholders: ReturnType<typeof placeholdersOf>,
  at: string,
): Promise<unknown>[] {
  if (accepted.length === 0) return []
  return [
    applyChanges(tx, definitions, accepted, placeholders, at),
    ...replaceLinks(tx, definitions.organization_id, accepted, placeholders),
    ...appendAnswers(tx, definitions.organization_id, accepted, at),
  ]
}

function standingOf(row: EntityRow | undefined, links: Map<string, Links>): Standing | null {
  return row ? { row, links: links.get(row.id) ?? new Map() } : null
}

function toRepresent([item, decision]: [Item, Decision]): { stack_id: number; id: string }[] {
  if (!item.write.represent || 'refusal' in decision) return []
  return [{ stack_id: item.write.stack_id, id: 'change' in decision ? decision.change.id : decision.unchanged.id }]
}

const results = { create: 'created', update: 'updated', delete: 'deleted' } as const

function outcomeOf({ write }: Item, decision: Decision, standings: Map<string, Read>): Outcome {
  if ('refusal' in decision) return { refusal: decision.refusal }
  if ('unchanged' in decision) {
    const { id, version } = decision.unchanged
    return { done: withStanding({ result: 'unchanged', id, version }, standings) }
  }
  const { id, version, operation } = decision.change
  // A create that completes a placeholder is stored as an update and answered as the creation it is.
  const result = write.operation === 'create' ? 'created' : results[operation]
  return { done: withStanding({ result, id, version }, standings) }
}

function withStanding<D extends { id: string }>(done: D, standings: Map<string, Read>): D & { standing?: Read } {
  const standing = standings.get(done.id)
  return standing ? { ...done, standing } : done
}
