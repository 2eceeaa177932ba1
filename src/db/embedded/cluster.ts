import { randomBytes } from 'node:crypto'
import { chmod, chown, lstat, mkdir, mkdtemp, open, readFile, realpath, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type Binaries, findBinaries, openSharedFolder } from './binaries.ts'
import { EmbeddedError } from './error.ts'
import { makeWorkFolder, publish, removeLeftovers, removeWorkFolder } from './initialisation.ts'
import { canEnter, run, type ServerUser, unprivilegedUser } from './processes.ts'

/**
 * An initialised PostgreSQL. `path` holds `data/` (the server's data), `password`, `socket` (the path of the socket folder)
 * and `server.log`.
 */
export type Cluster = Readonly<{
  path: string
  user: ServerUser
  binaries: Binaries
  password: string
  /** Undefined for the default of a server. */
  sharedBuffersMb?: number | undefined
}>

export const superuser = 'kith'

/**
 * Opens the PostgreSQL of a data folder, and initialises it first if there is none. `dataDir` is absolute.
 * Throws {@link EmbeddedError}.
 */
export async function openCluster(dataDir: string, log: (line: string) => void): Promise<Cluster> {
  await makeDataFolder(dataDir)
  const finalPath = join(dataDir, 'postgresql')
  const user = (await ownerOf(finalPath)) ?? (await unprivilegedUser())
  const binaries = await findBinaries(user)
  if (!(await lstat(finalPath).catch(() => undefined))) await initialise(dataDir, finalPath, user, binaries, log)
  await removeLeftovers(dataDir, finalPath, { settled: true })
  const cluster = await readCluster(finalPath, user, binaries)
  log(`the data of the embedded PostgreSQL ${binaries.major} is in ${cluster.path}`)
  return cluster
}

async function makeDataFolder(dataDir: string) {
  // If root starts the service, the server runs as another user, which must be able to enter the folder.
  const mode = process.getuid?.() === 0 ? 0o711 : 0o700
  if (await makeFolder(dataDir, mode)) await chmod(dataDir, mode)
}

/**
 * Makes a folder and its parents. Resolves with true if the folder is new. Node's recursive mkdir never returns if a folder
 * cannot be made in an existing one, as in /proc.
 */
async function makeFolder(path: string, mode: number): Promise<boolean> {
  const make = () =>
    mkdir(path, { mode }).then(
      () => true,
      (error: NodeJS.ErrnoException) => {
        if (error.code === 'EEXIST') return false
        throw error
      },
    )
  const parent = dirname(path)
  if (parent !== path && !(await stat(parent).catch(() => undefined))) await makeFolder(parent, mode)
  return make()
}

/** For root: the owner of the existing data. The server keeps running as that user. */
async function ownerOf(finalPath: string): Promise<ServerUser> {
  if (process.getuid?.() !== 0) return undefined
  const owner = await stat(join(finalPath, 'data')).catch(() => undefined)
  return owner && owner.uid !== 0 ? { uid: owner.uid, gid: owner.gid } : undefined
}

async function readCluster(finalPath: string, user: ServerUser, binaries: Binaries): Promise<Cluster> {
  const path = await realpath(finalPath).catch(cause => {
    throw new EmbeddedError(
      `${finalPath} points to data that no longer exist. Restore them, or remove the link to start with empty data.`,
      { cause },
    )
  })
  const major = Number(await readFile(join(path, 'data', 'PG_VERSION'), 'utf8'))
  if (major !== binaries.major)
    throw new EmbeddedError(
      `The data in ${path} belong to PostgreSQL ${major}, but this version of kith runs PostgreSQL ${binaries.major}. Dump them with the version of kith that wrote them, and load them into an empty data folder.`,
    )
  return { path, user, binaries, password: (await readFile(join(path, 'password'), 'utf8')).trim() }
}

/** Makes the data under a temporary name, and renames them when they are complete. If two processes do so at once, one of them wins. */
async function initialise(
  dataDir: string,
  finalPath: string,
  user: ServerUser,
  binaries: Binaries,
  log: (line: string) => void,
) {
  await removeLeftovers(dataDir, finalPath, { settled: false })
  log(`initializing a new PostgreSQL in ${dataDir}`)
  const externalFolder = (await canEnter(user, dataDir))
    ? undefined
    : await mkdtemp(join(await openSharedFolder(), 'data-'))
  const work = await makeWorkFolder(dataDir, externalFolder)
  try {
    await initdb(await realpath(work), user, binaries)
    await publish(work, externalFolder, finalPath)
    await syncFolder(dataDir)
  } catch (error) {
    await removeWorkFolder(work, finalPath)
    if (!(await lstat(finalPath).catch(() => undefined))) throw error
  }
}

async function initdb(path: string, user: ServerUser, binaries: Binaries) {
  const passwordFile = join(path, 'password')
  const data = join(path, 'data')
  await chmod(path, user ? 0o711 : 0o700)
  await writeFile(passwordFile, `${randomBytes(24).toString('hex')}\n`, { mode: 0o600, flush: true })
  await mkdir(data, { mode: 0o700 })
  if (user) for (const path of [passwordFile, data]) await chown(path, user.uid, user.gid)
  const args = [`--pgdata=${data}`, `--username=${superuser}`, `--pwfile=${passwordFile}`]
  const settings = ['--auth=scram-sha-256', '--encoding=UTF8', '--locale=C', '--data-checksums', '--no-instructions']
  const { ok, output } = await run(binaries.initdb, [...args, ...settings], user)
  if (!ok) throw new EmbeddedError(`PostgreSQL could not initialize its data in ${path}:\n${output}`)
  await syncFolder(path)
}

async function syncFolder(path: string) {
  const folder = await open(path)
  await folder.sync().finally(() => folder.close())
}
