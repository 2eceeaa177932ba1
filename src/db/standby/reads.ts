import type { Fallback, Observer } from '../../process/observer.ts'
import type { Signal } from '../../process/signal.ts'
import { NotArrived, refuse } from '../../values/errors.ts'
import type { DatabasePool } from '../db.ts'
import { isDeadlock, isReadOnly, isUnavailable } from '../pg-errors.ts'
import { Sequences } from './sequences.ts'
import type { StandbyState, StandbyWatch } from './standby.ts'

/** How long a read waits for a change that the standby has not replayed yet. */
const patienceMs = 1_000
/** With a lag beyond this, waiting is in vain, and the primary answers at once. */
const maxAwaitedLagSeconds = 2

/** A read: its organization, the change that it must show, if there is one, and whether it prefers the reader. */
export type Read = {
  organization_id: number
  sequence: number | undefined
  prefersReader: boolean
  signal: Signal
}

/** Runs a read on a database. `isReader` says that it is one whose data may be older than those of the primary. */
type ReadWork<T> = (db: DatabasePool, isReader: boolean) => Promise<T>

/** Where the reads of this process go. */
export type Reads = {
  /** Whether this process only reads: the one database it has is a standby. */
  isReader: boolean
  /** Whether a read without If-Sequence runs on the primary without further ado. */
  isPlain(read: { prefersReader: boolean }): boolean
  run<T>(read: Read, work: ReadWork<T>): Promise<T>
  /** The state of the standby at the last look, at most some seconds ago. Undefined without one. */
  standby(): StandbyState | undefined
}

/** The reads of a process whose only database is the primary. */
export function readsOfPrimary(db: DatabasePool): Reads {
  const sequences = new Sequences(db)
  return {
    isReader: false,
    isPlain: () => true,
    run: async ({ organization_id, sequence, signal }, work) => {
      if (sequence !== undefined) await sequences.reach(organization_id, sequence, 0, signal)
      return work(db, false)
    },
    standby: () => undefined,
  }
}

/** The reads of a process with KITH_ROLE=reader. A read that conflicts with the replay of the standby runs a second time. */
export function readsOfReader(db: DatabasePool, watch: StandbyWatch): Reads {
  const sequences = new Sequences(db)
  return {
    isReader: true,
    isPlain: () => false,
    run: async ({ organization_id, sequence, signal }, work) => {
      if (sequence !== undefined) await sequences.reach(organization_id, sequence, patienceMs, signal)
      const attempt = () => work(db, true)
      try {
        return await attempt().catch(error => {
          if (!isDeadlock(error) || signal.aborted) throw error
          return attempt()
        })
      } catch (error) {
        if (isReadOnly(error)) throwNeedsPrimary()
        throw error
      }
    },
    standby: () => watch.state,
  }
}

/** Some reads store something first, such as the index of the field that a page is sorted by. */
function throwNeedsPrimary(): never {
  refuse(
    'operation_failed',
    'This request has to store something first, such as the index of its order, and a reader stores nothing. Send it once to a process with the role primary.',
    { status: 503 },
  )
}

type BothOptions = {
  primary: DatabasePool
  reader: DatabasePool
  watch: StandbyWatch
  observer: Observer
}

/**
 * The reads of a process with DATABASE_URL and DATABASE_READ_URL. Those that prefer the reader, and those with a number that the standby
 * reaches in time, run on the standby. The primary answers what the standby cannot.
 */
export function readsOfBoth({ primary, reader, watch, observer }: BothOptions): Reads {
  const onPrimary = readsOfPrimary(primary)
  const sequences = new Sequences(reader)
  return {
    isReader: false,
    isPlain: ({ prefersReader }) => !prefersReader,
    run: async (read, work) => {
      const { organization_id, sequence, prefersReader, signal } = read
      if (!prefersReader && sequence === undefined) return onPrimary.run(read, work)
      let fallback = unusable(watch, sequence)
      if (fallback === undefined)
        try {
          if (sequence !== undefined) await sequences.reach(organization_id, sequence, patienceMs, signal)
          return await work(reader, true)
        } catch (error) {
          fallback = fallbackOf(error)
          if (fallback === undefined || signal.aborted) throw error
        }
      observer.readFellBack(fallback)
      return onPrimary.run(read, work)
    },
    standby: () => watch.state,
  }
}

/** Why the standby is not asked; undefined if it is. */
function unusable({ state }: StandbyWatch, sequence: number | undefined): Fallback | undefined {
  const { condition, lagSeconds = 0 } = state
  if (condition !== 'ready') return condition
  return sequence !== undefined && lagSeconds > maxAwaitedLagSeconds ? 'sequence' : undefined
}

/** Why the primary can do what failed on the standby; undefined if it cannot. */
function fallbackOf(error: unknown): Fallback | undefined {
  if (error instanceof NotArrived) return 'sequence'
  if (isReadOnly(error)) return 'write'
  if (isDeadlock(error)) return 'conflict'
  return isUnavailable(error) ? 'away' : undefined
}
