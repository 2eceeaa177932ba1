import { listKeys, revokeKey, rotateKeys } from '../src/auth/keys/keys.ts'
import { masterKeysOf } from '../src/db/db.ts'
import { addMasterKey, keyFilePath } from '../src/keys-at-rest/key-file.ts'
import { rewrapAll, totalOf } from '../src/keys-at-rest/keys-at-rest.ts'
import { listOrganizations } from '../src/organizations/organizations.ts'
import { type Result, UsageError } from './command.ts'
import { confirm } from './confirm.ts'
import { atServiceOrDatabase } from './connection.ts'
import { newPlainCommand } from './kith-command.ts'
import { recordOperation, type Session, withSession } from './session.ts'

export function keysCommand(environment: NodeJS.ProcessEnv) {
  const keys = newPlainCommand(
    environment,
    'keys',
    'The keys that sign tokens, and the master key that wraps all keys and secrets.',
  ).examples('keys list', 'keys rotate', 'keys rewrap --new-key')
  keys
    .addList(
      ['kid', 'algorithm', 'created_at', 'state', 'verifies_until'],
      'list',
      'Lists the keys, newest first, of the database of this machine or of a service.',
    )
    .examples('keys list', 'keys list --profile acme')
    .connection()
    .action(options =>
      atServiceOrDatabase(environment, options, 'access:read', {
        service: client => client.access.keys(),
        database: ({ db }) => listKeys(db),
      }),
    )
  keys
    .add('rotate', 'Signs with a new key from now on. Tokens of older keys stay valid until they expire.')
    .examples('keys rotate')
    .onDatabase(async session => {
      const kid = await rotateKeys(session.db)
      await recordKey(session, { event: 'key_rotated', target: kid, command: 'kith keys rotate' })
      return { value: { kid }, messages: [`The key ${kid} signs from now on.`] }
    })
  keys
    .add('revoke', 'Revokes an older key, such as one that leaked. Its tokens are rejected within ten seconds.')
    .examples('keys revoke NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs --yes')
    .yes()
    .argument('<kid>', 'The kid, as shown by keys list.')
    .action(async (kid, options) => {
      await confirm(options, `Revoke the key ${kid}? Every token that it signed is rejected.`)
      await withSession(environment, async session => {
        await revokeKey(session.db, kid)
        await recordKey(session, { event: 'key_revoked', target: kid, command: 'kith keys revoke' })
      })
      return { value: { kid }, messages: [`Revoked key ${kid}.`] }
    })
  keys
    .add(
      'rewrap',
      'Wraps all keys and secrets by the first master key of the file, while kith runs. A run that was interrupted is finished by the next.',
    )
    .examples('keys rewrap', 'keys rewrap --new-key')
    .option('--new-key', 'First put a new key before the others in the file. They still unwrap.')
    .onDatabase(async ({ db, config }, { newKey }) => {
      const path = keyFilePath(config) ?? throwNoFile()
      if (newKey) await addMasterKey(path)
      const { wrapped, lost } = await rewrapAll(db)
      const [wrappedRows, lostRows] = [totalOf(wrapped), totalOf(lost)]
      const master_key = masterKeysOf(db).wrappingId()
      if (lostRows > 0) process.exitCode = 1
      return {
        value: { master_key, wrapped, lost },
        messages: [
          ...linesOf(wrapped),
          `The master key ${master_key} has wrapped ${rowsText(wrappedRows)} anew${lostRows > 0 ? '.' : ', and now wraps all keys and secrets.'}`,
          ...(wrappedRows > 0 ? [`Backups made before need the older keys of ${path}. Keep a copy of them.`] : []),
          ...(lostRows > 0
            ? [
                `Their master key is not in ${path}, so ${lostRows === 1 ? '1 row does' : `${lostRows} rows do`} not open:`,
              ]
            : []),
          ...linesOf(lost),
        ],
      }
    })
  keys
    .add(
      'forget',
      'Replaces what a lost master key wraps: new keys for tokens and ledgers, new secrets of webhooks; links in messages end. Stop kith first.',
    )
    .examples('keys forget --yes')
    .yes()
    .action(async options => {
      await confirm(options, 'Replace every key and secret that does not open? Nothing brings them back.')
      return withSession(environment, forgetLost, { forgetsLost: true })
    })
  return keys
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

async function forgetLost({ db, config }: Session): Promise<Result> {
  if (keyFilePath(config) === undefined) throwNoFile()
  const { lost } = await rewrapAll(db, { forgetsLost: true })
  const rows = totalOf(lost)
  const summary =
    rows === 0
      ? 'All keys and secrets open. Nothing was replaced.'
      : `${rowsText(rows)} did not open, and what they held was replaced or deleted. docs/keys.md says what to do now.`
  const value = { master_key: masterKeysOf(db).wrappingId(), replaced: lost }
  return { value, messages: [...linesOf(lost), summary] }
}

function throwNoFile(): never {
  throw new UsageError('There is no master key. Set KITH_MASTER_KEY_FILE.')
}

const linesOf = (counts: Record<string, number>): string[] =>
  Object.entries(counts).map(([table, count]) => `${table}: ${count}`)

const rowsText = (count: number) => `${count} ${count === 1 ? 'row' : 'rows'}`
