import { Queue, type QueueOptions, type Result } from '../db/coalesce.ts'
import type { Database } from '../db/db.ts'
import { isLockTimeout, isUnavailable } from '../db/pg-errors.ts'
import type { Work } from '../observer.ts'
import { nameKey, nameTaken } from './plan.ts'
import { type WriteLimits, writeEntities } from './sets.ts'
import { readShown, type Shown } from './shown.ts'
import type { Address, Outcome, Write } from './write.ts'

const items_limit = 256
const bytes_limit = 1_048_576
const told_at_once = 8

type Queues<I, O> = Map<string, Queue<I, O>>
type Settled = Exclude<Outcome, { error: unknown }>

/** Of one database: what waits to be written, by organization, and to be read, by organization, stack and identifier. */
const writing = new WeakMap<Database, Queues<Write, Settled>>()
const reading = new WeakMap<Database, Queues<string, Shown | undefined>>()

function queueOf<I, O>(
  all: WeakMap<Database, Queues<I, O>>,
  db: Database,
  name: string,
  make: () => Queue<I, O>,
): Queue<I, O> {
  const queues = all.get(db) ?? new Map<string, Queue<I, O>>()
  all.set(db, queues)
  const known = queues.get(name)
  if (known) return known
  // Queues are made again in no time: those that nobody is in do not pile up.
  if (queues.size >= 1_000) for (const [other, queue] of queues) if (queue.idle) queues.delete(other)
  const made = make()
  queues.set(name, made)
  return made
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
  { limits, signal }: { limits: WriteLimits; signal?: AbortSignal | undefined },
): Promise<Settled> {
  if (db.outer) return writeAlone(db, organization_id, write, { limits, signal })
  const run = async (writes: Write[], signal: AbortSignal): Promise<Result<Settled>[]> => {
    const outcomes = await writeEntities(db, organization_id, writes, { limits, signal, halves: false })
    return outcomes.map(outcome =>
      'error' in outcome
        ? { error: outcome.error, again: isWorthAgain(outcome.error, writes.length, signal) }
        : { outcome },
    )
  }
  const make = () => new Queue({ run, items_limit, bytes_limit, undone: true, told_at_once, watch: watch('write', db) })
  const queue = queueOf(writing, db, `${organization_id}`, make)
  const { bytes } = write
  if (write.operation === 'delete' || nameTaken(write) || write.body.external_id === null)
    return queue.addApart({ item: write, bytes, signal })
  return queue.add({ item: write, key: keyOf(write), bytes, signal })
}

/** Within a transaction of the request's own: nobody else's fate hangs on it. */
async function writeAlone(
  db: Database,
  organization_id: number,
  write: Write,
  options: { limits: WriteLimits; signal?: AbortSignal | undefined },
): Promise<Settled> {
  const [outcome] = await writeEntities(db, organization_id, [write], options)
  if ('error' in outcome!) throw outcome.error
  return outcome!
}

/** A lock comes free some time; any other error may be a neighbour's. Whatever may have been committed is not run again. */
function isWorthAgain(error: unknown, count: number, signal: AbortSignal): boolean {
  return !isUnavailable(error) && (isLockTimeout(error) || signal.aborted || count > 1)
}

function keyOf({ stack_id, address }: Write): string | undefined {
  if (!address) return undefined
  return 'id' in address ? address.id : nameKey({ stack_id, external_id: address.external_id })
}

/** Reads one entity of a stack. Reads of a stack that come at the same time share a statement. */
export async function readQueued(
  db: Database,
  organization_id: number,
  stack_id: number,
  address: Address,
  signal: AbortSignal,
): Promise<Shown | undefined> {
  const [by, item] = 'id' in address ? (['id', address.id] as const) : (['external_id', address.external_id] as const)
  const run = async (identifiers: string[], signal: AbortSignal): Promise<Result<Shown | undefined>[]> => {
    const shown = await readShown(db, organization_id, stack_id, by, identifiers, signal)
    const found = new Map(shown.map(each => [each.identifier, each]))
    return identifiers.map(identifier => ({ outcome: found.get(identifier) }))
  }
  const make = () => new Queue({ run, items_limit, bytes_limit, undone: false, watch: watch('read', db) })
  return queueOf(reading, db, `${organization_id} ${stack_id} ${by}`, make).add({ item, signal })
}
