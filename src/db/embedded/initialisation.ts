import { randomBytes } from 'node:crypto'
import { mkdir, readdir, readlink, rename, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { sharedFolder } from './binaries.ts'
import { commandLine } from './processes.ts'

// Work folders stand beside the final one and bear the pid of their maker. Data that lie elsewhere (`away`) are
// pointed to by a symbolic link, under the work name first and then under the final one.
const workPrefix = 'postgresql.new-'

/** A folder to initialise in, under a name of its own: a folder, or the pointer to `away`. */
export async function makeWorkFolder(dataDir: string, away: string | undefined): Promise<string> {
  const work = join(dataDir, `${workPrefix}${process.pid}-${randomBytes(4).toString('hex')}`)
  if (away === undefined) await mkdir(work, { mode: 0o700 })
  else await symlink(away, work)
  return work
}

/** Gives the work its final name. Rejects when something bears that name already: of two at once, one wins. */
export async function publish(work: string, away: string | undefined, final: string) {
  if (away === undefined) return rename(work, final)
  // A rename would replace another's pointer.
  await symlink(away, final)
  await rm(work, { force: true })
}

/** Removes a work folder, and what it points to unless that bears the final name. */
export async function removeWorkFolder(work: string, final: string) {
  const away = await readlink(work).catch(() => undefined)
  const published = await readlink(final).catch(() => undefined)
  const doomed = away?.startsWith(join(sharedFolder, 'data-')) && away !== published ? [away, work] : [work]
  // An initdb whose starter was killed may still be writing there.
  for (const path of doomed) await rm(path, { recursive: true, force: true, maxRetries: 5 })
}

/**
 * Removes what initialisations that never ended left behind. Until one is `settled`, the folder of a living process
 * is spared: it may be the one that wins.
 */
export async function removeLeftovers(dataDir: string, final: string, { settled }: { settled: boolean }) {
  for (const name of await readdir(dataDir)) {
    const maker = new RegExp(`^${workPrefix}(\\d+)-`).exec(name)?.[1]
    if (maker === undefined) continue
    if (settled || (await commandLine(Number(maker))) === '') await removeWorkFolder(join(dataDir, name), final)
  }
}
