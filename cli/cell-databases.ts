import { migrateCell, prepareCell } from '../src/cells/prepare.ts'
import type { Config } from '../src/config.ts'
import type { Database } from '../src/db/db.ts'
import { firstCellName } from '../src/organizations/organizations.ts'

/** The databases of the cells that a command needs. Each is opened when it is first used. */
export type CellDatabases = {
  /** The names of all cells, the first one first. */
  names: readonly string[]
  /** The database of a cell, with the tables of this version. Throws an Error if KITH_CELLS does not name it, or it is away. */
  open(name: string): Promise<Database>
  /** The database with the rows of an organization. */
  of(organization: { cell: string }): Promise<Database>
  close(): Promise<void>
}

/** `first` is the open database of the first cell, and is not closed. */
export function openCellDatabases(
  { cells }: Config,
  first: Database,
  openDatabase: (url: string) => Database,
): CellDatabases {
  const opened = new Map<string, Promise<Database>>()
  const closing: Database[] = []

  async function openCell(name: string): Promise<Database> {
    const address = cells.find(cell => cell.name === name)
    if (!address)
      throw new Error(`KITH_CELLS does not name the cell ${name}. Known: ${[firstCellName, ...names].join(', ')}.`)
    await migrateCell(address)
    const db = openDatabase(address.url)
    closing.push(db)
    await prepareCell(name, db, first)
    return db
  }

  const names = cells.map(({ name }) => name)
  const open = (name: string): Promise<Database> => {
    if (name === firstCellName) return Promise.resolve(first)
    const opening = opened.get(name) ?? openCell(name)
    opened.set(name, opening)
    return opening
  }
  return {
    names: [firstCellName, ...names],
    open,
    of: ({ cell }) => open(cell),
    close: async () => {
      await Promise.all(closing.map(db => db.close()))
    },
  }
}
