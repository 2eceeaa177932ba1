import { type Command, InvalidArgumentError } from 'commander'
import { scopes } from '../src/auth/scopes.ts'
import { issueToken } from '../src/auth/token.ts'
import { findOrganization, isOrganizationKey } from '../src/organizations/organizations.ts'
import { answer, newCommand } from './command.ts'
import { type Session, withSession } from './session.ts'

type TokenOptions = { org: string; scope: string; ttl: number; subject: string }

export function tokenCommand(environment: NodeJS.ProcessEnv): Command {
  return newCommand('token', 'make a token, and print it and nothing else', [
    'token --org default --scope "people:read people:write"',
  ])
    .requiredOption('--org <key>', 'the organization it speaks for')
    .requiredOption('--scope <scopes>', `what it may do, separated by spaces: ${scopes.join(' ')}`)
    .option('--ttl <seconds>', 'how long it lasts', parseSeconds, 3_600)
    .option('--subject <name>', 'who it stands for; written beside every change', 'cli')
    .action(async ({ json, ...wanted }: TokenOptions & { json?: boolean }) => {
      const token = await withSession(environment, session => makeToken(session, wanted))
      answer({ json }, { value: { token, expires_in: wanted.ttl, scope: wanted.scope }, lines: [token] })
    })
}

/** A token of the service's own key. Throws where the organization or the scope is none. */
export async function makeToken({ db }: Session, { org, scope, ttl, subject }: TokenOptions): Promise<string> {
  if (!isOrganizationKey(org) || !(await findOrganization(db, org)))
    throw new Error(`There is no organization ${JSON.stringify(org)}: see org list, or make it by org create.`)
  return issueToken(db, { organizationKey: org, scope, subject, ttlSeconds: ttl })
}

function parseSeconds(text: string): number {
  if (!/^[1-9]\d{0,15}$/.test(text)) throw new InvalidArgumentError('Give whole seconds, 1 or more.')
  return Number(text)
}
