import { type Command, InvalidArgumentError } from 'commander'
import { issueToken } from '../src/auth/token.ts'
import { findOrganization, isOrganizationKey } from '../src/organizations/organizations.ts'
import { scopes } from '../src/scopes.ts'
import { newCommand, printResult } from './command.ts'
import { type Session, withSession } from './session.ts'

type TokenOptions = { org: string; scope: string; ttl: number; subject: string }

export function tokenCommand(environment: NodeJS.ProcessEnv): Command {
  return newCommand('token', 'Creates a token and prints it, and nothing else.', [
    'token --org default --scope "people:read people:write"',
  ])
    .requiredOption('--org <key>', 'The organization of the token.')
    .requiredOption('--scope <scopes>', `The scopes, separated by spaces: ${scopes.join(' ')}.`)
    .option('--ttl <seconds>', 'The lifetime.', parseSeconds, 3_600)
    .option('--subject <name>', 'The subject, recorded as the actor of every change.', 'cli')
    .action(async ({ json, ...options }: TokenOptions & { json?: boolean }) => {
      const token = await withSession(environment, session => makeToken(session, options))
      printResult({ json }, { value: { token, expires_in: options.ttl, scope: options.scope }, lines: [token] })
    })
}

/** Creates a token, signed with the service's key. Throws if the organization or a scope does not exist. */
export async function makeToken({ db }: Session, { org, scope, ttl, subject }: TokenOptions): Promise<string> {
  if (!isOrganizationKey(org) || !(await findOrganization(db, org)))
    throw new Error(`There is no organization ${JSON.stringify(org)}. See kith org list, or run kith org create.`)
  return issueToken(db, { organizationKey: org, scope, subject, ttlSeconds: ttl })
}

function parseSeconds(text: string): number {
  if (!/^[1-9]\d{0,15}$/.test(text)) throw new InvalidArgumentError('Give whole seconds, 1 or more.')
  return Number(text)
}
