import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import type { Command } from 'commander'
import { type Client, createClient, KithConnectionError } from '../client/index.ts'
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
}

export type Connection = { client: Client; url: string }

// A token of our own is made anew long before it ends.
const own_token_seconds = 3_600
const renewal_share = 0.5
const token_timeout_ms = 12_000

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
  const getToken = await tokenSource(environment, options, { url, scope })
  const address = url ?? localAddress(environment)
  return { client: createClient({ url: address, getToken, ...(retries !== undefined && { retries }) }), url: address }
}

function localAddress(environment: NodeJS.ProcessEnv): string {
  const { host, port, tls } = loadConfig(environment)
  return `${tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`
}

type Wanted = { url: string | undefined; scope: string }

async function tokenSource(
  environment: NodeJS.ProcessEnv,
  options: ConnectionOptions,
  { url, scope }: Wanted,
): Promise<() => Promise<string>> {
  const client_id = options.clientId ?? environment.KITH_CLIENT_ID
  const ways = [options.token, options.tokenFile, options.clientId].filter(way => way !== undefined)
  if (ways.length > 1) throw new UsageError('Give one of --token, --token-file and --client-id.')
  if (options.tokenFile !== undefined) {
    const token = await readToken(options.tokenFile, environment)
    return async () => token
  }
  const token = options.token ?? (client_id ? undefined : environment.KITH_TOKEN || environment.TOKEN)
  if (token) return async () => token
  if (client_id) {
    const secret = options.clientSecret ?? environment.KITH_CLIENT_SECRET
    if (!secret) throw new UsageError('The secret of the client is needed, by KITH_CLIENT_SECRET or --client-secret.')
    return renewed(() => fetchToken(url ?? localAddress(environment), client_id, secret))
  }
  if (url) throw new UsageError(`A token with the scope ${scope} is needed, by --token, --token-file or KITH_TOKEN.`)
  const wanted = { org: options.org ?? 'default', scope, ttl: own_token_seconds, subject: 'cli' }
  return renewed(async () => ({
    token: await withSession(environment, session => makeToken(session, wanted)),
    seconds: own_token_seconds,
  }))
}

async function readToken(file: string, environment: NodeJS.ProcessEnv): Promise<string> {
  return (file === '-' ? await text(process.stdin) : await readFile(pathOf(environment, file), 'utf8')).trim()
}

/** A file as its name was typed: npm changes to the folder of the package before it runs a script. */
export function pathOf(environment: NodeJS.ProcessEnv, file: string): string {
  return environment.npm_lifecycle_event === 'kith' ? resolve(environment.INIT_CWD ?? '', file) : file
}

type Issued = { token: string; seconds: number }

function renewed(issue: () => Promise<Issued>): () => Promise<string> {
  let current: { token: string; until_ms: number } | undefined
  return async () => {
    if (current === undefined || Date.now() > current.until_ms) {
      const { token, seconds } = await issue()
      current = { token, until_ms: Date.now() + seconds * 1_000 * renewal_share }
    }
    return current.token
  }
}

async function fetchToken(url: string, client_id: string, client_secret: string): Promise<Issued> {
  const body = new URLSearchParams({ grant_type: 'client_credentials', client_id, client_secret })
  const init: RequestInit = { method: 'POST', body, redirect: 'error', signal: AbortSignal.timeout(token_timeout_ms) }
  const response = await fetch(`${url.replace(/\/+$/, '')}/oauth/token`, init).catch(cause => {
    throw new KithConnectionError(`${url} cannot be reached for a token.`, { cause })
  })
  const granted = (await response.json().catch(() => ({}))) as {
    access_token?: string
    expires_in?: number
    error_description?: string
    message?: string
  }
  if (!response.ok || !granted.access_token)
    throw new KithConnectionError(
      granted.error_description ?? granted.message ?? `POST /oauth/token answered ${response.status}.`,
      { status: response.status },
    )
  return { token: granted.access_token, seconds: granted.expires_in ?? own_token_seconds }
}
