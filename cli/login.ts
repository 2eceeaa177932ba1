import { type ClientOptions, createClient, isKithError } from '../client/index.ts'
import { type Result, UsageError } from './command.ts'
import { type Access, type ConnectionOptions, requireUrl, resolveAccess } from './connection.ts'
import { readInput } from './files.ts'
import { newCommand, newListCommand } from './kith-command.ts'
import {
  defaultProfile,
  deleteProfile,
  findProfile,
  listProfiles,
  type Profile,
  requireProfileName,
  storeProfile,
} from './profiles/profile-files.ts'

type LoginOptions = Pick<ConnectionOptions, 'token' | 'tokenFile' | 'clientId' | 'clientSecret'> & Named
type Named = { url: string; profile: string }

const nameOption = ['--profile <name>', 'The name of the profile.', { default: defaultProfile }] as const

export const loginCommand = (environment: NodeJS.ProcessEnv) =>
  newCommand(
    environment,
    'login',
    'Checks an address and credentials, and stores them as a profile, in a file that only you may read. Commands that name no ' +
      'service use the profile "default".',
  )
    .examples(
      'login --url https://kith.example.org --token - < token.txt',
      'login --url https://kith.example.org --client-id acme.Zm9vYmFyYmF6cXV4 --client-secret - --profile acme < secret.txt',
    )
    .option('--url <url>', 'The address of the service.', { required: true })
    .option('--token <token>', 'A token, or - for standard input. Default: KITH_TOKEN.')
    .option('--token-file <file>', 'A file that holds the token, or - for standard input.')
    .option('--client-id <id>', 'A client. Commands fetch and renew its tokens. Default: KITH_CLIENT_ID.')
    .option(
      '--client-secret <secret>',
      'The secret of the client, or - for standard input. Default: KITH_CLIENT_SECRET.',
    )
    .option(...nameOption)
    .action(options => login(environment, options))

async function login(environment: NodeJS.ProcessEnv, options: LoginOptions): Promise<Result> {
  const { url, profile } = options
  requireUrl(url)
  requireProfileName(profile)
  const access = await resolveAccess(environment, await withInput(environment, options), { url, scope: 'schema:read' })
  const organization = await organizationOf({ url, ...access } as ClientOptions)
  const file = await storeProfile(environment, profile, profileOf(url, access))
  const of = organization === null ? '' : ` to the organization ${organization}`
  return {
    value: { profile, url, organization, file },
    messages: [`Logged in${of} at ${url}. The profile ${profile} is in ${file}.`],
  }
}

/** The options, with the secret from standard input. */
async function withInput(environment: NodeJS.ProcessEnv, options: LoginOptions): Promise<LoginOptions> {
  const { token, clientSecret, ...others } = options
  const inputs = [token, options.tokenFile, clientSecret].filter(value => value === '-')
  if (inputs.length > 1) throw new UsageError('Standard input holds one secret. Give only one option as -.')
  if (token === '-') return withInput(environment, { ...others, tokenFile: '-', ...(clientSecret && { clientSecret }) })
  if (clientSecret !== '-') return options
  return { ...options, clientSecret: (await readInput(environment, '-')).toString().trim() }
}

/** The organization of the credentials, or null if they may not read it. Throws if the service refuses them. */
async function organizationOf(options: ClientOptions): Promise<string | null> {
  try {
    return (await createClient(options).organization()).key
  } catch (error) {
    if (isKithError(error, 'forbidden')) return null
    throw error
  }
}

function profileOf(url: string, { token, clientCredentials }: Access): Profile {
  if (clientCredentials)
    return { url, client_id: clientCredentials.clientId, client_secret: clientCredentials.clientSecret }
  return { url, token: token! }
}

export const logoutCommand = (environment: NodeJS.ProcessEnv) =>
  newCommand(environment, 'logout', 'Deletes a profile. Its token stays valid until it expires.')
    .examples('logout', 'logout --profile acme')
    .option(...nameOption)
    .action(async ({ profile }) => {
      if (!(await deleteProfile(environment, profile)))
        throw new Error(`There is no profile ${JSON.stringify(profile)}. See kith profiles.`)
      return { value: { profile }, messages: [`Deleted the profile ${profile}.`] }
    })

export const profilesCommand = (environment: NodeJS.ProcessEnv) =>
  newListCommand(environment, ['name', 'url', 'credentials'], 'profiles', 'Lists the profiles. Shows no secret.')
    .examples('profiles')
    .action(async () => {
      const profiles = []
      for (const name of await listProfiles(environment)) {
        const profile = await findProfile(environment, name)
        if (profile !== null) profiles.push({ name, url: profile.url, credentials: credentialsOf(profile) })
      }
      return profiles
    })

const credentialsOf = ({ client_id }: Profile) => (client_id === undefined ? 'token' : `client ${client_id}`)
