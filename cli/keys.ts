import type { Command } from 'commander'
import { listKeys, revokeKey, rotateKeys } from '../src/auth/keys/keys.ts'
import { masterKeysOf } from '../src/db/db.ts'
import { addMasterKey, keyFilePath } from '../src/keys-at-rest/key-file.ts'
import { rewrapAll, totalOf } from '../src/keys-at-rest/keys-at-rest.ts'
import { listOrganizations } from '../src/organizations/organizations.ts'
import { type JsonOption, newCommand, newPlainCommand, printResult, UsageError } from './command.ts'
import { addYesOption, confirm, type YesOption } from './confirm.ts'
import { addConnectionOptions, atServiceOrDatabase, type ConnectionOptions } from './connection.ts'
import { addFormatOption, type FormatOption, printRows } from './print-rows.ts'
import { recordOperation, type Session, withSession } from './session.ts'

export function keysCommand(environment: NodeJS.ProcessEnv): Command {
  return newPlainCommand('keys', 'The keys that sign tokens, and the master key that wraps all keys and secrets.', [
    'keys list',
    'keys rotate',
    'keys rewrap --new-key',
  ]).addSubcommands(environment, [listCommand, rotateCommand, revokeCommand, rewrapCommand, forgetCommand])
}

function listCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'Lists the keys, newest first, of the database of this machine or of a service.'
  const command = newPlainCommand('list', description, ['keys list', 'keys list --profile acme'])
  return addConnectionOptions(addFormatOption(command)).action(async (options: ConnectionOptions & FormatOption) => {
    const keys = await atServiceOrDatabase(environment, options, 'access:read', {
      service: client => client.access.keys(),
      database: ({ db }) => listKeys(db),
    })
    await printRows(options, ['kid', 'algorithm', 'created_at', 'state', 'verifies_until'], keys)
  })
}

function rotateCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'Signs with a new key from now on. Tokens of older keys stay valid until they expire.'
  return newCommand('rotate', description, ['keys rotate']).action((options: JsonOption) =>
    withSession(environment, async session => {
      const kid = await rotateKeys(session.db)
      await recordKey(session, { event: 'key_rotated', target: kid, command: 'kith keys rotate' })
      printResult(options, { value: { kid }, messages: [`The key ${kid} signs from now on.`] })
    }),
  )
}

/** The keys sign the tokens of all organizations. */
async function recordKey(session: Session, operation: Parameters<typeof recordOperation>[2]): Promise<void> {
  const organizations = await listOrganizations(session.db)
  await recordOperation(
    session,
    organizations.map(({ id }) => id),
    operation,
  )
}

function revokeCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'Revokes an older key, such as one that leaked. Its tokens are rejected within ten seconds.'
  const command = newCommand('revoke', description, ['keys revoke NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs --yes'])
  return addYesOption(command)
    .argument('<kid>', 'The kid, as shown by keys list.')
    .action(async (kid: string, options: JsonOption & YesOption) => {
      await confirm(options, `Revoke the key ${kid}? Every token that it signed is rejected.`)
      await withSession(environment, async session => {
        await revokeKey(session.db, kid)
        await recordKey(session, { event: 'key_revoked', target: kid, command: 'kith keys revoke' })
      })
      printResult(options, { value: { kid }, messages: [`Revoked key ${kid}.`] })
    })
}

function rewrapCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Wraps all keys and secrets by the first master key of the file, while kith runs. A run that was interrupted is finished by the next.'
  return newCommand('rewrap', description, ['keys rewrap', 'keys rewrap --new-key'])
    .option('--new-key', 'First put a new key before the others in the file. They still unwrap.')
    .action((options: JsonOption & { newKey?: true }) =>
      withSession(environment, async ({ db, config }) => {
        const path = keyFilePath(config) ?? throwNoFile()
        if (options.newKey) await addMasterKey(path)
        const { wrapped, lost } = await rewrapAll(db)
        const [wrappedRows, lostRows] = [totalOf(wrapped), totalOf(lost)]
        const master_key = masterKeysOf(db).wrappingId()
        printResult(options, {
          value: { master_key, wrapped, lost },
          messages: [
            ...linesOf(wrapped),
            `The master key ${master_key} has wrapped ${wrappedRows} rows anew${lostRows > 0 ? '.' : ', and now wraps all keys and secrets.'}`,
            ...(wrappedRows > 0 ? [`Backups made before need the older keys of ${path}. Keep a copy of them.`] : []),
            ...(lostRows > 0 ? [`${lostRows} rows do not open, because their master key is not in ${path}:`] : []),
            ...linesOf(lost),
          ],
        })
        if (lostRows > 0) process.exitCode = 1
      }),
    )
}

function forgetCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Replaces what a lost master key wraps: new keys for tokens and ledgers, new secrets of webhooks; links in messages end. Stop kith first.'
  return addYesOption(newCommand('forget', description, ['keys forget --yes'])).action(
    async (options: JsonOption & YesOption) => {
      await confirm(options, 'Replace every key and secret that does not open? Nothing brings them back.')
      await withSession(
        environment,
        async ({ db, config }) => {
          if (keyFilePath(config) === undefined) throwNoFile()
          const { lost } = await rewrapAll(db, { forgetsLost: true })
          const rows = totalOf(lost)
          const summary =
            rows === 0
              ? 'All keys and secrets open. Nothing was replaced.'
              : `${rows} rows did not open and were replaced or deleted. docs/keys.md says what to do now.`
          printResult(options, {
            value: { master_key: masterKeysOf(db).wrappingId(), replaced: lost },
            messages: [...linesOf(lost), summary],
          })
        },
        { forgetsLost: true },
      )
    },
  )
}

function throwNoFile(): never {
  throw new UsageError('There is no master key. Set KITH_MASTER_KEY_FILE.')
}

const linesOf = (counts: Record<string, number>): string[] =>
  Object.entries(counts).map(([table, count]) => `${table}: ${count}`)
