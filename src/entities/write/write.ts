import { awaitPipelined, type Transaction } from '../../db/db.ts'
import { answerOf, keepResponses, type WriteKey } from '../../idempotency/kept-responses.ts'
import { type Definitions, readDefinitions } from '../../organizations/definitions.ts'
import { lockHead } from '../../organizations/head.ts'
import type { Operation } from '../../organizations/logged-changes.ts'
import type { StoredResponse } from '../../route/call.ts'
import { maxBatchedRowBytes, readSerializedWithin, type SerializedEntity } from '../read/entity-reader.ts'
import { unlimitedRowBytes } from '../read/pagination.ts'
import { type Decided, type Done, isCompleting, type KeyedOutcome, type WritePreview } from '../write-request.ts'
import { Changed } from './changed.ts'
import { type DecisionLimits, idOfDecision } from './decide/decide.ts'
import { load } from './load/load.ts'
import type { Loaded } from './load/loaded.ts'
import { type IndexedWrite, type Item, type PatternTimes, planItems } from './plan.ts'
import type { Previews } from './previews.ts'
import { type DecidedRound, decideRound } from './round.ts'
import { firstWithin, maxPortion } from './set-size.ts'
import { storeRound } from './store/store.ts'

export type WriteLimits = DecisionLimits & { links: number }

/** The end of the transaction: COMMIT, left to the caller, or the ROLLBACK of a dry run. */
export type Ending = 'commit' | 'continue' | Previews

/**
 * The outcomes by index, the current definitions, whether anything changed, and the numbers of added entities and
 * links.
 */
export type Written = {
  outcomes: Map<number, KeyedOutcome>
  definitions: Definitions
  hasChanges: boolean
  added: { entities: number; links: number }
}

/**
 * A transaction commits after this many rounds, so that it does not hold the head for long. The remaining writes have
 * no outcome.
 */
const maxRounds = 64

const portionOf = (writes: readonly IndexedWrite[]) => firstWithin(writes, ({ write }) => write.bytes, maxPortion)

/** Items that are being loaded, and the round before which their load was sent. */
type Portion = { items: Item[]; loading: Promise<Loaded>; since: number }

/** Statements of a transaction that were sent and are not awaited yet. A statement may fail before it is awaited. */
class Sent {
  #statements: Promise<unknown>[] = []

  add(statements: readonly Promise<unknown>[]): void {
    for (const statement of statements) statement.catch(() => {})
    this.#statements.push(...statements)
  }

