import { statement } from '../db/db.ts'
import type { Cell } from './cell-pool.ts'

export type CellState = 'ready' | 'read_only' | 'away'

/** A cell that answers later than this is away. */
const patienceMs = 1_000

const readCellStateSql = statement(
  'read_cell_state',
  `select current_setting('transaction_read_only')::boolean as read_only`,
)

/** The state of each cell by its name, within a second. */
export async function readCellStates(cells: readonly Cell[]): Promise<Record<string, CellState>> {
  const states = await Promise.all(cells.map(async cell => [cell.name, await readCellState(cell)] as const))
  return Object.fromEntries(states)
}

async function readCellState({ db, isOpen }: Cell): Promise<CellState> {
  if (!isOpen) return 'away'
  const patience = Promise.withResolvers<CellState>()
  const timer = setTimeout(() => patience.resolve('away'), patienceMs)
  const reading = db.query<{ read_only: boolean }>(readCellStateSql, [], AbortSignal.timeout(patienceMs)).then(
    ([row]): CellState => (row?.read_only ? 'read_only' : 'ready'),
    (): CellState => 'away',
  )
  return Promise.race([reading, patience.promise]).finally(() => clearTimeout(timer))
}
