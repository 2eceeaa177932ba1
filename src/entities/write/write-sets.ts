import { announceCommit } from '../../changes/commit-events.ts'
import { awaitPipelined, type Database, type Transaction } from '../../db/db.ts'
import { isDeadlock, isDivisionByZero, isUniqueViolation } from '../../db/pg-errors.ts'
import { retryConflicts, runsAgainApart } from '../../db/retry-policy.ts'
import { cachedDefinitions, type Definitions, reloadDefinitions } from '../../organizations/definitions.ts'
import type { Signal } from '../../signal.ts'
import type { Decision, DecisionLimits } from '../decide/decide.ts'
import { decideSet } from '../decide/decide-set.ts'
import type { EntityRow } from '../entity-row.ts'
import { countGrowth } from '../indexes/statistics.ts'
import type { SerializedEntity } from '../read/entity-reader.ts'
import { type Done, isCompleting, type Outcome, type Write, type WritePreview } from '../write-request.ts'
import { checkAddresses, readSameAs } from './alias-stage.ts'
import { type SetSize, takeSet, type WriteOrder } from './conflicts.ts'
import { checkMatches, matchItems, readRecognized } from './match-stage.ts'
import { type Item, planItems } from './plan-write.ts'
import type { Previews } from './previews.ts'
import {
  LostRace,
  lockAddressed,
  lockRows,
  readKnownAnswers,
  readLastVersions,
  readReferences,
  readRepresentations,
} from './read-stage.ts'
import { readDeletedEntities } from './restore-stage.ts'
import { checkOnly, DefinitionsChanged, storeSet } from './store-stage.ts'
import { decideUnlessErased } from './tombstone-stage.ts'
import { checkUnique, findHoldersFor, findHoldersOfDeleted } from './unique-stage.ts'

export type WriteLimits = DecisionLimits & { links: number }
export type WriteOptions = {
  limits: WriteLimits
  signal?: Signal | undefined
  /** Runs a failed set again in halves and lets a single write wait for its locks. If false, the caller retries. */
  halves?: boolean
  /** Maximum size of a set, if it differs from the default. */
  setSize?: SetSize
  /** Waits for earlier calls whose writes must take effect before these. */
  acquireTurn?: WriteOrder['acquire']
  /** Only in a dry run, whose transaction the caller rolls back: each outcome that is done gets its preview. */
  previews?: Previews
}

/** Lock timeout of a set. A locked row must not delay the other items, so the set then runs in halves. */
const setLockTimeoutMs = 250

/**
 * Writes an array of entities of one organization. Returns the outcome of each write in the same order. The array is
 * split into sets of independent items. Each set is one transaction with a fixed number of statements. A refused or
 * failed item does not affect the others. Conflicting writes take effect in the order of the array. Rejects only if no
 * write has an outcome yet.
 */
export async function writeEntities(
  db: Database,
  organization_id: number,
  writes: Write[],
  options: WriteOptions,
): Promise<Outcome[]> {
  const outcomes = new Array<Outcome>(writes.length)
  let release: (() => void) | undefined
  try {
    await runInSets(writes, outcomes, {
      limits: options.limits,
      size: options.setSize,
      nextDefinitions: () => cachedDefinitions(db, organization_id, options.signal),
      // Concurrent requests have no order.
      readSameAs: options.halves === false ? undefined : (items, current) => readSameAs(db, current, items),
      prepare:
        options.acquireTurn &&
        (async plan => {
          release = await options.acquireTurn!(async () => {
            const items = await plan()
            return { items, recognized: await readRecognized(db, organization_id, items) }
          })
        }),
      begin: async (items, isSplit, current) => {
        if (db.outer && isSplit) await db.transaction(tx => lockAll(tx, current, items))
      },
      run: async (set, definitions, isLast) => {
        const setOutcomes = await runSet(db, definitions, set, options, isLast)
        if (!options.previews) countInserted(db, organization_id, set, setOutcomes)
        return setOutcomes
      },
    })
  } catch (error) {
    if (!outcomes.some(Boolean)) throw error
    // Earlier sets have outcomes. Throwing now would tell the caller to retry all of them.
    for (const index of writes.keys()) outcomes[index] ??= { error }
  } finally {
    release?.()
  }
  return outcomes
}

/** Outcomes by index. An item without one conflicts with another item of the set and is deferred to the next set. */
type SetOutcomes = Map<number, Outcome>

type SetRunner = {
  limits: WriteLimits
  size?: SetSize | undefined
  /** Returns the definitions to plan the next set with. */
  nextDefinitions(): Definitions | Promise<Definitions>
  /** Returns the `sameAs` of the items ({@link Item}). Without it, writes of one person by several names may change places. */
  readSameAs?: ((items: Item[], definitions: Definitions) => Promise<Item['sameAs']>) | undefined
  /** Called before the items are split. `plan` plans them and adds their `sameAs`. By default, it only calls `plan`. */
  prepare?: ((plan: () => Promise<Item[]>) => Promise<unknown>) | undefined
  /** Called before the first set, with all items and whether they may need several sets. */
  begin(items: Item[], isSplit: boolean, definitions: Definitions): Promise<void>
  /** `isLast` says that no other set follows, unless items of this one are deferred. */
  run(set: Item[], definitions: Definitions, isLast: boolean): Promise<SetOutcomes>
}

