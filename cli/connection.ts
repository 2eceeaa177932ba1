import { randomUUID } from 'node:crypto'
import { type Client, type ClientOptions, createClient } from '../client/index.ts'
import { makeListedToken } from '../src/auth/issued-tokens.ts'
import { issueToken } from '../src/auth/token.ts'
import { contextOf } from '../src/db/context.ts'
import { loadConfig } from '../src/process/config.ts'
import { readServedAddress } from '../src/process/served-address.ts'
import { splitScopes } from '../src/route/scopes.ts'
import { UsageError } from './command.ts'
import { readInput } from './files.ts'
import { defaultProfile, findProfile, type Profile } from './profiles/profile-files.ts'
import { recordOperation, requireOrganization, type Session, withSession } from './session.ts'
import { createTokenCache, ownTokenSeconds } from './token-cache.ts'

/** The options that select a service and its credentials. */
export type ConnectionOptions = {
  profile?: string | undefined
  url?: string
  token?: string
  tokenFile?: string
  clientId?: string
  clientSecret?: string
  org?: string
  subject?: string
}

/** The address of a service, and the credentials as a client takes them. */
export type Target = { url: string } & Access

/**
 * Connects to the service that the options or the environment name, or a profile. Without any of them this is the service of this
 * machine (PORT, and DATABASE_URL or KITH_DATA_DIR), and the command creates its own tokens with `scope`. Throws a
 * UsageError if the options contradict each other or the credentials are incomplete.
 */
export async function connect(
  environment: NodeJS.ProcessEnv,
  options: ConnectionOptions,
  { scope, ...settings }: { scope: string } & Pick<ClientOptions, 'fetch'>,
): Promise<Client> {
  const target = await resolveTarget(environment, options, scope)
  return createClient({ ...target, ...settings } as ClientOptions)
}

/** The work of a command through a service, and the same work on the database that {@link withSession} opens. */
type Places<T> = {
  service: (client: Client, url: string) => Promise<T>
  database: (session: Session, organizationKey: string | undefined) => Promise<T>
}

/**
 * Runs a command at the service that {@link connect} finds. With `--org`, or if `connect` would create a token on the
 * database, the command runs on the database instead.
 */
export async function atServiceOrDatabase<T>(
  environment: NodeJS.ProcessEnv,
  options: ConnectionOptions,
  scope: string,
  { service, database }: Places<T>,
): Promise<T> {
  const { org } = options
  if (org === undefined) {
    const target = await resolveTarget(environment, options, scope)
    if (!target.getToken) return service(createClient(target as ClientOptions), target.url)
  } else if ([...serviceOptions, 'profile' as const].some(name => options[name] !== undefined))
    throw new UsageError('--org selects the database of this machine. Leave it out, or the options of a service.')
  return withSession(environment, session => database(session, org))
}

/** Finds the service and the credentials of a command, as {@link connect} does. */
export async function resolveTarget(
  environment: NodeJS.ProcessEnv,
  options: ConnectionOptions,
  scope: string,
): Promise<Target> {
  const profile = await selectProfile(environment, options)
  if (profile !== null) return { url: profile.url, ...accessOf(profile) }
  const url = options.url ?? (environment.KITH_URL || undefined)
  if (url !== undefined) requireUrl(url)
  const access = await resolveAccess(environment, options, { url, scope })
  return { url: url ?? localAddress(environment), ...access }
}

/** Throws a UsageError unless the text is the URL of a service. */
export function requireUrl(url: string): void {
  if (!/^https?:/.test(URL.parse(url)?.protocol ?? ''))
    throw new UsageError(`${JSON.stringify(url)} is not a URL. Give one such as https://kith.example.org.`)
}

const accessOf = ({ token, client_id, client_secret }: Profile): Access =>
  token === undefined ? { clientCredentials: { clientId: client_id, clientSecret: client_secret } } : { token }

/**
 * The profile of a command, or null. A profile is used as a whole, so neither its token nor a token of the environment
 * goes to the wrong service.
 */
