import type { Fallback, Observer } from '../../process/observer.ts'
import type { Signal } from '../../process/signal.ts'
import { NotArrived, refuse } from '../../values/errors.ts'
import type { DatabasePool } from '../db.ts'
import { isDeadlock, isReadOnly, isUnavailable } from '../pg-errors.ts'
import { Sequences } from './sequences.ts'
import type { StandbyState, StandbyWatch } from './standby.ts'

/** The maximum wait of a read for a change that the standby has not replayed yet. */
const patienceMs = 1_000
/** With a lag beyond this, a wait would be too long, so the primary answers at once. */
const maxAwaitedLagSeconds = 2

/** A read: its organization, the change that it must show, if any, and whether it prefers the reader. */
export type Read = {
  organization_id: number
  sequence: number | undefined
  prefersReader: boolean
  signal: Signal
}

/** Runs a read on a database. With `isReader`, its data may be older than those of the primary. */
type ReadWork<T> = (db: DatabasePool, isReader: boolean) => Promise<T>

/** Selects the database for the reads of this process. */
export type Reads = {
  /** Whether this process only reads, because its only database is a standby. */
  isReader: boolean
  /** Whether a read without If-Sequence always runs on the primary. */
  isPlain(read: { prefersReader: boolean }): boolean
  run<T>(read: Read, work: ReadWork<T>): Promise<T>
  /** The last observed state of the standby, some seconds old at most. Undefined without a standby. */
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

/**
 * The reads of a process with KITH_ROLE=reader. A read that conflicts with the replay of the standby runs a second
 * time.
 */
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

/** Some reads first store something, such as the index of the field that sorts a page. */
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
 * The reads of a process with DATABASE_URL and DATABASE_READ_URL. A read runs on the standby if it prefers the reader,
 * or has a number that the standby reaches in time. The primary answers the other reads.
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

/** The reason why the standby is not used, or undefined if it is. */
function unusable({ state }: StandbyWatch, sequence: number | undefined): Fallback | undefined {
  const { condition, lagSeconds = 0 } = state
  if (condition !== 'ready') return condition
  return sequence !== undefined && lagSeconds > maxAwaitedLagSeconds ? 'sequence' : undefined
}

/** The reason why the primary can do a read that failed on the standby, if it can. */
function fallbackOf(error: unknown): Fallback | undefined {
  if (error instanceof NotArrived) return 'sequence'
  if (isReadOnly(error)) return 'write'
  if (isDeadlock(error)) return 'conflict'
  return isUnavailable(error) ? 'away' : undefined
}