/** Runs an array of writes in successive sets of independent items. Stores the outcome of each write in `outcomes`. */
export async function runInSets(
  writes: readonly Write[],
  outcomes: Outcome[],
  { limits, size, nextDefinitions, readSameAs, prepare = plan => plan(), begin, run }: SetRunner,
): Promise<void> {
  if (writes.length === 0) return
  let definitions = await nextDefinitions()
  let items: Item[] = []
  const plan = async (unplanned: Parameters<typeof planItems>[0]) => {
    items = await planItems(unplanned, definitions, limits.links)
    const sameAs = items.length > 1 ? await readSameAs?.(items, definitions) : undefined
    if (sameAs) for (const item of items) item.sameAs = sameAs
    return items
  }
  await prepare(() => plan(writes.map((write, index) => ({ write, index }))))
  for (;;) {
    const { set, later } = takeSet(items, { size })
    if (items.length === writes.length)
      await begin(items, later.length > 0 || items.some(({ match }) => match), definitions)
    const setOutcomes = await run(set, definitions, later.length === 0)
    for (const [index, outcome] of setOutcomes) outcomes[index] = outcome
    items = [...set.filter(({ index }) => !setOutcomes.has(index)), ...later].sort((a, b) => a.index - b.index)
    if (items.length === 0) return
    const current = await nextDefinitions()
    const isSame = current === definitions
    definitions = current
    if (isSame) continue
    await plan(items)
  }
}

const hasChanges = (outcomes: SetOutcomes) =>
  [...outcomes.values()].some(outcome => 'done' in outcome && outcome.done.result !== 'unchanged')

/** Counts the inserted rows approximately: placeholders are not counted. */
function countInserted(db: Database, organization_id: number, set: Item[], setOutcomes: SetOutcomes) {
  const inserted = { entities: 0, links: 0 }
  for (const { index, plan } of set) {
    const outcome = setOutcomes.get(index)
    if (!outcome || !('done' in outcome)) continue
    if (outcome.done.result === 'created') inserted.entities += 1
    for (const { references } of plan.links.values()) inserted.links += references.length
  }
  for (const table of ['entities', 'links'] as const)
    countGrowth(db.outer ?? db, organization_id, table, inserted[table])
}

/** Runs a set in a transaction of its own. A set that fails runs again in halves, until the faulty item is alone. */
async function runSet(
  db: Database,
  definitions: Definitions,
  set: Item[],
  options: WriteOptions,
  isLast: boolean,
): Promise<SetOutcomes> {
  const { limits, signal, halves = true, previews } = options
  const lockTimeoutMs = set.length > 1 || !halves ? setLockTimeoutMs : undefined
  try {
    const outcomes = await decideAgain(db, definitions, signal, async current => {
      const items = current === definitions ? set : await planItems(set, current, limits.links)
      const work = (tx: Transaction) =>
        runStages(tx, current, items, limits, previews ? { previews, isLast } : 'commit')
      // Writes without an address are inserted without a read.
      const readsFirst = items.some(({ write, match, plan }) => write.address !== null || match || plan.claims?.length)
      return db.transaction(work, { signal, lockTimeoutMs, readsFirst })
    })
    if (!previews && hasChanges(outcomes)) announceCommit(db, definitions.organization_id)
    return outcomes
  } catch (error) {
    if (!halves || set.length === 1 || signal?.aborted || !runsAgainApart(error, set.length))
      return new Map(set.map(({ index }) => [index, { error }]))
    const middle = Math.ceil(set.length / 2)
    const first = await runSet(db, definitions, set.slice(0, middle), options, false)
    // A later item may concern the same person as one that the match stage left out, or a unique value of one that was deferred.
    if (first.size < middle && set.some(({ match, plan }) => match || plan.uniques)) return first
    const second = await runSet(db, definitions, set.slice(middle), options, isLast)
    return new Map([...first, ...second])
  }
}

/**
 * Runs `work`, which decides writes and stores them in one transaction. Runs it again if a concurrent write came first,
 * and with the new definitions if they changed.
 */
export function decideAgain<T>(
  db: Database,
  definitions: Definitions,
  signal: Signal | undefined,
  work: (definitions: Definitions) => Promise<T>,
): Promise<T> {
  let current = definitions
  const attempt = async (previousError: unknown) => {
    if (mayHaveStaleDefinitions(previousError))
      current = await reloadDefinitions(db, definitions.organization_id, signal)
    return work(current)
  }
  return retryConflicts(attempt, error => mayHaveStaleDefinitions(error) || isLostRace(error), signal)
}

/** Whether the writes may have been decided on outdated definitions. A division by zero also tells of other lost races. */
const mayHaveStaleDefinitions = (error: unknown): boolean =>
  error instanceof DefinitionsChanged || isDivisionByZero(error)

