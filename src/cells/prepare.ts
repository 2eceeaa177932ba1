import type { Database } from '../db/db.ts'
import { listMigrations, migrate } from '../db/migrate.ts'
import { probe } from '../db/probe.ts'
import { copyLedgerKeys } from '../ledger/keys.ts'
import { firstCellName } from '../organizations/organizations.ts'
import { countOrganizationsSql, insertCellNameSql, readCellNameSql, readMigrationNamesSql } from './sql.ts'

/** A further cell, as KITH_CELLS names it. */
export type CellAddress = Readonly<{ name: string; url: string }>

/**
 * Brings the tables of a further cell to this version, and returns the names of the migrations that ran. Throws an Error that names
 * the cell and omits the password.
 */
export async function migrateCell({ name, url }: CellAddress): Promise<string[]> {
  return named(name, async () => {
    await probe(url)
    return migrate(url)
  })
}

/**
 * Checks that a database with the tables of this version is the cell `name`, and names a new one. Copies the keys of the ledgers from
 * the first cell, so that every cell signs with the same key. Throws an Error that names the cell.
 */
export function prepareCell(name: string, db: Database, first: Database): Promise<void> {
  return named(name, async () => {
    if ((await readOwnName(name, db)) === undefined) await claimCell(name, db)
    await copyLedgerKeys(first, db)
  })
}

/** Checks that a database is the cell `name`, or none yet, and changes nothing. Throws an Error that names the cell. */
export async function checkCell(name: string, db: Database): Promise<void> {
  await named(name, () => readOwnName(name, db))
}

/** The name that the database has, undefined for a new one. Throws an Error if it is another cell. */
async function readOwnName(name: string, db: Database): Promise<string | undefined> {
  const ran = new Set((await db.query<{ name: string }>(readMigrationNamesSql, [])).map(row => row.name))
  if ((await listMigrations()).some(migration => !ran.has(migration)))
    throw new Error('Its tables are not at this version yet.')
  const current = await readCellName(db)
  if (current === undefined || current === name) return current
  throw new Error(`Its database is the cell ${current} of an installation. Correct KITH_CELLS.`)
}

async function claimCell(name: string, db: Database): Promise<void> {
  const [row] = await db.query<{ organizations: number }>(countOrganizationsSql, [])
  if (row!.organizations > 0)
    throw new Error('Its database has organizations of another installation. Name an empty database in KITH_CELLS.')
  await db.query(insertCellNameSql, [name])
  const claimed = await readCellName(db)
  if (claimed !== name) throw new Error(`Its database has become the cell ${claimed} in the meantime.`)
}

/**
 * Checks that DATABASE_URL does not lead to a further cell. With further cells, the first one is marked as such. Throws an Error
 * if it is another cell.
 */
export async function checkFirstCell(db: Database, hasFurther: boolean): Promise<void> {
  const name = await readCellName(db)
  if (name === undefined && hasFurther) await db.query(insertCellNameSql, [firstCellName])
  if (name !== undefined && name !== firstCellName)
    throw new Error(
      `DATABASE_URL leads to the database of the cell ${name}. Set it to the first cell, and name this one in KITH_CELLS.`,
    )
}

async function readCellName(db: Database): Promise<string | undefined> {
  const [row] = await db.query<{ name: string }>(readCellNameSql, [])
  return row?.name
}

/** Runs `work`. Its errors name the cell. */
async function named<T>(name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const message = (error as Error).message.replaceAll('DATABASE_URL', 'its URL in KITH_CELLS')
    throw new Error(`The cell ${name} cannot be used: ${message}`, { cause: error })
  }
}
