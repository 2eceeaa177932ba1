import { randomBytes } from 'node:crypto'
import { mkdir, readdir, readlink, rename, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { sharedFolder } from './binaries.ts'
import { commandLine } from './processes.ts'

// A work folder is next to the final one, and its name contains the pid of the process that made it. Data in an external
// folder are reached by a symbolic link, which first has the work name and then the final one.
const workPrefix = 'postgresql.new-'

/** Makes a work folder with a unique name: a folder, or a link to `externalFolder`. */
export async function makeWorkFolder(dataDir: string, externalFolder: string | undefined): Promise<string> {
  const work = join(dataDir, `${workPrefix}${process.pid}-${randomBytes(4).toString('hex')}`)
  if (externalFolder === undefined) await mkdir(work, { mode: 0o700 })
  else await symlink(externalFolder, work)
  return work
}

/** Gives the work folder its final name. Rejects if that name exists, so one of two concurrent processes wins. */
export async function publish(work: string, externalFolder: string | undefined, final: string) {
  if (externalFolder === undefined) return rename(work, final)
  // A rename would replace the link of another process.
  await symlink(externalFolder, final)
  await rm(work, { force: true })
}

/** Removes a work folder and the folder that it links to, unless the final name links to that folder. */
export async function removeWorkFolder(work: string, final: string) {
  const externalFolder = await readlink(work).catch(() => undefined)
  const published = await readlink(final).catch(() => undefined)
  const obsolete =
    externalFolder?.startsWith(join(sharedFolder, 'data-')) && externalFolder !== published
      ? [externalFolder, work]
      : [work]
  // An initdb may still write there if the process that started it was killed.
  for (const path of obsolete) await rm(path, { recursive: true, force: true, maxRetries: 5 })
}

/**
 * Removes the leftovers of unfinished initialisations. Until one is `settled`, the folders of running processes are kept,
 * because one of them may win.
 */
export async function removeLeftovers(dataDir: string, final: string, { settled }: { settled: boolean }) {
  for (const name of await readdir(dataDir)) {
    const makerPid = new RegExp(`^${workPrefix}(\\d+)-`).exec(name)?.[1]
    if (makerPid === undefined) continue
    if (settled || (await commandLine(Number(makerPid))) === '') await removeWorkFolder(join(dataDir, name), final)
  }
}
