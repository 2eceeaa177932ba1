import { Queue, type QueueOptions, type Result } from '../../db/coalesce.ts'
import type { Context } from '../../db/context.ts'
import type { Database } from '../../db/db.ts'
import { perDatabase } from '../../db/per-database.ts'
import { isUnavailable } from '../../db/pg-errors.ts'
import type { Work } from '../../process/observer.ts'
import type { Signal } from '../../process/signal.ts'
import type { FieldRights } from '../../route/field-rights.ts'
import {
  type Identifiers,
  maxBatchedRowBytes,
  type ReadRow,
  readRows,
  type SerializedEntity,
  serialize,
} from '../read/entity-reader.ts'
import type { Address, KeyedOutcome, Write } from '../write-request.ts'
import { type IndexedWrite, indexed } from './plan.ts'
import { runSet, type SetOptions, type WriteOptions } from './run.ts'
import { firstWithin, maxStretch } from './set-size.ts'
import type { WriteLimits } from './write.ts'

// A write of a few bytes may lock a row of 512 KiB. With sets of 256, 256 such writes took up to 420 MiB; with 64, 350
// MiB.
const maxItems = { read: 256, write: 64 }
const bytesLimit = 262_144

/**
 * The maximum time of the set of an array or an import, in milliseconds: while other writes of the organization wait,
 * and while none does.
 */
const maxSetMs = { waitedFor: 10, alone: 100 }
const maxSettledPerTurn = 8

/**
 * Number of waiting reads at which a second batch starts. Node then answers one batch while PostgreSQL works on the
 * other. With 64 clients, that gives a sixth more reads per second. Thresholds of 16 and 32 gave less. Sets of writes
 * run one after the other. A second one only waited for the lock of the head, and was smaller because it started early
 * (docs/decisions/0050).
 */
const secondReadFrom = 24

type Queues<I, O> = Map<string, Queue<I, O>>
type CompletedOutcome = Exclude<KeyedOutcome, { error: unknown }>

/**
 * The queues of each database: writes by organization; reads by organization, stack, kind of identifier and form of
 * links.
 */
const writeQueues = perDatabase((): Queues<Stretch, ReadonlyMap<number, KeyedOutcome>> => new Map())
const readQueues = perDatabase((): Queues<string, ReadRow | undefined> => new Map())

/** Registers a queue. Beyond 1,000 queues, idle ones are removed; creating a queue is cheap. */
function registerQueue<I, O>(queues: Queues<I, O>, name: string, queue: Queue<I, O>): Queue<I, O> {
  if (queues.size >= 1_000) for (const [other, queue] of queues) if (queue.idle) queues.delete(other)
  queues.set(name, queue)
  return queue
}

const watch =
  (work: Work, { observer }: Database): QueueOptions<unknown, unknown>['watch'] =>
  (arrived, signal) =>
    observer?.batch(work, arrived, signal)

/** Returns how many requests of this database wait for a batch, over all queues. */
export function queueLengths(db: Database): Record<Work, number> {
  const lengthOf = <I, O>(queues: Queues<I, O>) => queues.values().reduce((sum, { waiting }) => sum + waiting, 0)
  return { read: lengthOf(readQueues(db)), write: lengthOf(writeQueues(db)) }
}

/** Writes that run together, in their order. */
type Stretch = {
  writes: readonly IndexedWrite[]
  /** Outcomes of the finished writes, by index. A stretch that runs again runs the other writes. */
  outcomes: Map<number, KeyedOutcome>
  onStart?: (() => void) | undefined
}

/** Writes one entity. Rejects with the error if the write fails, or with the signal's reason. */
export async function writeQueued(context: Context, write: Write, options: WriteOptions): Promise<CompletedOutcome> {
  const outcome = (await writeStretch(context, indexed([write]), options)).get(0)!
  if ('error' in outcome) throw outcome.error
  return outcome
}

/**
 * Runs writes of one organization in order. Returns the outcome of each write. A refused or failed write does not
 * affect the others. Rejects only if no write has an outcome yet.
 */
export async function writeArray(
  context: Context,
  writes: readonly Write[],
  options: WriteOptions,
): Promise<KeyedOutcome[]> {
  const outcomes = new Map<number, KeyedOutcome>()
  const failed = await writeAll(context, writes, options, outcomes).then(
    () => undefined,
    error => ({ error: error as unknown }),
  )
  // Earlier stretches may have outcomes. Throwing then would tell the caller to retry all of them.
  if (failed && outcomes.size === 0) throw failed.error
  return writes.map((_, index) => outcomes.get(index) ?? failed!)
}

/**
 * Runs writes in as many sets as their time requires, and adds the outcomes as they come. Other writes of the
 * organization run in between.
 */
