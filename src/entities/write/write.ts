import type { Operation } from '../../changes/schema.ts'
import { awaitPipelined, type Transaction } from '../../db/db.ts'
import {
  answerOf,
  keepResponses,
  type StoredKeys,
  type StoredResponse,
  type WriteKey,
} from '../../idempotency/kept-responses.ts'
import { type Definitions, readDefinitions } from '../../organizations/definitions.ts'
import { lockHead } from '../../organizations/head.ts'
import { type DecisionLimits, idOfDecision, NeedsAllValues } from '../decide/decide.ts'
import { type ChangedLater, changedLater, type DecidedRound, decideRound } from '../decide/decide-round.ts'
import {
  type Difference,
  maxBatchedRowBytes,
  readDifferingWithin,
  readSerializedWithin,
  type SerializedEntity,
} from '../read/entity-reader.ts'
import { unlimitedRowBytes } from '../read/pagination.ts'
import { type Decided, type Done, isCompleting, type KeyedOutcome, type WritePreview } from '../write-request.ts'
import { type LoadedItems, load } from './load.ts'
import { type Item, planItems } from './plan.ts'
import type { Previews } from './previews.ts'
import { storeRound } from './store.ts'
import { decideUnlessErased } from './tombstones.ts'

export type WriteLimits = DecisionLimits & { links: number }

/** Writes of one organization, and the definitions that they were planned with. */
export type Planned = { items: Item[]; definitions: Definitions }

/** How the transaction goes on: with COMMIT, as the caller decides, or with the ROLLBACK of a dry run. */
export type Ending = 'commit' | 'continue' | Previews

/** The outcomes by index, the definitions that stand, and whether anything changed. */
export type Written = { outcomes: Map<number, KeyedOutcome>; definitions: Definitions; hasChanges: boolean }

/** After so many rounds a transaction is committed, so that it does not hold the head for long. The items left have no outcome. */
const maxRounds = 16

/**
 * Writes items in their order: lock, load, decide, store, commit. A round stores what it has decided when the next item depends on
 * something that only the database can tell ({@link WriteState.needsStored}); almost every transaction has one round. With `commit`, COMMIT
 * is pipelined with the last statement.
 */
export async function write(tx: Transaction, planned: Planned, limits: WriteLimits, ending: Ending): Promise<Written> {
  let { items, definitions, sequence, loading } = await lockAndLoad(tx, planned, limits)
  const { organization_id } = definitions
  const at = new Date().toISOString()
  const outcomes = new Map<number, KeyedOutcome>()
  let [hasChanges, isRefused] = [false, true]
  for (let rounds = 1; ; rounds += 1) {
    const { loaded, round } = await loadAndDecide(tx, definitions, items, { loading, limits, at })
    items = items.slice(round.decisions.size)
    const isLast = items.length === 0 || (ending === 'commit' && rounds === maxRounds)
    const previews = typeof ending === 'string' ? undefined : await ending.add(round)
    const stored = previews && isLast ? { statements: [], sequence } : storeRound(tx, round, sequence)
    sequence = stored.sequence
    const representing = readRepresentations(tx, round)
    const tell = (item: Item, representations: Representations) =>
      outcomeOf(item, round, { representations, sequence, previews })
    const { keys } = loaded.loaded
    const keyed = keyedItems(round, keys)
    // A response that is kept shows its entity, so it waits for the read.
    const showsEntity = keyed.some(({ write }) => write.represent)
    if (showsEntity) await awaitPipelined([...stored.statements, representing])
    const shown = showsEntity ? await representing : noRepresentations
    const responses = keyed.flatMap(item => responseTo(item, tell(item, shown)) ?? [])
    const keeping = keepResponses(tx, organization_id, responses, { keys, at })
    hasChanges ||= round.accepted.length > 0
    // An unchanged entity is committed too: a synchronous standby may not have its last change yet.
    isRefused &&= keeping.length === 0 && [...round.decisions.values()].every(decision => 'refusal' in decision)
    const ended = ending === 'commit' && isLast ? [isRefused ? tx.rollback() : tx.commit()] : []
    await awaitPipelined([...stored.statements, representing, ...keeping, ...ended])
    for (const item of round.decisions.keys()) outcomes.set(item.index, tell(item, await representing))
    if (isLast) return { outcomes, definitions, hasChanges }
    // The first alias of an organization changes its definitions.
    if (round.accepted.some(({ change }) => change.aliases))
      definitions = await readDefinitions(tx, organization_id, definitions)
    loading = load(tx, definitions, items)
  }
}

/** The items whose key is free, so that their responses are kept. */
const keyedItems = ({ decisions }: DecidedRound, keys: StoredKeys): Item[] =>
  [...decisions.keys()].filter(({ write: { keyed } }) => keyed && !answerOf(keyed, keys))

/** The response to keep under the key of an item. Undefined if none is kept. */
function responseTo({ write }: Item, outcome: KeyedOutcome): (WriteKey & StoredResponse) | undefined {
  const { responseTo, ...key } = write.keyed!
  const response = responseTo(outcome as Decided)
  return response && { ...key, ...response }
}

/**
 * Locks the head: nobody else writes to the organization until the transaction ends. If the definitions have changed, the items are planned
 * again with those that stand.
 */
async function lockAndLoad(tx: Transaction, { items, definitions: cached }: Planned, limits: WriteLimits) {
  const { organization_id } = cached
  const locking = lockHead(tx, organization_id)
  const loading = load(tx, cached, items)
  await awaitPipelined([locking, loading])
  const { schema_version, sequence } = await locking
  if (schema_version === cached.version) return { items, definitions: cached, sequence, loading }
  const definitions = await readDefinitions(tx, organization_id, cached)
  const planned = await planItems(items, definitions, limits.links)
  return { items: planned, definitions, sequence, loading: load(tx, definitions, planned) }
}

