import { announceCommit } from '../../changes/commit-events.ts'
import { awaitPipelined, type Database, type Transaction } from '../../db/db.ts'
import { isConflict, isUnavailable } from '../../db/pg-errors.ts'
import { retryConflicts } from '../../db/retry-policy.ts'
import type { Refusal } from '../../errors.ts'
import { cachedDefinitions, type Definitions, reloadDefinitions } from '../../organizations/definitions.ts'
import { lockHead, readDefinitions } from '../../organizations/head.ts'
import type { Signal } from '../../signal.ts'
import type { Decision, DecisionLimits } from '../decide/decide.ts'
import { decideSet, type ReadState } from '../decide/decide-set.ts'
import type { EntityRow } from '../entity-row.ts'
import { countGrowth } from '../indexes/statistics.ts'
import type { SerializedEntity } from '../read/entity-reader.ts'
import { type Done, isCompleting, type Outcome, type Write, type WritePreview } from '../write-request.ts'
import { readSameAs } from './alias-stage.ts'
import { type SetSize, takeSet, type WriteOrder } from './conflicts.ts'
import { matchItems, readRecognized } from './match-stage.ts'
import { type Item, planItems } from './plan-write.ts'
import type { Previews } from './previews.ts'
import { readKnownAnswers, readLastVersions, readReferences, readRepresentations, readRows } from './read-stage.ts'
import { readDeletedEntities } from './restore-stage.ts'
import { storeSet } from './store-stage.ts'
import { decideUnlessErased } from './tombstone-stage.ts'
import { findHoldersFor, findHoldersOfDeleted } from './unique-stage.ts'

export type WriteLimits = DecisionLimits & { links: number }
export type WriteOptions = {
  limits: WriteLimits
  signal?: Signal | undefined
  /** Runs a failed set again write by write. If false, the caller does. */
  apart?: boolean
  /** Maximum size of a set, if it differs from the default. */
  setSize?: SetSize
  /** Waits for earlier calls whose writes must take effect before these. */
  acquireTurn?: WriteOrder['acquire']
  /** Only in a dry run, whose transaction the caller rolls back: each outcome that is done gets its preview. */
  previews?: Previews
}

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
      readSameAs: options.apart === false ? undefined : (items, current) => readSameAs(db, current, items),
      prepare:
        options.acquireTurn &&
        (async plan => {
          release = await options.acquireTurn!(async () => {
            const items = await plan()
            return { items, recognized: await readRecognized(db, organization_id, items) }
          })
        }),
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
  /** `isLast` says that no other set follows, unless items of this one are deferred. */
  run(set: Item[], definitions: Definitions, isLast: boolean): Promise<SetOutcomes>
}

