import { randomUUID } from 'node:crypto'
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { parsedJson } from '../../transfer/parsed-json.ts'
import { UsageError } from '../command.ts'
import { readFileOrNull } from '../files.ts'

/** A service and the credentials for it, under a name. */
export type Profile = { url: string } & (
  | { token: string; client_id?: never; client_secret?: never }
  | { client_id: string; client_secret: string; token?: never }
)

/** The profile of a command that names neither a service nor a profile. */
export const defaultProfile = 'default'

const extension = '.json'

/** Whether a text can name a profile. The name is also a file name, so it has no separator. */
const isProfileName = (name: string): boolean => /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/.test(name)

/**
 * The folder of the profiles: `kith/profiles` below XDG_CONFIG_HOME, which is `.config` in the home folder by default. Null if the
 * environment names neither.
 */
function folderOf({ XDG_CONFIG_HOME, HOME, USERPROFILE }: NodeJS.ProcessEnv): string | null {
  const home = HOME || USERPROFILE
  const configuration = XDG_CONFIG_HOME || (home && join(home, '.config'))
  return configuration ? join(configuration, 'kith', 'profiles') : null
}

/** Throws a UsageError if a text cannot be the name of a profile. */
export function requireProfileName(name: string): void {
  if (!isProfileName(name))
    throw new UsageError(
      `${JSON.stringify(name)} is not the name of a profile. Use up to 63 letters, digits, dots, hyphens and underscores.`,
    )
}

/** The file of a profile, or null without a folder. */
function fileOf(environment: NodeJS.ProcessEnv, name: string): string | null {
  requireProfileName(name)
  const folder = folderOf(environment)
  return folder && join(folder, name + extension)
}

/** Reads a profile. Null if there is none. Throws if the file is not a profile. */
export async function findProfile(environment: NodeJS.ProcessEnv, name: string): Promise<Profile | null> {
  const file = fileOf(environment, name)
  const text = file === null ? null : await readFileOrNull(file)
  if (text === null) return null
  const profile = parse(text)
  if (profile === null) throw new Error(`${file} is not a profile of kith. Run kith login --profile ${name} again.`)
  return profile
}

function parse(text: string): Profile | null {
  const { url, token, client_id, client_secret } = (parsedJson(text) ?? {}) as Record<string, unknown>
  if (typeof url !== 'string') return null
  if (typeof token === 'string') return { url, token }
  return typeof client_id === 'string' && typeof client_secret === 'string' ? { url, client_id, client_secret } : null
}

/**
 * Stores a profile in a file that only its owner may read, and returns the path. The file is replaced atomically, so a
 * process that dies leaves either the old file or the new one.
 */
export async function storeProfile(environment: NodeJS.ProcessEnv, name: string, profile: Profile): Promise<string> {
  const file = fileOf(environment, name)
  if (file === null)
    throw new UsageError('There is no folder for profiles. Set XDG_CONFIG_HOME to the folder of your configuration.')
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  const next = `${file}.${randomUUID()}`
  try {
    await writeFile(next, `${JSON.stringify(profile, null, 2)}\n`, { mode: 0o600, flag: 'wx', flush: true })
    await rename(next, file)
  } catch (error) {
    await rm(next, { force: true })
    throw error
  }
  return file
}

/** Deletes a profile. Returns whether there was one. */
export async function deleteProfile(environment: NodeJS.ProcessEnv, name: string): Promise<boolean> {
  const file = fileOf(environment, name)
  try {
    if (file !== null) await rm(file)
    return file !== null
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
}

/** The names of all profiles, in alphabetical order. */
export async function listProfiles(environment: NodeJS.ProcessEnv): Promise<string[]> {
  const folder = folderOf(environment)
  if (folder === null) return []
  const files = await readdir(folder).catch(error => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  return files
    .filter(file => file.endsWith(extension))
    .map(file => file.slice(0, -extension.length))
    .filter(isProfileName)
    .sort()
}
