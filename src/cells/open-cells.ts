import { type Background, repeat } from '../background.ts'
import type { DatabasePool } from '../db/db.ts'
import { firstCellName } from '../organizations/organizations.ts'
import { type Cell, type CellPool, createCellPool } from './cell-pool.ts'
import { type CellAddress, migrateCell, prepareCell } from './prepare.ts'

/** A start waits for further cells no longer than this. Their organizations are refused until they can be opened. */
const openingPatienceMs = 5_000
const retryIntervalMs = 1_000
/** How often the keys of the ledgers are copied to an open cell, for a key that was rotated while the cell was away. */
const keyCopyIntervalMs = 60_000

type Report = (cell: string, problem: string) => void

/** The cells of a process that serves requests. */
export type OpenCells = {
  /** All cells as one pool. */
  db: CellPool
  cells: readonly Cell[]
  /** Opens the further cells. Resolves after the first attempts, or after five seconds. A cell that is away is opened when it comes. */
  open(): Promise<void>
  /** Starts the background work of each cell: now for an open one, otherwise when it opens. */
  startWork(start: (db: DatabasePool) => Background[]): void
  /** Ends the background work, and opens no more cells. It may be called twice. */
  stop(): Promise<void>
}

type Options = {
  first: DatabasePool
  further: readonly CellAddress[]
  openPool(url: string): DatabasePool
  /** Whether this process runs the migrations of cells. Otherwise it waits for the process that does. */
  migrates: boolean
  report: Report
}

/** Connects nothing before `open`. */
export function createCells({ first, further, openPool, migrates, report }: Options): OpenCells {
  const others = further.map(address => ({
    address,
    cell: { name: address.name, db: openPool(address.url), isOpen: false },
  }))
  const cells: Cell[] = [{ name: firstCellName, db: first, isOpen: true }, ...others.map(({ cell }) => cell)]
  const works: Background[] = []
  let startCell: ((db: DatabasePool) => Background[]) | undefined
  let opening: Background | undefined
  let isStopped = false

  async function openCell({ address, cell }: (typeof others)[number]) {
    if (migrates) await migrateCell(address)
    await prepareCell(cell.name, cell.db, first)
    if (isStopped) return
    cell.isOpen = true
    if (startCell) works.push(...startCell(cell.db))
    const renew = () => prepareCell(cell.name, cell.db, first)
    works.push(repeat(renew, keyCopyIntervalMs, error => report(cell.name, (error as Error).message)))
  }

  return {
    db: createCellPool(cells),
    cells,
    open: async () => {
      const attempts = others.map(other => ({ name: other.cell.name, run: () => openCell(other) }))
      opening = await retryEach(attempts, report)
    },
    startWork: start => {
      startCell = start
      for (const { db, isOpen } of cells) if (isOpen) works.push(...start(db))
    },
    stop: async () => {
      isStopped = true
      startCell = undefined
      // An attempt to reach a cell that does not answer is not awaited.
      void opening?.stop()
      await Promise.all(works.map(work => work.stop()))
    },
  }
}

/**
 * Migrates further cells, for a process that starts workers and serves no requests itself. Resolves as `open` does, with what stops
 * the attempts for cells that are away.
 */
export function migrateCells(further: readonly CellAddress[], report: Report): Promise<Background> {
  return retryEach(
    further.map(address => ({ name: address.name, run: () => migrateCell(address) })),
    report,
  )
}

type Attempt = { name: string; run(): Promise<unknown> }

/** Runs each attempt until it succeeds. Resolves after the first attempts, or after five seconds. Reports each new problem once. */
async function retryEach(attempts: readonly Attempt[], report: Report): Promise<Background> {
  const running = attempts.map(({ name, run }) => {
    let lastProblem: string | undefined
    let isDone = false
    const attempt = async () => {
      if (isDone) return
      try {
        await run()
        isDone = true
      } catch (error) {
        const problem = (error as Error).message
        if (problem !== lastProblem) report(name, problem)
        lastProblem = problem
      }
    }
    const first = attempt()
    // The retries begin after the first attempt, so that two attempts never run at once.
    const retries = first.then(() => (isDone ? undefined : repeat(attempt, retryIntervalMs, () => {})))
    const stop = async () => (await retries)?.stop()
    return { first, stop }
  })
  const patience = Promise.withResolvers<void>()
  const timer = setTimeout(() => patience.resolve(), openingPatienceMs)
  await Promise.race([Promise.all(running.map(({ first }) => first)), patience.promise])
  clearTimeout(timer)
  return {
    stop: async () => {
      await Promise.all(running.map(({ stop }) => stop()))
    },
  }
}