type Loading = { loading: Promise<LoadedItems>; limits: WriteLimits; at: string }

/** Decides a round on the values that the items write, or on all if these do not suffice. */
async function loadAndDecide(tx: Transaction, definitions: Definitions, items: Item[], given: Loading) {
  const { loading, limits, at } = given
  const decideOn = async (loaded: LoadedItems) => ({
    loaded,
    round: await decideRoundOf(tx, definitions, loaded, limits, at),
  })
  try {
    return await decideOn(await loading)
  } catch (error) {
    if (!(error instanceof NeedsAllValues)) throw error
    return decideOn(await load(tx, definitions, items, 'all'))
  }
}

const decideRoundOf = (
  tx: Transaction,
  definitions: Definitions,
  { items, refused, loaded }: LoadedItems,
  limits: WriteLimits,
  at: string,
): Promise<DecidedRound> =>
  decideUnlessErased(tx, definitions, erased =>
    decideRound(items, loaded, { definitions, limits, at, erased, refused }),
  )

const results = {
  create: 'created',
  update: 'updated',
  delete: 'deleted',
  restore: 'restored',
  merge: 'deleted',
  unmerge: 'restored',
  erase: 'deleted',
} as const satisfies Record<Operation, Done['result']>

/** The entities that the responses show, by item. */
type Representations = ReadonlyMap<Item, SerializedEntity>

const noRepresentations: Representations = new Map()

/** What the outcomes of a round are made of, besides its decisions. */
type RoundResult = {
  representations: Representations
  sequence: number
  previews: ReadonlyMap<Item, WritePreview> | undefined
}

function outcomeOf(
  item: Item,
  { decisions, rows }: DecidedRound,
  { representations, sequence, previews }: RoundResult,
): KeyedOutcome {
  const decision = decisions.get(item)!
  if ('refusal' in decision || 'replayed' in decision) return decision
  const { write } = item
  const { id, external_id, version } = 'change' in decision ? decision.change : decision.unchanged
  const done: Done = { result: 'unchanged', id, external_id, version, sequence }
  // A create that completes a placeholder is stored as an update, but its result is `created`.
  if ('change' in decision)
    done.result = isCompleting(write, rows.get(item)) ? 'created' : results[decision.change.operation]
  if ('change' in decision && decision.change.warnings) done.warnings = decision.change.warnings
  const representation = representations.get(item)
  if (representation) done.representation = representation
  const preview = previews?.get(item)
  if (preview) done.preview = preview
  return { done }
}

type ShownItem = { item: Item; id: string; difference: Difference | undefined }

/**
 * Reads the entities that the writes return, as the transaction sees them. One that later writes of the round change again is read with the
 * values that it had before these.
 */
async function readRepresentations(tx: Transaction, round: DecidedRound): Promise<Representations> {
  if (![...round.decisions.keys()].some(({ write }) => write.represent)) return noRepresentations
  const later = changedLater(round)
  const shownByStack = new Map<number, ShownItem[]>()
  let maxRowBytes = maxBatchedRowBytes
  for (const [item, decision] of round.decisions) {
    const { represent, stack_id } = item.write
    if (!represent || 'refusal' in decision || 'replayed' in decision) continue
    if (represent === 'whole') maxRowBytes = unlimitedRowBytes
    const changes = later.get(item)
    const shown = shownByStack.get(stack_id) ?? []
    shownByStack.set(stack_id, shown)
    shown.push({ item, id: idOfDecision(decision), difference: changes && differenceOf(changes) })
  }
  const { definitions } = round
  const readAsStored = async (stack_id: number, shown: readonly ShownItem[]) => {
    const ids = shown.map(({ id }) => id)
    const found = await readSerializedWithin(tx, definitions, stack_id, ids, maxRowBytes)
    const byId = new Map(found.map(entity => [entity.identifier, entity]))
    return shown.flatMap(({ item, id }) => (byId.has(id) ? [[item, byId.get(id)!] as const] : []))
  }
  const readDiffering = async (stack_id: number, shown: readonly ShownItem[]) => {
    const differences = shown.map(({ difference }) => difference!)
    const found = await readDifferingWithin(tx, definitions, stack_id, differences, maxRowBytes)
    return found.map(entity => {
      const { item, id } = shown[Number(entity.identifier)]!
      return [item, { ...entity, identifier: id }] as const
    })
  }
  const reads = [...shownByStack].flatMap(([stack_id, shown]) => {
    const [asStored, differing] = [shown.filter(each => !each.difference), shown.filter(each => each.difference)]
    return [
      ...(asStored.length > 0 ? [readAsStored(stack_id, asStored)] : []),
      ...(differing.length > 0 ? [readDiffering(stack_id, differing)] : []),
    ]
  })
  await awaitPipelined(reads)
  return new Map((await Promise.all(reads)).flat())
}

/** The values that the changes of later items have replaced. */
function differenceOf({ row, change: { id, columns, set, removed } }: ChangedLater): Difference {
  const pick = (values: Record<string, unknown>, keys: string[]) =>
    Object.fromEntries(keys.filter(key => Object.hasOwn(values, key)).map(key => [key, values[key]]))
  const keys = [...Object.keys(set), ...removed]
  return {
    id,
    columns: pick(row, Object.keys(columns)),
    attributes: pick(row.attributes, keys),
    removed_keys: keys.filter(key => !Object.hasOwn(row.attributes, key)),
  }
}