/** Whether the error means that a concurrent write came first. Decided again, the writes succeed or are refused. */
const isLostRace = (error: unknown): boolean =>
  error instanceof LostRace || isUniqueViolation(error) || isDeadlock(error)

// The items already form a set, so its size is not limited again.
const unlimited = { items: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY }

/**
 * Locks everything that the items address or recognize. If several sets share a transaction, all of it is locked before
 * the first set locks the head.
 */
export async function lockAll(tx: Transaction, definitions: Definitions, items: Item[]): Promise<void> {
  const matched = await matchItems(tx, definitions, items)
  await lockAddressed(tx, definitions, matched.items)
}

/** How a set ends: with COMMIT, before another one in the same transaction, or as part of a dry run. */
export type Ending = 'commit' | 'continue' | DryRunEnding
type DryRunEnding = { previews: Previews; isLast: boolean }

/**
 * Runs the stages of one set in one transaction: match, lock, read, unique, decide, insert, link, index, history, apply, represent. A
 * stage without work issues no statement. With `commit`, COMMIT is pipelined with the last statement. The last set of a dry run is
 * decided and not stored; the sets before it are stored, because later ones may depend on them, and the caller rolls them back.
 * Throws the errors that {@link decideAgain} retries, and other database errors.
 */
export async function runStages(
  tx: Transaction,
  definitions: Definitions,
  items: Item[],
  limits: DecisionLimits,
  ending: Ending,
): Promise<SetOutcomes> {
  const { organization_id } = definitions
  const at = new Date().toISOString()
  const matched = items.some(({ match }) => match) ? await matchItems(tx, definitions, items) : undefined
  const own = matched?.items ?? items
  const locking = lockRows(tx, definitions, own)
  const readingVersions = readLastVersions(tx, organization_id, own)
  const finding = findHoldersFor(tx, organization_id, own)
  await awaitPipelined([locking, readingVersions, finding])
  const [rows, lastVersionOf] = [await locking, await readingVersions]
  matched?.check(rows)
  const { set } = takeSet(own, { rows, size: unlimited })
  const reading = readReferences(tx, definitions, set, rows)
  await awaitPipelined([reading, checkAddresses(tx, definitions, set, rows)])
  const references = await reading
  const knownAnswers = await readKnownAnswers(tx, organization_id, set, rows)
  const deleted = await readDeletedEntities(tx, definitions, set, rows)
  const holders = deleted.size > 0 ? await findHoldersOfDeleted(tx, definitions, deleted) : await finding
  const read = { rows, lastVersionOf, knownAnswers, deleted, holders, ...references }
  const decided = await decideUnlessErased(tx, definitions, erased =>
    decideSet(set, read, { definitions, limits, at, erased }),
  )
  const dryRun = typeof ending === 'object' ? ending : undefined
  const isWhole = set.length + (matched?.refused.size ?? 0) === items.length
  const isStored = !(dryRun?.isLast && isWhole)
  const storing = isStored ? storeSet(tx, decided) : checkOnly(tx, definitions)
  const checks = isStored ? [...checkMatches(tx, decided), ...checkUnique(tx, decided)] : []
  const representing = readRepresentations(tx, decided)
  const committing = ending === 'commit' ? [tx.commit()] : []
  await awaitPipelined([...storing.statements, ...checks, representing, ...committing])
  const [representations, sequence] = [await representing, await storing.sequence]
  const previews = dryRun?.previews.add(decided)
  const outcomes: SetOutcomes = new Map()
  for (const [{ index }, refusal] of matched?.refused ?? []) outcomes.set(index, { refusal })
  for (const [item, decision] of decided.decisions)
    outcomes.set(item.index, outcomeOf(item, decision, rows.get(item), { representations, sequence, previews }))
  return outcomes
}

const results = {
  create: 'created',
  update: 'updated',
  delete: 'deleted',
  restore: 'restored',
  merge: 'deleted',
  unmerge: 'restored',
  erase: 'deleted',
} as const

/** What the outcomes of a set are made of, besides its decisions. */
type SetResult = {
  representations: ReadonlyMap<string, SerializedEntity>
  sequence: number
  previews: ReadonlyMap<Item, WritePreview> | undefined
}

function outcomeOf(
  item: Item,
  decision: Decision,
  row: EntityRow | undefined,
  { representations, sequence, previews }: SetResult,
): Outcome {
  if ('refusal' in decision) return { refusal: decision.refusal }
  const { write } = item
  const { id, external_id, version } = 'change' in decision ? decision.change : decision.unchanged
  const done: Done = { result: 'unchanged', id, external_id, version, sequence }
  // A create that completes a placeholder is stored as an update, but its result is `created`.
  if ('change' in decision) done.result = isCompleting(write, row) ? 'created' : results[decision.change.operation]
  const representation = representations.get(id)
  if (representation) done.representation = representation
  const preview = previews?.get(item)
  if (preview) done.preview = preview
  return { done }
}
