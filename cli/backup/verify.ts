import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { keyFilePath } from '../../src/keys-at-rest/key-file.ts'
import { loadConfig } from '../../src/process/config.ts'
import type { Result } from '../command.ts'
import { checkDatabase, linesOf } from '../doctor.ts'
import { fileExists } from '../files.ts'
import type { KithCommand } from '../kith-command.ts'
import { linesOf as linesOfLedger, verifyLedgers } from '../ledger.ts'
import { formatCount } from '../progress.ts'
import { type RestoreOptions, restoreFile } from '../restore.ts'
import { withServer } from '../session.ts'

/** The checks of the doctor that concern the stored data. The others concern the server. */
const checksOfContent = ['database', 'migrations', 'keys', 'master key', 'indexes', 'followers', 'webhooks']

/** Adds the command that verifies a backup. */
export function addVerify(backup: KithCommand<[string], object, Result>): void {
  const { environment } = backup
  backup
    .add(
      'verify',
      'Restores a backup into a temporary embedded PostgreSQL, and examines what is there: the checks of kith doctor and the ledgers of ' +
        'all organizations. Reads no other data and changes none. Exits with 1 if anything is wrong.',
    )
    .examples('backup verify kith-2027-01-15.backup', 'backup verify kith.backup.age --identity backup-key.txt')
    .argument('<file>', 'A file written by kith backup; - reads standard input.')
    .option('--key <key>', 'The key of the ledger that must have signed the backup, name+hash+base64.')
    .option('--identity <file>', 'The file with the identity of age that opens an encrypted backup.')
    .option('--quiet', 'Show no progress.')
    .action((file, options) => run(environment, file, options))
}

async function run(environment: NodeJS.ProcessEnv, file: string, options: RestoreOptions): Promise<Result> {
  const folder = await mkdtemp(join(tmpdir(), 'kith-verify-'))
  try {
    // When kith runs as root, the embedded PostgreSQL runs as another user, who must be able to enter the folder.
    await chmod(folder, 0o711)
    const scratch = await scratchOf(environment, folder)
    const config = loadConfig(scratch)
    // The restore, the checks and the verification of the ledgers share one server.
    return await withServer(config, async url => {
      const { backup, loaded } = await restoreFile(scratch, file, options)
      const findings = (await checkDatabase(config)).filter(({ check }) => checksOfContent.includes(check))
      const ledgers = await verifyLedgers(url, {}, options)
      const { rows, tables } = loaded
      const { at } = backup.header
      const valid =
        findings.every(({ verdict }) => verdict !== 'wrong') && ledgers.every(each => each.findings.length === 0)
      const verdict = valid ? 'The backup restores' : 'The backup restores, and something in it is wrong'
      if (!valid) process.exitCode = 1
      return {
        value: { file, valid, at, rows, tables, findings, ledgers },
        lines: [
          ...findings.flatMap(linesOf),
          ...ledgers.flatMap(linesOfLedger),
          `${verdict}: ${formatCount(rows)} rows of ${tables} tables, the state of ${at}.`,
        ],
      }
    })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** The environment of the temporary server: that of this machine with the same master key, but its own data folder. */
async function scratchOf(environment: NodeJS.ProcessEnv, folder: string): Promise<NodeJS.ProcessEnv> {
  const keyFile = keyFilePath(loadConfig(environment))
  const hasKey = keyFile !== undefined && (await fileExists(keyFile))
  const { DATABASE_URL: _, KITH_MASTER_KEY_FILE: __, ...rest } = environment
  return { ...rest, KITH_DATA_DIR: join(folder, '.kith'), ...(hasKey && { KITH_MASTER_KEY_FILE: keyFile }) }
}
