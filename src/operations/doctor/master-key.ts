import { open, readdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Database } from '../../db/db.ts'
import { keyFilePath, openMasterKeys } from '../../keys-at-rest/key-file.ts'
import { rewrapAll, totalOf } from '../../keys-at-rest/keys-at-rest.ts'
import type { Config } from '../../process/config.ts'
import { hasTable } from './database.ts'
import { type Finding, type Found, ok, warning, wrong } from './finding.ts'

const check = 'master key'

/**
 * Checks that the master key wraps all keys and secrets, that other users cannot read it, and that no backup is beside
 * it.
 */
export async function checkMasterKey(db: Database, config: Config): Promise<Found> {
  if (!(await hasTable(db, 'deliverability_sources'))) return []
  const path = keyFilePath(config)
  const masterKeys = openMasterKeys(config)
  const { wrapped, lost } = await rewrapAll({ ...db, masterKeys }, { dryRun: true })
  const [older, missing] = [totalOf(wrapped), totalOf(lost)]
  if (missing > 0)
    return wrong(
      check,
      `keys and secrets that do not open, because their master key is missing: ${missing}`,
      'Put it into the file of the master key. If it is lost, run kith keys forget (docs/keys.md).',
    )
  if (path === undefined)
    return warning(
      check,
      'there is no master key: who reads the database or a backup can sign tokens, links and deliveries',
      'Set KITH_MASTER_KEY_FILE, as docs/keys.md describes.',
    )
  const message = `keys and secrets that the first master key does not wrap: ${older}`
  return [
    older > 0
      ? warning(check, message, 'Run kith keys rewrap. The next start of the service does the same.')
      : ok(check, `the master key ${masterKeys.wrappingId()} wraps all keys and secrets`),
    ...(await checkKeyFile(path)),
  ]
}

async function checkKeyFile(path: string): Promise<Finding[]> {
  const file = await stat(path).catch(() => undefined)
  const found: Finding[] = []
  if (file && file.mode & 0o007) found.push(warning(check, `${path} can be read by every user`, `chmod o-rwx ${path}`))
  const beside = file && (await findBackup(dirname(path)))
  const advice = 'Move it to another machine, or encrypt backups with kith backup --recipient.'
  if (beside) found.push(warning(check, `${beside} is a backup beside the master key, which opens its keys`, advice))
  return found
}

const firstBytes = '{"format":"kith-backup",'

/** The first unencrypted backup in a folder. */
async function findBackup(folder: string): Promise<string | undefined> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (!entry.isFile()) continue
    const path = join(folder, entry.name)
    const handle = await open(path).catch(() => undefined)
    const found = await handle
      ?.read(Buffer.alloc(firstBytes.length), 0, firstBytes.length, 0)
      .finally(() => handle.close())
    if (found?.buffer.toString('latin1') === firstBytes) return path
  }
  return undefined
}
