import type { Command } from 'commander'
import { type ListedKey, listKeys, revokeKey, rotateKeys } from '../src/auth/keys.ts'
import { newCommand, newPlainCommand, printResult } from './command.ts'
import { withSession } from './session.ts'

type Json = { json?: boolean }

export function keysCommand(environment: NodeJS.ProcessEnv): Command {
  return newPlainCommand('keys', 'Lists, rotates and revokes the keys that sign tokens.', ['keys list', 'keys rotate'])
    .addCommand(listCommand(environment))
    .addCommand(rotateCommand(environment))
    .addCommand(revokeCommand(environment))
}

function listCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'Lists the keys, one per line: kid, algorithm, time of creation, use, separated by tabs.'
  return newCommand('list', description, ['keys list']).action((options: Json) =>
    withSession(environment, async ({ db }) => {
      const value = await listKeys(db)
      const lines = value.map(key => [key.kid, key.algorithm, key.created_at, dutyOf(key)].join('\t'))
      printResult(options, { value, lines })
    }),
  )
}

function dutyOf({ signs, vouches_until }: ListedKey): string {
  return signs ? 'signs' : `verifies until ${vouches_until}`
}

function rotateCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'Signs with a new key from now on. Tokens of older keys stay valid until they expire.'
  return newCommand('rotate', description, ['keys rotate']).action((options: Json) =>
    withSession(environment, async ({ db }) => {
      const kid = await rotateKeys(db)
      printResult(options, { value: { kid }, messages: [`The key ${kid} signs from now on.`] })
    }),
  )
}

function revokeCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'Revokes an older key, such as one that leaked. Its tokens are rejected within ten seconds.'
  return newCommand('revoke', description, ['keys revoke NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs'])
    .argument('<kid>', 'The kid, as shown by keys list.')
    .action((kid: string, options: Json) =>
      withSession(environment, async ({ db }) => {
        await revokeKey(db, kid)
        printResult(options, { value: { kid }, messages: [`Revoked key ${kid}.`] })
      }),
    )
}
