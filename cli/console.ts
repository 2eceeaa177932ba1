import type { Command } from 'commander'
import { defaultOrganizationKey } from '../src/organizations/organizations.ts'
import { scopes } from '../src/route/scopes.ts'
import { codeSeconds } from '../src/sessions/sessions.ts'
import { createSignInLink, operatorName } from '../src/sessions/sign-in-link.ts'
import { newCommand, printResult } from './command.ts'
import { localAddress } from './connection.ts'
import { withSession } from './session.ts'

type ConsoleOptions = { org: string; scope: string; name?: string; json?: boolean }

export function consoleCommand(environment: NodeJS.ProcessEnv): Command {
  const description = `Prints a link that signs in to the console, once and within ${codeSeconds} seconds. The session lasts 12 hours.`
  return newCommand('console', description, ['console', 'console --org default --scope "people:read people:write"'])
    .option('--org <key>', 'The organization.', defaultOrganizationKey)
    .option('--scope <scopes>', 'The scopes of the session, separated by spaces. Default: all.', scopes.join(' '))
    .option('--name <name>', 'The name in the change log. Default: the user of this machine.')
    .action(async ({ org, scope, name = operatorName(), json }: ConsoleOptions) => {
      const url = await withSession(environment, ({ db, config }) =>
        createSignInLink(db, {
          base: config.publicUrl ?? localAddress(environment),
          organizationKey: org,
          scope,
          name,
        }),
      )
      printResult({ json }, { value: { url, expires_in: codeSeconds }, lines: [url] })
    })
}
