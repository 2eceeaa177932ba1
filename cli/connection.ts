import type { Command } from 'commander'
import { type Client, type ClientOptions, createClient } from '../client/index.ts'
import { loadConfig } from '../src/config.ts'
import { UsageError } from './command.ts'
import { readInput } from './files.ts'
import { withSession } from './session.ts'
import { makeToken } from './token.ts'
import { createTokenCache, ownTokenSeconds } from './token-cache.ts'

/** The service that a command connects to, and the credentials. */
export type ConnectionOptions = {
  url?: string
  token?: string
  tokenFile?: string
  clientId?: string
  clientSecret?: string
  org?: string
  subject?: string
}

export type Connection = { client: Client; url: string }

/** Adds the options that name the service and the credentials. */
export function addConnectionOptions(command: Command): Command {
  return command
    .option('--url <url>', 'The address of the service. Default: KITH_URL, else the service of this machine.')
    .option('--token <token>', 'A token. Default: KITH_TOKEN.')
    .option('--token-file <file>', 'A file that holds the token, or - for standard input.')
    .option('--client-id <id>', 'A client. The command fetches and renews its tokens. Default: KITH_CLIENT_ID.')
    .option(
      '--client-secret <secret>',
      'The secret of the client. Prefer KITH_CLIENT_SECRET, which no process list shows.',
    )
    .option('--org <key>', 'The organization, on the machine of the service and without a token. Default: default.')
}

/**
 * Connects to the service that the options or the environment name. Without an address this is the service of this
 * machine (PORT, and DATABASE_URL or KITH_DATA_DIR), and the command creates its own tokens with `scope`. Throws a
 * UsageError if the options contradict each other or the credentials are incomplete.
 */
export async function connect(
  environment: NodeJS.ProcessEnv,
  options: ConnectionOptions,
  { scope, retries }: { scope: string; retries?: number },
): Promise<Connection> {
  const url = options.url ?? (environment.KITH_URL || undefined)
  if (url !== undefined && !/^https?:/.test(URL.parse(url)?.protocol ?? ''))
    throw new UsageError(`${JSON.stringify(url)} is not a URL. Give one such as https://kith.example.org.`)
  const access = await resolveAccess(environment, options, { url, scope })
  const address = url ?? localAddress(environment)
  const clientOptions = { url: address, ...access, ...(retries !== undefined && { retries }) } as ClientOptions
  return { client: createClient(clientOptions), url: address }
}

function localAddress(environment: NodeJS.ProcessEnv): string {
  const { host, port, tls } = loadConfig(environment)
  return `${tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`
}

type AccessOptions = { url: string | undefined; scope: string }
type Access = Pick<ClientOptions, 'token' | 'getToken' | 'clientCredentials'>

async function resolveAccess(
  environment: NodeJS.ProcessEnv,
  options: ConnectionOptions,
  { url, scope }: AccessOptions,
): Promise<Access> {
  const clientId = options.clientId ?? environment.KITH_CLIENT_ID
  const explicitCredentials = [options.token, options.tokenFile, options.clientId].filter(value => value !== undefined)
  if (explicitCredentials.length > 1) throw new UsageError('Give one of --token, --token-file and --client-id.')
  const hasGivenAccess = explicitCredentials.length > 0 || clientId || environment.KITH_TOKEN || url
  if (options.subject !== undefined && hasGivenAccess)
    throw new UsageError(
      '--subject applies only to a token that the command creates itself. A given token has its own subject.',
    )
  if (options.tokenFile !== undefined)
    return { token: (await readInput(environment, options.tokenFile)).toString().trim() }
  const token = options.token ?? (clientId ? undefined : environment.KITH_TOKEN)
  if (token) return { token }
  if (clientId) {
    const clientSecret = options.clientSecret ?? environment.KITH_CLIENT_SECRET
    if (!clientSecret) throw new UsageError('The client secret is missing. Set KITH_CLIENT_SECRET or --client-secret.')
    return { clientCredentials: { clientId, clientSecret } }
  }
  if (url) throw new UsageError(`A token with the scope ${scope} is missing. Use --token, --token-file or KITH_TOKEN.`)
  const tokenOptions = { org: options.org ?? 'default', scope, ttl: ownTokenSeconds, subject: options.subject ?? 'cli' }
  return { getToken: createTokenCache(() => withSession(environment, session => makeToken(session, tokenOptions))) }
}
