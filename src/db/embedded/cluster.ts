import { randomBytes } from 'node:crypto'
import {
  chmod,
  chown,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  realpath,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { syncFolder } from '../../process/sync-folder.ts'
import { type Binaries, findBinaries, openSharedFolder, sharedFolder } from './binaries.ts'
import { EmbeddedError } from './error.ts'
import { canEnter, commandLine, run, type ServerUser, unprivilegedUser } from './processes.ts'

/**
 * An initialised PostgreSQL. `path` holds `data/` (the server's data), `password`, `socket` (the path of the socket
 * folder) and `server.log`.
 */
export type Cluster = Readonly<{
  path: string
  user: ServerUser
  binaries: Binaries
  password: string
  /** Undefined for the server's default. */
  sharedBuffersMb?: number | undefined
  /** Settings of this server in addition to the common ones. */
  settings?: Readonly<Record<string, string>>
}>

export const superuser = 'kith'

/**
 * Opens the PostgreSQL of a data folder. Initialises it if the folder has none. `dataDir` is absolute. Throws {@link
 * EmbeddedError}.
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
 * Creates a folder and its parents. Resolves with true if the folder is new. Node's recursive mkdir never returns if a
 * folder cannot be created in an existing one, as in /proc.
 */
async function makeFolder(path: string, mode: number): Promise<boolean> {
  const parent = dirname(path)
  if (parent !== path && !(await stat(parent).catch(() => undefined))) await makeFolder(parent, mode)
  return mkdir(path, { mode }).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'EEXIST') return false
      throw error
    },
  )
}

/** The owner of the existing data if this process is root. The server keeps running as that user. */
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

async function initialise(
  dataDir: string,
  finalPath: string,
  user: ServerUser,
  binaries: Binaries,
  log: (line: string) => void,
) {
  log(`initializing a new PostgreSQL in ${dataDir}`)
  try {
    await fillFolder(dataDir, finalPath, user, path => initdb(path, user, binaries))
  } catch (error) {
    // If two processes publish at once, one of them wins.
    if (!(await lstat(finalPath).catch(() => undefined))) throw error
  }
}

/** Creates the PostgreSQL of a data folder that has none. `fill` creates its data. Throws {@link EmbeddedError}. */
export async function makeCluster(dataDir: string, fill: (cluster: Cluster) => Promise<void>): Promise<void> {
  await makeDataFolder(dataDir)
  const finalPath = join(dataDir, 'postgresql')
  if (await lstat(finalPath).catch(() => undefined))
    throw new EmbeddedError(`${dataDir} has data. Set KITH_DATA_DIR to a folder that does not exist yet.`)
  const user = await unprivilegedUser()
  const binaries = await findBinaries(user)
  await fillFolder(dataDir, finalPath, user, async path => {
    const password = await makeFolders(path, user)
    await fill({ path, user, binaries, password })
  })
}

/** Creates the data under a temporary name, and renames the folder when it is complete. */
async function fillFolder(
  dataDir: string,
  finalPath: string,
  user: ServerUser,
  fill: (path: string) => Promise<void>,
): Promise<void> {
  await removeLeftovers(dataDir, finalPath, { settled: false })
  const externalFolder = (await canEnter(user, dataDir))
    ? undefined
    : await mkdtemp(join(await openSharedFolder(), 'data-'))
  const work = await makeWorkFolder(dataDir, externalFolder)
  try {
    const path = await realpath(work)
    await fill(path)
    await syncFolder(path)
    await publish(work, externalFolder, finalPath)
    await syncFolder(dataDir)
  } catch (error) {
    await removeWorkFolder(work, finalPath)
    throw error
  }
}

/** Creates the folder of the data, and a password, which it returns. */
async function makeFolders(path: string, user: ServerUser): Promise<string> {
  const [passwordFile, data] = [join(path, 'password'), join(path, 'data')]
  const password = randomBytes(24).toString('hex')
  await chmod(path, user ? 0o711 : 0o700)
  await writeFile(passwordFile, `${password}\n`, { mode: 0o600, flush: true })
  await mkdir(data, { mode: 0o700 })
  if (user) for (const path of [passwordFile, data]) await chown(path, user.uid, user.gid)
  return password
}

async function initdb(path: string, user: ServerUser, binaries: Binaries) {
  await makeFolders(path, user)
  const args = [`--pgdata=${join(path, 'data')}`, `--username=${superuser}`, `--pwfile=${join(path, 'password')}`]
  const settings = ['--auth=scram-sha-256', '--encoding=UTF8', '--locale=C', '--data-checksums', '--no-instructions']
  const { ok, output } = await run(binaries.initdb, [...args, ...settings], user)
  if (!ok) throw new EmbeddedError(`PostgreSQL could not initialize its data in ${path}:\n${output}`)
}

// A work folder is next to the final one, and its name contains the pid of the process that created it. A symbolic link
// leads to data in an external folder. The link first has the work name and then the final one.
const workPrefix = 'postgresql.new-'

/** Creates a work folder with a unique name: a folder, or a link to `externalFolder`. */
async function makeWorkFolder(dataDir: string, externalFolder: string | undefined): Promise<string> {
  const work = join(dataDir, `${workPrefix}${process.pid}-${randomBytes(4).toString('hex')}`)
  if (externalFolder === undefined) await mkdir(work, { mode: 0o700 })
  else await symlink(externalFolder, work)
  return work
}

/** Gives the work folder its final name. Rejects if that name exists, so one of two concurrent processes wins. */
async function publish(work: string, externalFolder: string | undefined, final: string) {
  if (externalFolder === undefined) return rename(work, final)
  // A rename would replace the link of another process.
  await symlink(externalFolder, final)
  await rm(work, { force: true })
}

/** Removes a work folder and the folder that it links to, unless the final name links to that folder. */
async function removeWorkFolder(work: string, final: string) {
  const externalFolder = await readlink(work).catch(() => undefined)
  const published = await readlink(final).catch(() => undefined)
  const obsolete =
    externalFolder?.startsWith(join(sharedFolder, 'data-')) && externalFolder !== published
      ? [externalFolder, work]
      : [work]
  // An initdb may still write to the folder if the process that started it was killed.
  for (const path of obsolete) await rm(path, { recursive: true, force: true, maxRetries: 5 })
}

/**
 * Removes the leftovers of unfinished initialisations. Until one initialisation is `settled`, this keeps the folders of
 * running processes, because one of them may win.
 */
async function removeLeftovers(dataDir: string, final: string, { settled }: { settled: boolean }) {
  for (const name of await readdir(dataDir)) {
    const makerPid = new RegExp(`^${workPrefix}(\\d+)-`).exec(name)?.[1]
    if (makerPid === undefined) continue
    if (settled || (await commandLine(Number(makerPid))) === '') await removeWorkFolder(join(dataDir, name), final)
  }
}
