import type { Command } from 'commander'
import { listSigningKeys } from '../src/access/signing-keys.ts'
import { revokeKey, rotateKeys } from '../src/auth/keys/keys.ts'
import { listOrganizations } from '../src/organizations/organizations.ts'
import { newCommand, newPlainCommand, printResult } from './command.ts'
import { addYesOption, confirm, type YesOption } from './confirm.ts'
import { addConnectionOptions, atServiceOrDatabase, type ConnectionOptions } from './connection.ts'
import { addFormatOption, type FormatOption, formatOf, printRows } from './print-rows.ts'
import { recordOperation, type Session, withSession } from './session.ts'

type Json = { json?: boolean }

export function keysCommand(environment: NodeJS.ProcessEnv): Command {
  return newPlainCommand('keys', 'Lists, rotates and revokes the keys that sign tokens.', ['keys list', 'keys rotate'])
    .addCommand(listCommand(environment))
    .addCommand(rotateCommand(environment))
    .addCommand(revokeCommand(environment))
}

function listCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'Lists the keys, newest first, of the database of this machine or of a service.'
  const command = newPlainCommand('list', description, ['keys list', 'keys list --profile acme'])
  return addConnectionOptions(addFormatOption(command)).action(async (options: ConnectionOptions & FormatOption) => {
    const keys = await atServiceOrDatabase(environment, options, 'access:read', {
      service: client => client.access.keys(),
      database: async ({ db }) => (await listSigningKeys(db)).items,
    })
    await printRows(formatOf(options), ['kid', 'algorithm', 'created_at', 'state', 'verifies_until'], keys)
  })
}

function rotateCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'Signs with a new key from now on. Tokens of older keys stay valid until they expire.'
  return newCommand('rotate', description, ['keys rotate']).action((options: Json) =>
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
    .action(async (kid: string, options: Json & YesOption) => {
      await confirm(options, `Revoke the key ${kid}? Every token that it signed is rejected.`)
      await withSession(environment, async session => {
        await revokeKey(session.db, kid)
        await recordKey(session, { event: 'key_revoked', target: kid, command: 'kith keys revoke' })
      })
      printResult(options, { value: { kid }, messages: [`Revoked key ${kid}.`] })
    })
}