export async function writeAll(
  context: Context,
  writes: readonly Write[],
  options: WriteOptions & { onStart?: () => void },
  outcomes: Map<number, KeyedOutcome>,
): Promise<void> {
  for (let rest = indexed(writes); rest.length > 0; rest = rest.filter(({ index }) => !outcomes.has(index))) {
    const stretch = firstWithin(rest, ({ write }) => write.bytes, maxStretch)
    for (const each of await writeStretch(context, stretch, options)) outcomes.set(...each)
  }
}

/**
 * Runs writes together in the next set of the organization, which takes the waiting writes in order of arrival. A lone
 * write runs at once. Returns the outcomes by index, at least that of the first write, because a long set ends when its
 * time is over. `onStart` is called when the set starts.
 */
function writeStretch(
  context: Context,
  writes: readonly IndexedWrite[],
  options: WriteOptions & { onStart?: () => void },
): Promise<ReadonlyMap<number, KeyedOutcome>> {
  const { db, organization_id } = context
  if (db.outer) return runSet(context, writes, options)
  const name = `${organization_id}`
  const queues = writeQueues(db)
  const queue = queues.get(name) ?? registerQueue(queues, name, createWriteQueue(context, options.limits))
  const bytes = writes.reduce((sum, { write }) => sum + write.bytes, 0)
  const stretch: Stretch = { writes, outcomes: new Map(), onStart: options.onStart }
  return queue.add({ item: stretch, count: writes.length, bytes, signal: options.signal })
}

function createWriteQueue(context: Context, limits: WriteLimits): Queue<Stretch, ReadonlyMap<number, KeyedOutcome>> {
  const mayGoOn = () => {
    const startedMs = performance.now()
    return () => performance.now() - startedMs < (queue.waiting > 0 ? maxSetMs.waitedFor : maxSetMs.alone)
  }
  const queue: Queue<Stretch, ReadonlyMap<number, KeyedOutcome>> = new Queue({
    run: (stretches, signal) => {
      const isLong = stretches.length === 1 && stretches[0]!.writes.length > maxItems.write
      return runStretches(context, stretches, { limits, signal, mayGoOn: isLong ? mayGoOn() : undefined })
    },
    itemsLimit: maxItems.write,
    bytesLimit,
    rollsBackOnAbort: true,
    maxSettledPerTurn,
    watch: watch('write', context.db),
  })
  return queue
}

/** Runs stretches as one set. */
async function runStretches(
  context: Context,
  stretches: readonly Stretch[],
  options: SetOptions,
): Promise<Result<ReadonlyMap<number, KeyedOutcome>>[]> {
  const places: { stretch: Stretch; item: IndexedWrite }[] = []
  for (const stretch of stretches) {
    stretch.onStart?.()
    for (const item of stretch.writes) if (!stretch.outcomes.has(item.index)) places.push({ stretch, item })
  }
  const ran = await runSet(context, indexed(places.map(({ item }) => item.write)), options)
  const errors = new Map<Stretch, unknown>()
  for (const [index, { stretch, item }] of places.entries()) {
    const outcome = ran.get(index)
    if (!outcome) continue
    const isCancelled = 'error' in outcome && options.signal?.aborted && !isUnavailable(outcome.error)
    if (isCancelled) errors.set(stretch, outcome.error)
    else stretch.outcomes.set(item.index, outcome)
  }
  return stretches.map(stretch =>
    errors.has(stretch) ? { error: errors.get(stretch), again: true } : { outcome: stretch.outcomes },
  )
}

/**
 * Reads the members of an entity that the caller's role may read, with links by internal identifier if `isById`.
 * Concurrent reads of a stack share a statement, even if their callers have different roles.
 */
export async function readQueued(
  context: Context,
  stack_id: number,
  { address, isById, rights }: { address: Address; isById: boolean; rights: FieldRights | undefined },
  signal: Signal,
): Promise<SerializedEntity | undefined> {
  const { db, organization_id } = context
  const by = 'id' in address ? 'id' : 'external_id'
  const item = 'id' in address ? address.id : address.external_id
  const name = `${organization_id} ${stack_id} ${by} ${isById}`
  const queues = readQueues(db)
  const queue = queues.get(name) ?? registerQueue(queues, name, createReadQueue(context, stack_id, { by, isById }))
  const read = await queue.add({ item, signal })
  return read && serialize(read, stack_id, { isById, rights })
}

function createReadQueue(
  context: Context,
  stack_id: number,
  form: { by: Identifiers['by']; isById: boolean },
): Queue<string, ReadRow | undefined> {
  const run = async (identifiers: string[], signal: Signal): Promise<Result<ReadRow | undefined>[]> => {
    const selection = { ...form, identifiers, maxRowBytes: maxBatchedRowBytes }
    const entities = await readRows(context, stack_id, selection, signal)
    const found = new Map(entities.map(entity => [entity.identifier, entity]))
    return identifiers.map(identifier => ({ outcome: found.get(identifier) }))
  }
  return new Queue({
    run,
    itemsLimit: maxItems.read,
    bytesLimit,
    secondFrom: secondReadFrom,
    rollsBackOnAbort: false,
    watch: watch('read', context.db),
  })
}
