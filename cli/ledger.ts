import { readFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { contextOf } from '../src/db/context.ts'
import { type Database, openDatabase } from '../src/db/db.ts'
import { type AuditResult, auditLedger, readKeptCheckpoint } from '../src/ledger/audit.ts'
import { listLedgerKeys, rotateLedgerKey } from '../src/ledger/keys.ts'
import { readLedger, readVerifierKeys } from '../src/ledger/ledger.ts'
import type { Organization } from '../src/organizations/organizations.ts'
import { loadConfig } from '../src/process/config.ts'
import { type JsonOption, newCommand, newPlainCommand, printResult, UsageError } from './command.ts'
import { addFormatOption, type FormatOption, printRows } from './print-rows.ts'
import { formatCount, withProgress } from './progress.ts'
import {
  addOrgOption,
  type OrgOption,
  organizationsOf,
  requireOrganization,
  withServer,
  withSession,
} from './session.ts'

type OrgOptions = OrgOption & JsonOption
type VerifyOptions = OrgOptions & { all?: boolean; since?: string }

export function ledgerCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Verifies the ledger of consent answers and prints its checkpoints. Runs on the machine of the service, on its database.'
  return newPlainCommand('ledger', description, [
    'ledger checkpoint --org acme > checkpoint.txt',
    'ledger verify --org acme --since checkpoint.txt',
  ]).addSubcommands(environment, [checkpointCommand, verifyCommand, keysCommand, rotateKeyCommand])
}

function checkpointCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Prints the newest checkpoint of a ledger. Keep it where the administrators of the service cannot change it.'
  const command = newCommand('checkpoint', description, ['ledger checkpoint --org acme > checkpoint.txt'])
  return addOrgOption(command).action((options: OrgOptions) =>
    withSession(environment, async ({ config, db }) => {
      const { id } = await requireOrganization(db, options.org)
      const { checkpoint, size } = await readLedger(contextOf(db, id), config.ledgerOrigin)
      printResult(options, { value: { checkpoint, size }, lines: [checkpoint.trimEnd()] })
    }),
  )
}

/** One statement compares a few thousand entries; counting all answers of a large organization takes the longest. */
const statementTimeoutMs = 600_000

function verifyCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Recomputes ledgers from the consent history and names what was changed: entries, salts, tiles or the checkpoint. Also names ' +
    'answers that were never sealed. Changes nothing. Exits with 1 if anything was changed.'
  const command = newCommand('verify', description, [
    'ledger verify --all',
    'ledger verify --org acme --since checkpoint.txt',
  ])
  return addOrgOption(command)
    .option('--all', 'All organizations.')
    .option('--since <file>', 'A checkpoint that was kept elsewhere. Proves that the ledger has only grown since.')
    .action(async (options: VerifyOptions) => {
      if (options.all && options.since !== undefined)
        throw new UsageError('A checkpoint belongs to one organization. Give --org instead of --all.')
      const config = loadConfig(environment)
      const kept = options.since === undefined ? undefined : await readFile(options.since, 'utf8')
      const value = await withServer(config, url => verifyLedgers(url, kept, options))
      printResult(options, { value, lines: value.flatMap(linesOf) })
      if (value.some(({ findings }) => findings.length > 0)) process.exitCode = 1
    })
}

/** Verifies the ledger of an organization, or with `all` those of all. `kept` is a checkpoint that was kept elsewhere. */
export async function verifyLedgers(
  url: string,
  kept: string | undefined,
  options: Pick<VerifyOptions, 'all' | 'org' | 'json'> & { quiet?: true },
): Promise<AuditResult[]> {
  const db = openDatabase(url, { connections: 1, statementTimeoutMs, application_name: 'kith command' })
  try {
    const results: AuditResult[] = []
    for (const organization of await organizationsOf(db, options.all ? undefined : options.org))
      results.push(await verify(db, organization, { kept, options }))
    return results
  } finally {
    await db.close()
  }
}

type Verification = { kept: string | undefined; options: Pick<VerifyOptions, 'json'> & { quiet?: true } }

async function verify(db: Database, { id, key }: Organization, { kept, options }: Verification): Promise<AuditResult> {
  const since = kept === undefined ? undefined : await readKeptCheckpoint(db, key, kept)
  let [count, size] = [0, 0]
  const readProgress = () => ({ count, fraction: size === 0 ? null : count / size })
  const onProgress = (done: number, all: number) => {
    ;[count, size] = [done, all]
  }
  return withProgress('entries', readProgress, options, () => auditLedger(contextOf(db, id), { since, onProgress }))
}

/** The lines that show what an audit found. */
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

function keysCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Lists the keys that verify the checkpoints of an organization, newest first. The one that was not retired signs.'
  const command = addFormatOption(newPlainCommand('keys', description, ['ledger keys --org acme']))
  return addOrgOption(command).action((options: OrgOptions & FormatOption) =>
    withSession(environment, async ({ config, db }) => {
      const { id } = await requireOrganization(db, options.org)
      const keys = await readVerifierKeys(contextOf(db, id), config.ledgerOrigin)
      await printRows(options, [{ name: 'key', isWhole: true }, 'created_at', 'retired_at'], keys)
    }),
  )
}

function rotateKeyCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Signs the ledgers of all organizations with a new key from now on. What older keys have signed stays verifiable: only their ' +
    'private halves are deleted.'
  return newCommand('rotate-key', description, ['ledger rotate-key']).action((options: { json?: boolean }) =>
    withSession(environment, async ({ db }) => {
      const kid = await rotateLedgerKey(db)
      const retired = (await listLedgerKeys(db)).length - 1
      const message = `The key ${kid} signs from now on. Earlier keys that verify: ${retired}.`
      printResult(options, { value: { kid }, messages: [message] })
    }),
  )
}
