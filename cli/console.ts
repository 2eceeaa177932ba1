import { defaultOrganizationKey } from '../src/organizations/organizations.ts'
import { scopes } from '../src/route/scopes.ts'
import { codeSeconds } from '../src/sessions/sessions.ts'
import { createSignInLink, operatorName } from '../src/sessions/sign-in-link.ts'
import { localAddress } from './connection.ts'
import { newCommand } from './kith-command.ts'

export const consoleCommand = (environment: NodeJS.ProcessEnv) =>
  newCommand(
    environment,
    'console',
    `Prints a link that signs in to the console, once and within ${codeSeconds} seconds. The session lasts 12 hours.`,
  )
    .examples('console', 'console --org default --scope "people:read people:write"')
    .option('--org <key>', 'The organization.', { default: defaultOrganizationKey })
    .option('--scope <scopes>', 'The scopes of the session, separated by spaces. Default: all.', {
      default: scopes.join(' '),
    })
    .option('--name <name>', 'The name in the change log. Default: the user of this machine.')
    .onDatabase(async ({ db, config }, { org: organizationKey, scope, name = operatorName() }) => {
      const base = config.publicUrl ?? localAddress(environment)
      const url = await createSignInLink(db, { base, organizationKey, scope, name })
      return { value: { url, expires_in: codeSeconds }, lines: [url] }
    })
