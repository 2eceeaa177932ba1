import type { Command } from 'commander'
import { type ListedKey, listKeys, revokeKey, rotateKeys } from '../src/auth/keys.ts'
import { answer, newCommand, newGroup } from './command.ts'
import { withSession } from './session.ts'

type Json = { json?: boolean }

export function keysCommand(environment: NodeJS.ProcessEnv): Command {
  return newGroup('keys', 'list, rotate and revoke the keys that sign tokens', ['keys list', 'keys rotate'])
    .addCommand(listCommand(environment))
    .addCommand(rotateCommand(environment))
    .addCommand(revokeCommand(environment))
}

function listCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'list the keys: kid, algorithm, when it was made, what it does; tabs between, a line each'
  return newCommand('list', description, ['keys list']).action((options: Json) =>
    withSession(environment, async ({ db }) => {
      const value = await listKeys(db)
      const lines = value.map(key => [key.kid, key.algorithm, key.created_at, dutyOf(key)].join('\t'))
      answer(options, { value, lines })
    }),
  )
}

function dutyOf({ signs, vouches_until }: ListedKey): string {
  if (signs) return 'signs'
  return vouches_until === null ? 'verifies' : `verifies until ${vouches_until}`
}

function rotateCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'sign with a new key from now on; tokens of the older ones are good until they expire'
  return newCommand('rotate', description, ['keys rotate']).action((options: Json) =>
    withSession(environment, async ({ db }) => {
      const kid = await rotateKeys(db)
      answer(options, { value: { kid }, said: [`the key ${kid} signs from now on`] })
    }),
  )
}

function revokeCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'end an older key, which somebody else may know: its tokens are refused within ten seconds'
  return newCommand('revoke', description, ['keys revoke NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs'])
    .argument('<kid>', 'the kid that list shows')
    .action((kid: string, options: Json) =>
      withSession(environment, async ({ db }) => {
        await revokeKey(db, kid)
        answer(options, { value: { kid }, said: [`revoked the key ${kid}`] })
      }),
    )
}
