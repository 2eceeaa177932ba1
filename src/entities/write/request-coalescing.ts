import { Queue, type QueueOptions, type Result } from '../../db/coalesce.ts'
import { type Database, rootOf } from '../../db/db.ts'
import { runsAgainApart } from '../../db/retry-policy.ts'
import type { Work } from '../../observer.ts'
import type { Signal } from '../../signal.ts'
import { maxBatchedRowBytes, readSerialized, type SerializedEntity } from '../read/entity-reader.ts'
import type { Address, Outcome, Write } from '../write-request.ts'
import { planMatch } from './match-plan.ts'
import { addressKey, releasesName } from './plan-write.ts'
import { type WriteLimits, writeEntities } from './write-sets.ts'

// A write of a few bytes may lock a row of 512 KiB. With sets of 256, 256 such writes took up to 420 MiB; with 64, 350 MiB.
const maxItems = { read: 256, write: 64 }
const bytesLimit = 1_048_576
const maxSettledPerTurn = 8

/**
 * Number of waiting items at which a second batch starts. Node then decides or answers one batch while PostgreSQL works
 * on the other. With 64 clients, that gives a sixth more reads per second. Thresholds of 16 and 32 gave less. Writes
 * gain a sixth to a quarter, although all of them lock the same head.
 */
const secondFrom = { read: 24, write: 20 }

type Queues<I, O> = Map<string, Queue<I, O>>
type CompletedOutcome = Exclude<Outcome, { error: unknown }>

/** The queues of each database: writes by organization; reads by organization, stack and kind of identifier. */
const writeQueues = new WeakMap<Database, Queues<Write, CompletedOutcome>>()
const readQueues = new WeakMap<Database, Queues<string, SerializedEntity | undefined>>()

/** Registers a queue. Beyond 1,000 queues, idle ones are removed; creating a queue is cheap. */
function registerQueue<I, O>(
  byDatabase: WeakMap<Database, Queues<I, O>>,
  db: Database,
  name: string,
  queue: Queue<I, O>,
): Queue<I, O> {
  const queues = byDatabase.get(rootOf(db)) ?? new Map<string, Queue<I, O>>()
  byDatabase.set(rootOf(db), queues)
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
  const lengthOf = (queues: Queues<never, never> | undefined) =>
    [...(queues?.values() ?? [])].reduce((sum, { waiting }) => sum + waiting, 0)
  return { read: lengthOf(readQueues.get(db) as never), write: lengthOf(writeQueues.get(db) as never) }
}

/**
 * Writes one entity. Concurrent writes of an organization share sets. Renames, deletions and restores run separately,
 * because they conflict with many writes. Rejects with the error if the write fails, or with the signal's reason.
 */
export function writeQueued(
  db: Database,
  organization_id: number,
  write: Write,
  { limits, signal }: { limits: WriteLimits; signal?: Signal | undefined },
): Promise<CompletedOutcome> {
  if (db.outer) return writeAlone(db, organization_id, write, { limits, signal })
  const name = `${organization_id}`
  const queue =
    writeQueues.get(rootOf(db))?.get(name) ??
    registerQueue(writeQueues, db, name, createWriteQueue(db, organization_id, limits))
  const { bytes } = write
  if (releasesName(write) || write.operation === 'restore') return queue.addAlone({ item: write, bytes, signal })
  return queue.add({ item: write, key: keyOf(write), bytes, signal })
}

/** Writes with the same key run one after the other. */
const keyOf = (write: Write) => (write.match && planMatch(write.match, write.body).names[0]) ?? addressKey(write)

function createWriteQueue(db: Database, organization_id: number, limits: WriteLimits): Queue<Write, CompletedOutcome> {
  const run = async (writes: Write[], signal: Signal): Promise<Result<CompletedOutcome>[]> => {
    const outcomes = await writeEntities(db, organization_id, writes, { limits, signal, apart: false })
    return outcomes.map(outcome =>
      'error' in outcome
        ? { error: outcome.error, again: runsAgainApart(outcome.error, writes.length, signal) }
        : { outcome },
    )
  }
  return new Queue({
    run,
    itemsLimit: maxItems.write,
    bytesLimit,
    secondFrom: secondFrom.write,
    rollsBackOnAbort: true,
    maxSettledPerTurn,
    watch: watch('write', db),
  })
}

/** Writes in the request's own transaction, which no other request shares. */
async function writeAlone(
  db: Database,
  organization_id: number,
  write: Write,
  options: { limits: WriteLimits; signal?: Signal | undefined },
): Promise<CompletedOutcome> {
  const [outcome] = await writeEntities(db, organization_id, [write], options)
  if ('error' in outcome!) throw outcome.error
  return outcome!
}

/** Reads one entity of a stack. Concurrent reads of a stack share a statement. */
export function readQueued(
  db: Database,
  organization_id: number,
  stack_id: number,
  address: Address,
  signal: Signal,
): Promise<SerializedEntity | undefined> {
  const by = 'id' in address ? 'id' : 'external_id'
  const item = 'id' in address ? address.id : address.external_id
  const name = `${organization_id} ${stack_id} ${by}`
  const queue =
    readQueues.get(rootOf(db))?.get(name) ??
    registerQueue(readQueues, db, name, createReadQueue(db, organization_id, stack_id, by))
  return queue.add({ item, signal })
}

function createReadQueue(
  db: Database,
  organization_id: number,
  stack_id: number,
  by: 'id' | 'external_id',
): Queue<string, SerializedEntity | undefined> {
  const run = async (identifiers: string[], signal: Signal): Promise<Result<SerializedEntity | undefined>[]> => {
    const selection = { by, identifiers, maxRowBytes: maxBatchedRowBytes }
    const entities = await readSerialized(db, organization_id, stack_id, selection, signal)
    const found = new Map(entities.map(entity => [entity.identifier, entity]))
    return identifiers.map(identifier => ({ outcome: found.get(identifier) }))
  }
  return new Queue({
    run,
    itemsLimit: maxItems.read,
    bytesLimit,
    secondFrom: secondFrom.read,
    rollsBackOnAbort: false,
    watch: watch('read', db),
  })
}
