import { Command } from 'commander'
import { type ListedKey, listKeys, revokeKey, rotateKeys } from '../src/auth/keys.ts'
import { tell, withSession } from './session.ts'

export function keysCommand(environment: NodeJS.ProcessEnv): Command {
  return new Command('keys')
    .description('list, rotate and revoke the keys that sign tokens')
    .addHelpText('after', '\nExample:\n  npm run -s kith -- keys rotate')
    .addCommand(listCommand(environment))
    .addCommand(rotateCommand(environment))
    .addCommand(revokeCommand(environment))
}

function listCommand(environment: NodeJS.ProcessEnv): Command {
  return new Command('list')
    .description('list the keys: kid, algorithm, when it was made, what it does; tabs between, a line each')
    .addHelpText('after', '\nExample:\n  npm run -s kith -- keys list')
    .action(() =>
      withSession(environment, async ({ db }) => {
        for (const key of await listKeys(db))
          process.stdout.write(`${[key.kid, key.algorithm, key.created_at, dutyOf(key)].join('\t')}\n`)
      }),
    )
}

function dutyOf({ signs, vouches_until }: ListedKey): string {
  if (signs) return 'signs'
  return vouches_until === null ? 'verifies' : `verifies until ${vouches_until}`
}

function rotateCommand(environment: NodeJS.ProcessEnv): Command {
  return new Command('rotate')
    .description('sign with a new key from now on; tokens of the older ones are good until they expire')
    .addHelpText('after', '\nExample:\n  npm run -s kith -- keys rotate')
    .action(() => withSession(environment, async ({ db }) => tell(`the key ${await rotateKeys(db)} signs from now on`)))
}

function revokeCommand(environment: NodeJS.ProcessEnv): Command {
  return new Command('revoke')
    .description('end an older key, which somebody else may know: its tokens are refused within ten seconds')
    .argument('<kid>', 'the kid that list shows')
    .addHelpText('after', '\nExample:\n  npm run -s kith -- keys revoke NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs')
    .action((kid: string) =>
      withSession(environment, async ({ db }) => {
        await revokeKey(db, kid)
        tell(`revoked the key ${kid}`)
      }),
    )
}
