import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import type { Command } from 'commander'
import { type Client, type ClientOptions, createClient } from '../client/index.ts'
import { loadConfig } from '../src/config.ts'
import { UsageError } from './command.ts'
import { withSession } from './session.ts'
import { makeToken } from './token.ts'

/** Which service a command speaks to, and for whom. */
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

// A token of our own is made anew long before it ends.
const ownTokenSeconds = 3_600
const renewalShare = 0.5

/** The options that tell a command which service to speak to. */
export function withConnection(command: Command): Command {
  return command
    .option('--url <url>', 'where the service is; else KITH_URL; else the one of this machine')
    .option('--token <token>', 'a token; else KITH_TOKEN')
    .option('--token-file <file>', 'a file that holds the token, - for standard input')
    .option('--client-id <id>', 'a client that fetches its tokens itself; else KITH_CLIENT_ID')
    .option('--client-secret <secret>', 'its secret; better KITH_CLIENT_SECRET, which no list of processes shows')
    .option('--org <key>', 'on this machine, without a token: the organization; else default')
}

/**
 * A client of the service that the options or the environment name. Without an address it is the service of this
 * machine, as PORT and DATABASE_URL or KITH_DATA_DIR say, and tokens with `scope` are made as they are needed.
 */
export async function connect(
  environment: NodeJS.ProcessEnv,
  options: ConnectionOptions,
  { scope, retries }: { scope: string; retries?: number },
): Promise<Connection> {
  const url = options.url ?? (environment.KITH_URL || environment.SERVICE_URL || undefined)
  if (url !== undefined && !/^https?:/.test(URL.parse(url)?.protocol ?? ''))
    throw new UsageError(`${JSON.stringify(url)} is no URL such as https://kith.example.org.`)
  const access = await accessOf(environment, options, { url, scope })
  const address = url ?? localAddress(environment)
  const told = { url: address, ...access, ...(retries !== undefined && { retries }) } as ClientOptions
  return { client: createClient(told), url: address }
}

function localAddress(environment: NodeJS.ProcessEnv): string {
  const { host, port, tls } = loadConfig(environment)
  return `${tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`
}

type Wanted = { url: string | undefined; scope: string }
type Access = Pick<ClientOptions, 'token' | 'getToken' | 'clientCredentials'>

async function accessOf(
  environment: NodeJS.ProcessEnv,
  options: ConnectionOptions,
  { url, scope }: Wanted,
): Promise<Access> {
  const clientId = options.clientId ?? environment.KITH_CLIENT_ID
  const ways = [options.token, options.tokenFile, options.clientId].filter(way => way !== undefined)
  if (ways.length > 1) throw new UsageError('Give one of --token, --token-file and --client-id.')
  const given = ways.length > 0 || clientId || environment.KITH_TOKEN || environment.TOKEN || url
  if (options.subject !== undefined && given)
    throw new UsageError('--subject is for a token that the command makes itself: one that is given has its own.')
  if (options.tokenFile !== undefined) return { token: await readToken(options.tokenFile, environment) }
  const token = options.token ?? (clientId ? undefined : environment.KITH_TOKEN || environment.TOKEN)
  if (token) return { token }
  if (clientId) {
    const clientSecret = options.clientSecret ?? environment.KITH_CLIENT_SECRET
    if (!clientSecret)
      throw new UsageError('The secret of the client is needed, by KITH_CLIENT_SECRET or --client-secret.')
    return { clientCredentials: { clientId, clientSecret } }
  }
  if (url) throw new UsageError(`A token with the scope ${scope} is needed, by --token, --token-file or KITH_TOKEN.`)
  const wanted = { org: options.org ?? 'default', scope, ttl: ownTokenSeconds, subject: options.subject ?? 'cli' }
  return { getToken: renewed(() => withSession(environment, session => makeToken(session, wanted))) }
}

async function readToken(file: string, environment: NodeJS.ProcessEnv): Promise<string> {
  return (file === '-' ? await text(process.stdin) : await readFile(pathOf(environment, file), 'utf8')).trim()
}

/** A file as its name was typed: npm changes to the folder of the package before it runs a script. */
export function pathOf(environment: NodeJS.ProcessEnv, file: string): string {
  return environment.npm_lifecycle_event === 'kith' ? resolve(environment.INIT_CWD ?? '', file) : file
}

function renewed(makeToken: () => Promise<string>): () => Promise<string> {
  let current: { token: string; untilMs: number } | undefined
  return async () => {
    if (current === undefined || Date.now() > current.untilMs)
      current = { token: await makeToken(), untilMs: Date.now() + ownTokenSeconds * 1_000 * renewalShare }
    return current.token
  }
}
