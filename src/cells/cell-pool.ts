import type { Database, DatabasePool } from '../db/db.ts'
import { refuse } from '../errors.ts'
import type { Placement } from '../organizations/organizations.ts'
import type { Signal } from '../signal.ts'
import { readPlacementSql } from './sql.ts'

/** A cell: one database with the rows of its organizations. */
export type Cell = {
  name: string
  db: DatabasePool
  /** Whether the database is known to be this cell, with the tables of this version. Its organizations are refused before. */
  isOpen: boolean
}

/** Where organizations live. The table `organizations` of the first cell decides. */
export type Directory = {
  /** Remembers the cell of an organization, as just read from the first cell. */
  learn(placement: Placement): void
  /** Where the organization lives. Reads the directory unless it was read in the last few seconds. Throws as `shareOf`. */
  locate(organization_id: number, signal?: Signal): Promise<Home>
  /** All cells, the first one first. */
  cells: readonly Cell[]
}

/** The pool of an organization's cell, and how often the organization has moved to another one. */
export type Home = { db: DatabasePool; moves: number }

/**
 * The databases of all cells, used as one. Statements outside of a share run in the first cell, which holds what is global: the directory,
 * clients, signing keys and rate limits. `shareOf` returns a share in the organization's own cell. It throws a Fault of 503
 * while that cell is not open. `directory` is absent if there is one cell.
 */
export type CellPool = DatabasePool & { directory?: Directory }

/** The global database of the service, with its directory if there are several cells. */
export type GlobalDatabase = Database & Pick<CellPool, 'directory'>

/** The pool of the first cell, which holds what is global. */
export const firstCellOf = (pool: CellPool): DatabasePool => (pool.directory ? pool.directory.cells[0]!.db : pool)

/** `learnedAtMs` is on the monotonic clock. */
type Known = { placement: Placement; learnedAtMs: number }

/** A request without a token reads the directory again when it was read longer ago than this. */
const placementMs = 5_000

/** Makes one pool of several. A single cell is returned as it is. */
export function createCellPool(cells: readonly Cell[]): CellPool {
  const first = cells[0]!.db
  if (cells.length === 1) return first
  const byName = new Map(cells.map(cell => [cell.name, cell]))
  const placements = new Map<number, Known>()

  function poolOf(name: string): DatabasePool {
    const cell = byName.get(name)
    return cell?.isOpen ? cell.db : throwCellAway()
  }

  const homeOf = ({ cell, moves }: Placement): Home => ({ db: poolOf(cell), moves })

  const directory: Directory = {
    cells,
    learn: placement => {
      const known = placements.get(placement.id)
      // An answer that was read before the organization moved may arrive after one that was read since.
      if (known && known.placement.moves > placement.moves) return
      placements.set(placement.id, { placement, learnedAtMs: performance.now() })
    },
    locate: async (organization_id, signal) => {
      const known = placements.get(organization_id)
      const isNew = known?.placement.moving_to === null && performance.now() - known.learnedAtMs < placementMs
      if (isNew) return homeOf(known.placement)
      const [row] = await first.query<Placement>(readPlacementSql, [organization_id], signal)
      // The first cell has no rows of an organization that does not exist.
      if (!row) return { db: first, moves: 0 }
      directory.learn(row)
      return homeOf(row)
    },
  }

  return {
    ...first,
    root: first,
    directory,
    shareOf: (organization_id, lane) => {
      const known = placements.get(organization_id)
      if (!known) throw new Error(`nobody has read in which cell organization ${organization_id} lives`)
      return poolOf(known.placement.cell).shareOf(organization_id, lane)
    },
    close: async () => {
      await Promise.all(cells.map(({ db }) => db.close()))
    },
  }
}

/** Throws the Fault of 503 for an organization whose cell cannot be used. */
export function throwCellAway(): never {
  return refuse('operation_failed', 'The database of the organization cannot be reached at the moment.', {
    status: 503,
    headers: { 'Retry-After': '1' },
  })
}
