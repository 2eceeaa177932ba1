import { type Readiness, readReadiness } from '../db/readiness.ts'
import type { Cell } from './cell-pool.ts'

export type CellState = Readiness | 'away'

/** A cell that answers later than this is away. */
const patienceMs = 1_000

/** The state of each cell by its name, within a second. */
export async function readCellStates(cells: readonly Cell[]): Promise<Record<string, CellState>> {
  const states = await Promise.all(cells.map(async cell => [cell.name, await readCellState(cell)] as const))
  return Object.fromEntries(states)
}

async function readCellState({ db, isOpen }: Cell): Promise<CellState> {
  if (!isOpen) return 'away'
  const patience = Promise.withResolvers<CellState>()
  const timer = setTimeout(() => patience.resolve('away'), patienceMs)
  const reading = readReadiness(db, AbortSignal.timeout(patienceMs)).catch((): CellState => 'away')
  return Promise.race([reading, patience.promise]).finally(() => clearTimeout(timer))
}
