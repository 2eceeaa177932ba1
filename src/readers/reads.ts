import type { CellPool, Home } from '../cells/cell-pool.ts'
import type { DatabasePool } from '../db/db.ts'
import { isDeadlock, isReadOnly, isUnavailable } from '../db/pg-errors.ts'
import { NotArrived, refuse } from '../errors.ts'
import type { Fallback, Observer } from '../observer.ts'
import type { Signal } from '../signal.ts'
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
export type ReadWork<T> = (db: DatabasePool, isReader: boolean) => Promise<T>

/** Where the reads of this process go. */
export type Reads = {
  /** Whether this process only reads: the one database it has is a standby. */
  isReader: boolean
  /** Whether a read without If-Sequence runs on the primary without further ado. */
  isPlain(read: { prefersReader: boolean }): boolean
  run<T>(read: Read, work: ReadWork<T>): Promise<T>
  /** The state at the last look, at most some seconds ago, of the standby; of several, of one that is not ready. Undefined without one. */
  standby(): StandbyState | undefined
}

/** The reads of a process whose only database is the primary. */
export function readsOfPrimary(db: CellPool): Reads {
  const sequences = new WeakMap<DatabasePool, Sequences>()
  const sequencesIn = (cell: DatabasePool) => {
    const known = sequences.get(cell) ?? new Sequences(cell)
    sequences.set(cell, known)
    return known
  }
  return {
    isReader: false,
    isPlain: () => true,
    run: async ({ organization_id, sequence, signal }, work) => {
      if (sequence !== undefined) {
        const cell = (await db.directory?.locate(organization_id, signal))?.db ?? db
        await sequencesIn(cell).reach(organization_id, sequence, 0, signal)
      }
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

/** A standby of a cell that answers reads. */
export type Standby = { db: DatabasePool; watch: StandbyWatch; sequences: Sequences }

type BothOptions = {
  primary: CellPool
  /** The standbys, by the pools of their cells. A cell may have none. */
  standbys: ReadonlyMap<DatabasePool, Standby>
  observer: Observer
}

/**
 * The reads of a process with a primary and a standby, or several of each. Those that prefer the reader, and those with a number that the
 * standby reaches in time, run on the standby of the organization's cell. The primary answers what the standby cannot.
 */
export function readsOfBoth({ primary, standbys, observer }: BothOptions): Reads {
  const onPrimary = readsOfPrimary(primary)
  const watches = [...standbys.values()].map(({ watch }) => watch)
  return {
    isReader: false,
    isPlain: ({ prefersReader }) => !prefersReader,
    run: async (read, work) => {
      const { organization_id, sequence, prefersReader, signal } = read
      if (!prefersReader && sequence === undefined) return onPrimary.run(read, work)
      const home = (await primary.directory?.locate(organization_id, signal)) ?? { db: primary, moves: 0 }
      const standby = standbys.get(home.db)
      if (!standby) return onPrimary.run(read, work)
      let fallback = unusable(standby, sequence)
      if (fallback === undefined)
        try {
          await reach(standby, read, home)
          return await work(standby.db, true)
        } catch (error) {
          fallback = fallbackOf(error)
          if (fallback === undefined || signal.aborted) throw error
        }
      observer.readFellBack(fallback)
      return onPrimary.run(read, work)
    },
    standby: () => (watches.find(({ state }) => state.condition !== 'ready') ?? watches[0])?.state,
  }
}

/** Why the standby is not asked; undefined if it is. */
function unusable({ watch }: Standby, sequence: number | undefined): Fallback | undefined {
  const { condition, lagSeconds = 0 } = watch.state
  if (condition !== 'ready') return condition
  return sequence !== undefined && lagSeconds > maxAwaitedLagSeconds ? 'sequence' : undefined
}

/** Resolves when the standby shows the change that the read names, and the organization, which may have moved to the cell just now. */
async function reach({ sequences }: Standby, { organization_id, sequence, signal }: Read, { moves }: Home) {
  if (sequence !== undefined) await sequences.reach(organization_id, sequence, patienceMs, signal)
  else if (moves > 0) await sequences.reach(organization_id, 0, 0, signal)
}

/** Why the primary can do what failed on the standby; undefined if it cannot. */
function fallbackOf(error: unknown): Fallback | undefined {
  if (error instanceof NotArrived) return 'sequence'
  if (isReadOnly(error)) return 'write'
  if (isDeadlock(error)) return 'conflict'
  return isUnavailable(error) ? 'away' : undefined
}
