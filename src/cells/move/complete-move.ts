import { type Background, repeat } from '../../background.ts'
import type { Database, Transaction } from '../../db/db.ts'
import type { Placement } from '../../organizations/organizations.ts'
import type { Cell } from '../cell-pool.ts'
import {
  finishMoveSql,
  freeFollowersSql,
  insertMovedFollowersSql,
  insertMovedHeadSql,
  insertMovedSql,
  listMovingSql,
  lockDirectoryRowSql,
  readFrozenSql,
} from '../sql.ts'

type Frozen = { moved_to: string; head: string; followers: string[] }

type DirectoryRow = { key: string; created_at: string }

/**
 * Completes a move that is decided: copies the last rows to the new cell, which has all others, and changes the directory. Doing it twice,
 * or in two processes, changes nothing. Returns whether the move was decided.
 */
export async function completeMove(
  first: Database,
  { id, cell, moves }: Placement,
  source: Database,
  target: { name: string; db: Database },
): Promise<boolean> {
  const [frozen] = await source.query<Frozen>(readFrozenSql, [id])
  if (frozen?.moved_to !== target.name) return false
  await first.transaction(async tx => {
    // Under the lock of this row, no other process completes the move, and none completes an earlier one late.
    const [row] = await tx.query<DirectoryRow>(lockDirectoryRowSql, [id, cell, moves])
    if (!row) return
    const insert = (inTarget: Transaction) => insertLastRows(inTarget, id, row, frozen, target.name)
    await (target.db === first ? insert(tx) : target.db.transaction(insert))
    await tx.query(finishMoveSql, [id, target.name])
  })
  return true
}

async function insertLastRows(
  tx: Transaction,
  id: number,
  { key, created_at }: DirectoryRow,
  { head, followers }: Frozen,
  cell: string,
): Promise<void> {
  // The head of an organization that has arrived has changed since.
  if ((await tx.query(insertMovedHeadSql, [id, [head]])).length === 0) return
  await tx.query(insertMovedSql, [id, key, created_at, cell])
  await tx.query(insertMovedFollowersSql, [id, followers])
  await tx.query(freeFollowersSql, [id])
}

const intervalMs = 1_000

/** Completes moves whose command died after the decision. Without further cells there is nothing to do. */
export function startCompletingMoves(cells: readonly Cell[], report: (error: unknown) => void): Background[] {
  if (cells.length === 1) return []
  const first = cells[0]!.db
  const find = (name: string | null) => cells.find(cell => cell.name === name && cell.isOpen)
  const completeAll = async () => {
    for (const placement of await first.query<Placement>(listMovingSql, [])) {
      const [source, target] = [find(placement.cell), find(placement.moving_to)]
      if (source && target) await completeMove(first, placement, source.db, target)
    }
  }
  return [repeat(completeAll, intervalMs, report)]
}