async function selectProfile(environment: NodeJS.ProcessEnv, options: ConnectionOptions): Promise<Profile | null> {
  const { profile, ...others } = options
  const given = [...serviceOptions, ...databaseOptions].find(name => others[name] !== undefined)
  if (profile !== undefined && given !== undefined)
    throw new UsageError(
      'A profile has an address and credentials. Leave out --profile, or the options that name them.',
    )
  if (profile !== undefined) return requireProfile(environment, profile)
  if (given !== undefined || environment.KITH_URL) return null
  if (environment.KITH_PROFILE) return requireProfile(environment, environment.KITH_PROFILE)
  if (environment.KITH_TOKEN || environment.KITH_CLIENT_ID) return null
  return findProfile(environment, defaultProfile)
}

const serviceOptions = ['url', 'token', 'tokenFile', 'clientId', 'clientSecret'] as const
const databaseOptions = ['org', 'subject'] as const

async function requireProfile(environment: NodeJS.ProcessEnv, name: string): Promise<Profile> {
  const profile = await findProfile(environment, name)
  if (profile !== null) return profile
  throw new UsageError(
    `There is no profile ${JSON.stringify(name)}. See kith profiles, or run kith login --profile ${name}.`,
  )
}

/**
 * The address of the service of this machine: from HOST and PORT if one is set, else from the service that runs on the
 * data folder.
 */
export function localAddress(environment: NodeJS.ProcessEnv): string {
  const { host, port, tls, databaseUrl, dataDir } = loadConfig(environment)
  const isSet = environment.HOST !== undefined || environment.PORT !== undefined
  const served = isSet || databaseUrl !== undefined ? undefined : readServedAddress(dataDir)
  if (served !== undefined) return served
  return `${tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`
}

type AccessOptions = { url: string | undefined; scope: string }

/** The credentials that a client takes: exactly one of the three. */
export type Access = Pick<ClientOptions, 'token' | 'getToken' | 'clientCredentials'>

/**
 * Reads the credentials from the options or the environment. Without a `url`, the command may create its own tokens.
 */
export async function resolveAccess(
  environment: NodeJS.ProcessEnv,
  options: ConnectionOptions,
  { url, scope }: AccessOptions,
): Promise<Access> {
  const clientId = options.clientId ?? environment.KITH_CLIENT_ID
  const explicitCredentials = [options.token, options.tokenFile, options.clientId].filter(value => value !== undefined)
  if (explicitCredentials.length > 1) throw new UsageError('Give one of --token, --token-file and --client-id.')
  const hasGivenAccess = explicitCredentials.length > 0 || clientId || environment.KITH_TOKEN || url
  const own = hasGivenAccess && databaseOptions.find(name => options[name] !== undefined)
  if (own)
    throw new UsageError(
      `--${own} applies only to a token that the command creates itself. A token, as of KITH_TOKEN, has its own organization and subject.`,
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
  const tokenOptions = { org: options.org, scope, ttl: ownTokenSeconds, subject: options.subject }
  return { getToken: createTokenCache(() => withSession(environment, session => makeToken(session, tokenOptions))) }
}

type TokenOptions = {
  org?: string | undefined
  scope: string
  role?: string | undefined
  ttl: number
  subject?: string | undefined
}

/**
 * Creates a token for another caller. The list of tokens includes it. Throws if the organization or a scope does not
 * exist, or if another caller has the name.
 */
export async function makeTokenForOthers(session: Session, options: TokenOptions): Promise<string> {
  const { db } = session
  const { org = 'default', scope, role, ttl, subject = ownSubject } = options
  const { id, key } = await requireOrganization(db, org)
  const request = { organizationKey: key, scope: splitScopes(scope).join(' '), subject, role, ttlSeconds: ttl }
  const author = { actor: ownSubject, request_id: randomUUID() }
  const { token, jti } = await makeListedToken(contextOf(db, id), author, request)
  await recordOperation(session, [id], { event: 'token_created', target: jti, command: 'kith token' })
  return token
}

const ownSubject = 'cli'

/** Creates a token for a command, signed with the service's key. Throws if the organization or a scope does not exist. */
export async function makeToken({ db }: Session, options: TokenOptions): Promise<string> {
  const { org = 'default', scope, ttl, subject = ownSubject } = options
  const { key } = await requireOrganization(db, org)
  return issueToken(db, { organizationKey: key, scope, subject, ttlSeconds: ttl })
}
