import { type Database, masterKeysOf } from '../db/db.ts'
import { keyIdOf, type MasterKeys, wrappedPrefix } from '../db/master-keys.ts'
import type { Config } from '../process/config.ts'
import { keyFilePath, makeKeyFile } from './key-file.ts'
import { type WrappedColumns, wrappedColumns } from './wrapped-columns.ts'

/**
 * Makes the master key of a data folder that has none. Throws an Error if the keys of the database are wrapped by a master key that the
 * process does not have: a new one would replace it. `forgetsLost` makes one all the same.
 */
export async function ensureMasterKey(db: Database, config: Config, { forgetsLost = false } = {}): Promise<void> {
  const path = keyFilePath(config)
  const lost = forgetsLost ? undefined : await findLostKey(db)
  if (lost !== undefined)
    throw new Error(
      `The keys of this database are wrapped by the master key ${lost}, which ${path ?? 'this process'} does not have. ` +
        `${path === undefined ? 'Name its file with KITH_MASTER_KEY_FILE' : `Put it into ${path}`}. If it is lost, run ` +
        'kith keys forget: docs/keys.md says what is lost with it.',
    )
  if (path !== undefined && masterKeysOf(db).wrappingId() === undefined) await makeKeyFile(path)
}

/**
 * Returns the id of the master key that wraps the keys of tokens and ledgers, if the process does not have it. Throws an Error if their bytes
 * were changed.
 */
export async function findLostKey(db: Database): Promise<string | undefined> {
  const keys = masterKeysOf(db)
  for (const columns of [wrappedColumns.signing_keys!, wrappedColumns.ledger_keys!])
    for (const row of await columns.find(db, 'none')) {
      const stored = columns.secrets(row)[0]![0]
      if (!keys.hasKeyOf(stored)) return keyIdOf(stored)
      rewrap(columns, row, keys)
    }
  return undefined
}

const rewrap = ({ secrets }: WrappedColumns<unknown>, row: unknown, keys: MasterKeys) =>
  secrets(row).map(([stored, name]) => keys.wrap(keys.unwrap(stored, name), name))

/** Rows that the first master key did not wrap, by table: how many open, and how many are lost because their master key is missing. */
export type Rewrapped = { wrapped: Record<string, number>; lost: Record<string, number> }

/** Updates under way at a time. */
const maxConcurrent = 8

/**
 * Wraps everything by the first master key. `forgetsLost` replaces or deletes what does not open. Writes go on meanwhile. A run that was
 * interrupted is finished by the next one, and a run without work changes nothing. `dryRun` only counts.
 */
export async function rewrapAll(db: Database, { forgetsLost = false, dryRun = false } = {}): Promise<Rewrapped> {
  const keys = masterKeysOf(db)
  const result: Rewrapped = { wrapped: {}, lost: {} }
  for (const [table, columns] of Object.entries(wrappedColumns)) {
    const rows = await columns.find(db, `${wrappedPrefix}${keys.wrappingId()}:%`)
    const visit = async (row: unknown) => {
      const wrapped = attempt(() => rewrap(columns, row, keys))
      const counts = wrapped ? result.wrapped : result.lost
      counts[table] = (counts[table] ?? 0) + 1
      if (dryRun) return
      if (wrapped) await columns.store(db, row, wrapped)
      else if (forgetsLost) await columns.forget(db, row)
    }
    for (let index = 0; index < rows.length; index += maxConcurrent)
      await Promise.all(rows.slice(index, index + maxConcurrent).map(visit))
  }
  return result
}

function attempt<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}

export const totalOf = (counts: Record<string, number>): number =>
  Object.values(counts).reduce((sum, count) => sum + count, 0)
