import { contextOf } from '../src/db/context.ts'
import { type Database, openDatabase } from '../src/db/db.ts'
import { type AuditResult, auditLedger, readKeptCheckpoint } from '../src/ledger/audit.ts'
import { listLedgerKeys, rotateLedgerKey } from '../src/ledger/keys.ts'
import { readLedger, readVerifierKeys } from '../src/ledger/ledger.ts'
import type { Organization } from '../src/organizations/organizations.ts'
import { loadConfig } from '../src/process/config.ts'
import { UsageError } from './command.ts'
import { readInput } from './files.ts'
import { newPlainCommand } from './kith-command.ts'
import { formatCount, type QuietOptions, withProgress } from './progress.ts'
import { organizationsOf, requireOrganization, withServer } from './session.ts'

export function ledgerCommand(environment: NodeJS.ProcessEnv) {
  const ledger = newPlainCommand(
    environment,
    'ledger',
    'Verifies the ledger of consent answers and prints its checkpoints. Runs on the machine of the service, on its database.',
  ).examples('ledger checkpoint --org acme > checkpoint.txt', 'ledger verify --org acme --since checkpoint.txt')
  ledger
    .add(
      'checkpoint',
      'Prints the newest checkpoint of a ledger. Keep it where the administrators of the service cannot change it.',
    )
    .examples('ledger checkpoint --org acme > checkpoint.txt')
    .org()
    .onDatabase(async ({ config, db }, { org }) => {
      const { id } = await requireOrganization(db, org)
      const { checkpoint, size } = await readLedger(contextOf(db, id), config.ledgerOrigin)
      return { value: { checkpoint, size }, lines: [checkpoint.trimEnd()] }
    })
  ledger
    .add(
      'verify',
      'Recomputes ledgers from the consent history and names what was changed: entries, salts, tiles, the checkpoint, texts, or the ' +
        'answers in force. Also names answers that were never sealed. Changes nothing. Exits with 1 if anything was changed.',
    )
    .examples('ledger verify --all', 'ledger verify --org acme --since checkpoint.txt')
    .org()
    .option('--all', 'All organizations.')
    .option('--since <file>', 'A checkpoint that was kept elsewhere. Proves that the ledger has only grown since.')
    .action(async options => {
      if (options.all && options.since !== undefined)
        throw new UsageError('A checkpoint belongs to one organization. Give --org instead of --all.')
      const config = loadConfig(environment)
      const kept = options.since === undefined ? undefined : (await readInput(environment, options.since)).toString()
      const key = options.all ? undefined : options.org
      const value = await withServer(config, url => verifyLedgers(url, { key, kept }, options))
      if (value.some(({ findings }) => findings.length > 0)) process.exitCode = 1
      return { value, lines: value.flatMap(linesOf) }
    })
  ledger
    .addList(
      [{ name: 'key', isWhole: true }, 'created_at', 'retired_at'],
      'keys',
      'Lists the keys that verify the checkpoints of an organization, newest first. The one that was not retired signs.',
    )
    .examples('ledger keys --org acme')
    .format()
    .org()
    .onDatabase(async ({ config, db }, { org }) => {
      const { id } = await requireOrganization(db, org)
      return readVerifierKeys(contextOf(db, id), config.ledgerOrigin)
    })
  ledger
    .add(
      'rotate-key',
      'Signs the ledgers of all organizations with a new key from now on. What older keys have signed stays verifiable: only their ' +
        'private halves are deleted.',
    )
    .examples('ledger rotate-key')
    .onDatabase(async ({ db }) => {
      const kid = await rotateLedgerKey(db)
      const retired = (await listLedgerKeys(db)).length - 1
      return { value: { kid }, messages: [`The key ${kid} signs from now on. Earlier keys that verify: ${retired}.`] }
    })
  return ledger
}

/** A statement compares a few thousand entries. The slowest one counts all answers of a large organization. */
const statementTimeoutMs = 600_000

/** Verifies the ledger of an organization, or all ledgers without a key. `kept` is a checkpoint from elsewhere. */
export async function verifyLedgers(
  url: string,
  { key, kept }: { key?: string | undefined; kept?: string | undefined },
  options: QuietOptions,
): Promise<AuditResult[]> {
  const db = openDatabase(url, { connections: 1, statementTimeoutMs, application_name: 'kith command' })
  try {
    const results: AuditResult[] = []
    for (const organization of await organizationsOf(db, key))
      results.push(await verify(db, organization, kept, options))
    return results
  } finally {
    await db.close()
  }
}

async function verify(
  db: Database,
  { id, key }: Organization,
  kept: string | undefined,
  options: QuietOptions,
): Promise<AuditResult> {
  const since = kept === undefined ? undefined : await readKeptCheckpoint(db, key, kept)
  let [count, size] = [0, 0]
  const readProgress = () => ({ count, fraction: size === 0 ? null : count / size })
  const onProgress = (done: number, all: number) => {
    ;[count, size] = [done, all]
  }
  return withProgress('entries', readProgress, options, () => auditLedger(contextOf(db, id), { since, onProgress }))
}

/** The lines with the findings of an audit. */
export function linesOf({ organization, size, root_hash, waiting, findings, has_more }: AuditResult): string[] {
  const count = `${formatCount(size)} ${size === 1 ? 'entry' : 'entries'}`
  const rest = waiting > 0 ? ` ${formatCount(waiting)} new answers wait to be sealed.` : ''
  if (findings.length === 0) return [`${organization}: ${count} verified. The root hash is ${root_hash}.${rest}`]
  return [
    `${organization}: the ledger of ${count} was changed.${rest}`,
    ...findings.map(({ message }) => `  ${message}`),
    ...(has_more ? ['  There is more. Only the first findings are listed.'] : []),
  ]
}