/** Runs an array of writes in successive sets of independent items. Stores the outcome of each write in `outcomes`. */
export async function runInSets(
  writes: readonly Write[],
  outcomes: Outcome[],
  { limits, size, nextDefinitions, readSameAs, prepare = plan => plan(), run }: SetRunner,
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

/**
 * Runs a set in a transaction of its own. A set that fails for a reason that nobody foresaw runs once more write by write, so that one odd
 * value never fails its neighbours.
 */
async function runSet(
  db: Database,
  definitions: Definitions,
  set: Item[],
  options: WriteOptions,
  isLast: boolean,
): Promise<SetOutcomes> {
  const { limits, signal, apart = true, previews } = options
  const work = (tx: Transaction) => runStages(tx, definitions, set, limits, previews ? { previews, isLast } : 'commit')
  try {
    const transact = () => db.transaction(work, { signal, readsFirst: true })
    const { outcomes, definitions: current } = await retryConflicts(transact, isConflict, signal)
    if (!previews && hasChanges(outcomes)) announceCommit(db, definitions.organization_id)
    // The set is stored, whether this read succeeds or not. Without it, the next set reads the definitions.
    if (current !== definitions) await reloadDefinitions(db, definitions.organization_id, signal).catch(() => {})
    return outcomes
  } catch (error) {
    if (!apart || signal?.aborted || isUnavailable(error)) return new Map(set.map(({ index }) => [index, { error }]))
    const outcomes: SetOutcomes = new Map()
    for (const item of set) {
      const own = await runSet(db, definitions, [item], { ...options, apart: false }, isLast && item === set.at(-1))
      for (const [index, outcome] of own) outcomes.set(index, outcome)
    }
    return outcomes
  }
}

// The items already form a set, so its size is not limited again.
const unlimited = { items: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY }

/** How a set ends: with COMMIT, before another one in the same transaction, or as part of a dry run. */
export type Ending = 'commit' | 'continue' | DryRunEnding
type DryRunEnding = { previews: Previews; isLast: boolean }

/** The outcomes of a set, and the definitions that it was decided with. */
type RanSet = { outcomes: SetOutcomes; definitions: Definitions }

/**
 * Runs a set in a transaction, whose first statement locks the head: nobody else writes to the organization until the transaction ends.
 * The items are planned with the definitions of `cached`. If these have changed, only the first item is planned again, because it is unknown
 * which of the others it affects.
 */
export async function runStages(
  tx: Transaction,
  cached: Definitions,
  items: Item[],
  limits: WriteLimits,
  ending: Ending,
): Promise<RanSet> {
  const { organization_id } = cached
  const locking = lockHead(tx, organization_id)
  const loading = loadAddressed(tx, cached, items)
  await awaitPipelined([locking, loading])
  const { schema_version, sequence } = await locking
  const given = { at: new Date().toISOString(), base: sequence, limits, ending }
  if (schema_version === cached.version)
    return { outcomes: await decideAndStore(tx, cached, await loading, given), definitions: cached }
  const definitions = await readDefinitions(tx, organization_id)
  const planned = await planItems(items.slice(0, 1), definitions, limits.links)
  const loaded = await loadAddressed(tx, definitions, planned)
  return { outcomes: await decideAndStore(tx, definitions, loaded, given), definitions }
}

/** What the items of a set address and claim. `refused` are those that recognize nobody for certain. */
type Loaded = {
  /** The number of items before the match stage. */
  count: number
  items: Item[]
  refused: ReadonlyMap<Item, Refusal>
  rows: ReadState['rows']
  lastVersionOf: ReadState['lastVersionOf']
  holders: ReadState['holders']
}

/** Match and read stages. A stage without work issues no statement. */
async function loadAddressed(tx: Transaction, definitions: Definitions, items: Item[]): Promise<Loaded> {
  const { organization_id } = definitions
  const matched = items.some(({ match }) => match) ? await matchItems(tx, organization_id, items) : undefined
  const own = matched?.items ?? items
  const reading = readRows(tx, definitions, own)
  const readingVersions = readLastVersions(tx, organization_id, own)
  const finding = findHoldersFor(tx, organization_id, own)
  await awaitPipelined([reading, readingVersions, finding])
  const [rows, lastVersionOf, holders] = [await reading, await readingVersions, await finding]
  return { count: items.length, items: own, refused: matched?.refused ?? new Map(), rows, lastVersionOf, holders }
}

type Given = { at: string; base: number; limits: DecisionLimits; ending: Ending }

/**
 * Further read stages, decide, insert, link, index, history, apply, represent. With `commit`, COMMIT is pipelined with the last statement.
 * The last set of a dry run is decided and not stored; the sets before it are stored, because later ones may depend on them, and the
 * caller rolls them back.
 */
async function decideAndStore(
  tx: Transaction,
  definitions: Definitions,
  { count, items, refused, rows, lastVersionOf, holders }: Loaded,
  { at, base, limits, ending }: Given,
): Promise<SetOutcomes> {
  const { organization_id } = definitions
  const { set } = takeSet(items, { rows, size: unlimited })
  const references = await readReferences(tx, definitions, set, rows)
  const knownAnswers = await readKnownAnswers(tx, organization_id, set, rows)
  const deleted = await readDeletedEntities(tx, definitions, set, rows)
  const read = {
    rows,
    lastVersionOf,
    knownAnswers,
    deleted,
    holders: deleted.size > 0 ? await findHoldersOfDeleted(tx, definitions, deleted) : holders,
    ...references,
  }
  const decided = await decideUnlessErased(tx, definitions, erased =>
    decideSet(set, read, { definitions, limits, at, erased }),
  )
  const dryRun = typeof ending === 'object' ? ending : undefined
  const isWhole = set.length + refused.size === count
  const isStored = !(dryRun?.isLast && isWhole)
  const { statements, sequence } = isStored ? storeSet(tx, decided, base) : { statements: [], sequence: base }
  const representing = readRepresentations(tx, decided)
  // An unchanged entity is committed too: a synchronous standby may not have its last change yet.
  const isRefused = [...decided.decisions.values()].every(decision => 'refusal' in decision)
  const ended = ending === 'commit' ? [isRefused ? tx.rollback() : tx.commit()] : []
  await awaitPipelined([...statements, representing, ...ended])
  const representations = await representing
  const previews = dryRun?.previews.add(decided)
  const outcomes: SetOutcomes = new Map()
  for (const [{ index }, refusal] of refused) outcomes.set(index, { refusal })
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
