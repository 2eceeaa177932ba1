import { open, readdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Database } from '../../db/db.ts'
import { keyFilePath, openMasterKeys } from '../../keys-at-rest/key-file.ts'
import { rewrapAll, totalOf } from '../../keys-at-rest/keys-at-rest.ts'
import type { Config } from '../../process/config.ts'
import { hasTable } from './database.ts'
import { type Finding, ok, warning, wrong } from './finding.ts'

const check = 'master key'

/** Checks that the master key wraps all keys and secrets, and that no backup lies beside it. */
export async function checkMasterKey(db: Database, config: Config): Promise<Finding[]> {
  if (!(await hasTable(db, 'deliverability_sources'))) return []
  const path = keyFilePath(config)
  const masterKeys = openMasterKeys(config)
  const { wrapped, lost } = await rewrapAll({ ...db, masterKeys }, { dryRun: true })
  const found: Finding[] = []
  const lostCount = totalOf(lost)
  if (lostCount > 0)
    found.push(
      wrong(
        check,
        `${lostCount} keys and secrets do not open, because their master key is missing`,
        'Put it into the file of the master key. If it is lost, run kith keys forget (docs/keys.md).',
      ),
    )
  else if (path === undefined)
    found.push(
      warning(
        check,
        'there is no master key: who reads the database or a backup can sign tokens, links and deliveries',
        'Set KITH_MASTER_KEY_FILE, as docs/keys.md describes.',
      ),
    )
  else if (masterKeys.wrappingId() === undefined)
    found.push(warning(check, 'there is no master key yet', 'The next start of the service makes one.'))
  else if (totalOf(wrapped) > 0)
    found.push(
      warning(
        check,
        `${totalOf(wrapped)} keys and secrets are not wrapped by the first master key`,
        'Run kith keys rewrap.',
      ),
    )
  if (path !== undefined) found.push(...(await checkKeyFile(path)))
  return found.length > 0 ? found : [ok(check, `the master key ${masterKeys.wrappingId()} wraps all keys and secrets`)]
}

async function checkKeyFile(path: string): Promise<Finding[]> {
  const file = await stat(path).catch(() => undefined)
  if (!file) return []
  const beside = await findBackup(dirname(path))
  return [
    ...(file.mode & 0o007 ? [warning(check, `${path} can be read by every user`, `chmod o-rwx ${path}`)] : []),
    ...(beside === undefined
      ? []
      : [
          warning(
            check,
            `${beside} is a backup beside the master key, which opens its keys`,
            'Move it to another machine, or encrypt backups with kith backup --recipient.',
          ),
        ]),
  ]
}

const firstBytes = '{"format":"kith-backup",'

/** The first backup in a folder that is not encrypted. */
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