  /** Waits for them, then for one that was sent after them, and returns its result. */
  before<T>(last: Promise<T>): Promise<T> {
    const waiting = awaitPipelined([...this.#statements, last]).then(() => last)
    waiting.catch(() => {})
    this.#statements = []
    return waiting
  }
}

/**
 * Runs writes in order: lock, then plan, load, decide and store, round by round, and commit. `known` are the
 * definitions that this process knows. A round ends before an item that depends on a change since it was loaded
 * ({@link Changed}). The next portion is planned and loaded before a round is stored, so that it is decided meanwhile.
 * With `commit`, COMMIT is pipelined with the last statement, and the transaction ends early if `mayGoOn` says so after
 * a round.
 */
export async function write(
  tx: Transaction,
  writes: readonly IndexedWrite[],
  known: Definitions,
  limits: WriteLimits,
  ending: Ending,
  mayGoOn: () => boolean = () => true,
): Promise<Written> {
  const times: PatternTimes = new Map()
  const first = portionOf(writes)
  let rest = writes.slice(first.length)
  const begun = await lockAndLoad(tx, known, definitions => planItems(first, definitions, limits.links, times))
  let { definitions, sequence } = begun
  const at = new Date().toISOString()
  const changed = new Changed(writes, definitions)
  const sent = new Sent()
  const loadItems = (items: Item[]): Portion => {
    return { items, loading: sent.before(load(tx, definitions, items)), since: changed.round }
  }
  const portions: Portion[] = [{ items: begun.items, loading: Promise.resolve(begun.loaded), since: changed.round }]
  const outcomes: Written['outcomes'] = new Map()
  // Rounds whose outcomes show an entity. The other rounds report their outcomes at once, so that an import does not
  // keep them in memory.
  const untold: (() => Promise<void>)[] = []
  const added = { entities: 0, links: 0 }
  let [hasChanges, isRefused] = [false, true]
  for (let rounds = 1; ; rounds += 1) {
    const { items, loading, since } = portions.shift()!
    const loaded = await loading
    const ends = ending === 'commit' && (rounds >= maxRounds || !mayGoOn())
    if (!ends && rest.length > 0 && portions.length === 0) {
      const next = portionOf(rest)
      rest = rest.slice(next.length)
      portions.push(loadItems(await planItems(next, definitions, limits.links, times)))
    }
    const round = await decideRound(loaded, since, changed, { definitions, limits, at })
    changed.round += 1
    const left = items.slice(round.decisions.size)
    const isLast = portions.length === 0 && (ends ? round.decisions.size > 0 : left.length === 0 && rest.length === 0)
    const previews = typeof ending === 'string' ? undefined : await ending.add(round)
    // No later write depends on the last round of a dry run.
    if (!previews || !isLast) {
      const stored = storeRound(tx, round, sequence)
      sent.add(stored.statements)
      sequence = stored.sequence
    }
    const { isKept, tellLater } = await tellRound({ tx, sent, outcomes }, round, loaded, { sequence, previews })
    if (tellLater) untold.push(tellLater)
    hasChanges ||= round.accepted.length > 0
    for (const { change } of round.accepted) {
      if (change.operation === 'create') added.entities += 1
      for (const { targets } of change.relinked) added.links += targets.length
    }
    // An unchanged entity is committed too: a synchronous standby may not have its last change yet.
    isRefused &&= !isKept && [...round.decisions.values()].every(decision => 'refusal' in decision)
    if (isLast) break
    // The first alias of an organization changes its definitions.
    if (round.accepted.some(({ change }) => change.aliases))
      definitions = await sent.before(readDefinitions({ db: tx, organization_id: known.organization_id }, definitions))
    if (left.length > 0) portions.unshift(loadItems(left))
  }
  await sent.before(ending === 'commit' ? (isRefused ? tx.rollback() : tx.commit()) : Promise.resolve())
  for (const tell of untold) await tell()
  return { outcomes, definitions, hasChanges, added }
}

type Telling = { tx: Transaction; sent: Sent; outcomes: Map<number, KeyedOutcome> }

/**
 * Reports the outcomes of a round, and keeps the responses of its keyed writes. `tellLater` reports the outcomes that
 * show entities, after these are read.
 */
async function tellRound(
  { tx, sent, outcomes }: Telling,
  round: DecidedRound,
  { keys }: Loaded,
  result: Omit<RoundResult, 'representations'>,
): Promise<{ isKept: boolean; tellLater?: () => Promise<void> }> {
  const { decisions, definitions, at } = round
  const outcome = (item: Item, representations: Representations) =>
    outcomeOf(item, round, { ...result, representations })
  const tell = (representations: Representations) => {
    for (const item of decisions.keys()) outcomes.set(item.index, outcome(item, representations))
  }
  const reading = readRepresentations(tx, round)
  const keyed = [...decisions.keys()].filter(({ write: { keyed } }) => keyed && !answerOf(keyed, keys))
  // A stored response shows its entity, so it waits for the read.
  const isAwaited = reading !== undefined && keyed.some(({ write }) => write.represent)
  const representations = isAwaited ? await sent.before(reading) : noRepresentations
  if (reading && !isAwaited) sent.add([reading])
  const responses = keyed.flatMap(item => responseTo(item, outcome(item, representations)) ?? [])
  const keeping = keepResponses({ tx, organization_id: definitions.organization_id }, responses, { keys, at })
  sent.add(keeping)
  const isKept = keeping.length > 0
  if (reading && !isAwaited) return { isKept, tellLater: async () => tell(await reading) }
  tell(representations)
  return { isKept }
}

/** The response to keep under the key of an item. Undefined if none is kept. */
function responseTo({ write }: Item, outcome: KeyedOutcome): (WriteKey & StoredResponse) | undefined {
  const { responseTo, ...key } = write.keyed!
  const response = responseTo(outcome as Decided)
  return response && { ...key, ...response }
}

/**
 * Plans and loads the first items, and locks the head, so that no other transaction writes to the organization until
 * this one ends. If the definitions have changed, the items are planned and loaded again with the current ones.
 */
async function lockAndLoad(tx: Transaction, known: Definitions, plan: (definitions: Definitions) => Promise<Item[]>) {
  const { organization_id } = known
  const items = await plan(known)
  const locking = lockHead({ tx, organization_id })
  const loading = load(tx, known, items)
  await awaitPipelined([locking, loading])
  const { schema_version, sequence } = await locking
  if (schema_version === known.version) return { definitions: known, sequence, items, loaded: await loading }
  const definitions = await readDefinitions({ db: tx, organization_id }, known)
  const planned = await plan(definitions)
  return { definitions, sequence, items: planned, loaded: await load(tx, definitions, planned) }
}

const results = {
  create: 'created',
  update: 'updated',
  delete: 'deleted',
  restore: 'restored',
  merge: 'deleted',
  unmerge: 'restored',
  erase: 'deleted',
  retention_due: 'unchanged',
} as const satisfies Record<Operation, Done['result']>

/** The entities that the responses show, by item. */
type Representations = ReadonlyMap<Item, SerializedEntity>

const noRepresentations: Representations = new Map()

/** The parts of a round's outcomes besides its decisions. */
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

/**
 * Reads the entities that the writes return, as the transaction sees them. A round changes an entity at most once.
 * Undefined if no write returns one.
 */
function readRepresentations(
  tx: Transaction,
  { definitions, decisions }: DecidedRound,
): Promise<Representations> | undefined {
  const shownByStack = new Map<number, Map<string, Item[]>>()
  let maxRowBytes = maxBatchedRowBytes
  for (const [item, decision] of decisions) {
    const { represent, stack_id } = item.write
    if (!represent || 'refusal' in decision || 'replayed' in decision) continue
    if (represent === 'whole') maxRowBytes = unlimitedRowBytes
    const shown = shownByStack.get(stack_id) ?? new Map<string, Item[]>()
    shownByStack.set(stack_id, shown)
    const id = idOfDecision(decision)
    shown.set(id, [...(shown.get(id) ?? []), item])
  }
  if (shownByStack.size === 0) return undefined
  const reads = [...shownByStack].map(async ([stack_id, shown]) => {
    const found = await readSerializedWithin(tx, definitions, stack_id, [...shown.keys()], maxRowBytes)
    return found.flatMap(entity => (shown.get(entity.identifier) ?? []).map(item => [item, entity] as const))
  })
  return awaitPipelined(reads).then(async () => new Map((await Promise.all(reads)).flat()))
}
