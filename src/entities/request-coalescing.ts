import { Queue, type QueueOptions, type Result } from '../db/coalesce.ts'
import { type Database, rootOf } from '../db/db.ts'
import { isLockTimeout, isUnavailable } from '../db/pg-errors.ts'
import type { Work } from '../observer.ts'
import type { Signal } from '../signal.ts'
import { besideOctets, readSerialized, type SerializedEntity } from './entity-reader.ts'
import { nameKey, nameTaken } from './plan-write.ts'
import type { Address, Outcome, Write } from './write-request.ts'
import { type WriteLimits, writeEntities } from './write-sets.ts'

const itemsLimit = 256
const bytesLimit = 1_048_576
const maxSettledPerTurn = 8

/**
 * While Node writes the answers of one batch, or decides it, PostgreSQL is at the other. With 64 clients that gives a sixth more
 * reads a second; from 16 it gave less, from 32 as well. Of writes, which end at one head, a sixth to a quarter more.
 */
const secondFrom = { read: 24, write: 20 }

type Queues<I, O> = Map<string, Queue<I, O>>
type Settled = Exclude<Outcome, { error: unknown }>

/** Of one database: what waits to be written, by organization, and to be read, by organization, stack and identifier. */
const writing = new WeakMap<Database, Queues<Write, Settled>>()
const reading = new WeakMap<Database, Queues<string, SerializedEntity | undefined>>()

/** Queues are made again in no time: those that nobody is in do not pile up. */
function keepQueue<I, O>(
  all: WeakMap<Database, Queues<I, O>>,
  db: Database,
  name: string,
  queue: Queue<I, O>,
): Queue<I, O> {
  const queues = all.get(rootOf(db)) ?? new Map<string, Queue<I, O>>()
  all.set(rootOf(db), queues)
  if (queues.size >= 1_000) for (const [other, queue] of queues) if (queue.idle) queues.delete(other)
  queues.set(name, queue)
  return queue
}

const watch =
  (work: Work, { observer }: Database): QueueOptions<unknown, unknown>['watch'] =>
  (arrived, signal) =>
    observer?.batch(work, arrived, signal)

/** How many wait for the next batch of this database, in all of its queues. */
export function queueLengths(db: Database): Record<Work, number> {
  const lengthOf = (queues: Queues<never, never> | undefined) =>
    [...(queues?.values() ?? [])].reduce((sum, { waiting }) => sum + waiting, 0)
  return { read: lengthOf(reading.get(db) as never), write: lengthOf(writing.get(db) as never) }
}

/**
 * Writes one entity. Writes of an organization that come at the same time share sets; renames and deletions, which
 * conflict with many, run apart from them. Rejects with the fault of the machinery, or the signal's reason.
 */
export function writeQueued(
  db: Database,
  organization_id: number,
  write: Write,
  { limits, signal }: { limits: WriteLimits; signal?: Signal | undefined },
): Promise<Settled> {
  if (db.outer) return writeAlone(db, organization_id, write, { limits, signal })
  const name = `${organization_id}`
  const queue =
    writing.get(rootOf(db))?.get(name) ?? keepQueue(writing, db, name, newWriting(db, organization_id, limits))
  const { bytes } = write
  if (write.operation === 'delete' || nameTaken(write) || write.body.external_id === null)
    return queue.addAlone({ item: write, bytes, signal })
  return queue.add({ item: write, key: keyOf(write), bytes, signal })
}

function newWriting(db: Database, organization_id: number, limits: WriteLimits): Queue<Write, Settled> {
  const run = async (writes: Write[], signal: Signal): Promise<Result<Settled>[]> => {
    const outcomes = await writeEntities(db, organization_id, writes, { limits, signal, halves: false })
    return outcomes.map(outcome =>
      'error' in outcome
        ? { error: outcome.error, again: isWorthAgain(outcome.error, writes.length, signal) }
        : { outcome },
    )
  }
  return new Queue({
    run,
    itemsLimit,
    bytesLimit,
    secondFrom: secondFrom.write,
    rollsBackOnAbort: true,
    maxSettledPerTurn,
    watch: watch('write', db),
  })
}

/** Within a transaction of the request's own: nobody else's fate hangs on it. */
async function writeAlone(
  db: Database,
  organization_id: number,
  write: Write,
  options: { limits: WriteLimits; signal?: Signal | undefined },
): Promise<Settled> {
  const [outcome] = await writeEntities(db, organization_id, [write], options)
  if ('error' in outcome!) throw outcome.error
  return outcome!
}

/** A lock comes free some time; any other error may be a neighbour's. Whatever may have been committed is not run again. */
function isWorthAgain(error: unknown, count: number, signal: Signal): boolean {
  return !isUnavailable(error) && (isLockTimeout(error) || signal.aborted || count > 1)
}

function keyOf({ stack_id, address }: Write): string | undefined {
  if (!address) return undefined
  return 'id' in address ? address.id : nameKey({ stack_id, external_id: address.external_id })
}

/** Reads one entity of a stack. Reads of a stack that come at the same time share a statement. */
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
    reading.get(rootOf(db))?.get(name) ?? keepQueue(reading, db, name, newReading(db, organization_id, stack_id, by))
  return queue.add({ item, signal })
}

function newReading(
  db: Database,
  organization_id: number,
  stack_id: number,
  by: 'id' | 'external_id',
): Queue<string, SerializedEntity | undefined> {
  const run = async (identifiers: string[], signal: Signal): Promise<Result<SerializedEntity | undefined>[]> => {
    const those = { by, identifiers, rowOctets: besideOctets }
    const shown = await readSerialized(db, organization_id, stack_id, those, signal)
    const found = new Map(shown.map(each => [each.identifier, each]))
    return identifiers.map(identifier => ({ outcome: found.get(identifier) }))
  }
  return new Queue({
    run,
    itemsLimit,
    bytesLimit,
    secondFrom: secondFrom.read,
    rollsBackOnAbort: false,
    watch: watch('read', db),
  })
}
