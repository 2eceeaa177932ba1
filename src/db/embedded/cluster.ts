import { randomBytes } from 'node:crypto'
import { chmod, chown, lstat, mkdir, mkdtemp, open, readFile, realpath, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type Binaries, findBinaries, openSharedFolder } from './binaries.ts'
import { EmbeddedError } from './error.ts'
import { makeWorkFolder, publish, removeLeftovers, removeWorkFolder } from './initialisation.ts'
import { canEnter, run, type ServerUser, unprivilegedUser } from './processes.ts'

/**
 * An initialised PostgreSQL. `path` holds `data/` (the server's own), `password`, `socket` (where the socket folder
 * is) and `server.log`.
 */
export type Cluster = Readonly<{ path: string; user: ServerUser; binaries: Binaries; password: string }>

export const superuser = 'kith'

/**
 * Opens the PostgreSQL of a data folder, after initialising one where there is none. `dataDir` is absolute.
 * Throws {@link EmbeddedError}.
 */
export async function openCluster(dataDir: string, log: (line: string) => void): Promise<Cluster> {
  await makeDataFolder(dataDir)
  const final = join(dataDir, 'postgresql')
  const user = (await ownerOf(final)) ?? (await unprivilegedUser())
  const binaries = await findBinaries(user)
  if (!(await lstat(final).catch(() => undefined))) await initialise(dataDir, final, user, binaries, log)
  await removeLeftovers(dataDir, final, { settled: true })
  const cluster = await readCluster(final, user, binaries)
  log(`the data of the embedded PostgreSQL ${binaries.major} lies in ${cluster.path}`)
  return cluster
}

async function makeDataFolder(dataDir: string) {
  // Root's server runs as another user, who has to pass through.
  const mode = process.getuid?.() === 0 ? 0o711 : 0o700
  if (await makeFolder(dataDir, mode)) await chmod(dataDir, mode)
}

/**
 * Makes a folder and those above it; whether it was not there. Node's recursive mkdir goes on for ever where a folder
 * cannot be made in one that is there, as in /proc.
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

/** To root: whose the existing data are; the server goes on as that user. */
async function ownerOf(final: string): Promise<ServerUser> {
  if (process.getuid?.() !== 0) return undefined
  const owner = await stat(join(final, 'data')).catch(() => undefined)
  return owner && owner.uid !== 0 ? { uid: owner.uid, gid: owner.gid } : undefined
}

async function readCluster(final: string, user: ServerUser, binaries: Binaries): Promise<Cluster> {
  const path = await realpath(final).catch(cause => {
    throw new EmbeddedError(
      `${final} points to data that are not there any more; bring them back, or remove it to begin with empty data.`,
      { cause },
    )
  })
  const major = Number(await readFile(join(path, 'data', 'PG_VERSION'), 'utf8'))
  if (major !== binaries.major)
    throw new EmbeddedError(
      `The data in ${path} are of PostgreSQL ${major}, this is ${binaries.major}: dump them with the version of kith that wrote them, and load them into an empty data folder.`,
    )
  return { path, user, binaries, password: (await readFile(join(path, 'password'), 'utf8')).trim() }
}

/** Makes the data under a name of their own and gives them the final one whole; of two at once, one wins. */
async function initialise(
  dataDir: string,
  final: string,
  user: ServerUser,
  binaries: Binaries,
  log: (line: string) => void,
) {
  await removeLeftovers(dataDir, final, { settled: false })
  log(`making a new PostgreSQL in ${dataDir}`)
  const away = (await canEnter(user, dataDir)) ? undefined : await mkdtemp(join(await openSharedFolder(), 'data-'))
  const work = await makeWorkFolder(dataDir, away)
  try {
    await initdb(await realpath(work), user, binaries)
    await publish(work, away, final)
    await syncFolder(dataDir)
  } catch (error) {
    await removeWorkFolder(work, final)
    if (!(await lstat(final).catch(() => undefined))) throw error
  }
}

async function initdb(path: string, user: ServerUser, binaries: Binaries) {
  const passwordFile = join(path, 'password')
  const data = join(path, 'data')
  await chmod(path, user ? 0o711 : 0o700)
  await writeFile(passwordFile, `${randomBytes(24).toString('hex')}\n`, { mode: 0o600, flush: true })
  await mkdir(data, { mode: 0o700 })
  if (user) for (const made of [passwordFile, data]) await chown(made, user.uid, user.gid)
  const args = [`--pgdata=${data}`, `--username=${superuser}`, `--pwfile=${passwordFile}`]
  const settings = ['--auth=scram-sha-256', '--encoding=UTF8', '--locale=C', '--data-checksums', '--no-instructions']
  const { ok, output } = await run(binaries.initdb, [...args, ...settings], user)
  if (!ok) throw new EmbeddedError(`PostgreSQL could not make its data in ${path}:\n${output}`)
  await syncFolder(path)
}

async function syncFolder(path: string) {
  const folder = await open(path)
  await folder.sync().finally(() => folder.close())
}
