import { execFile } from 'node:child_process'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Mounts a disk of its own on a folder: only root may, and where it is refused every test that needs it fails. */
export async function mountDisk(folder: string, megabytes: number): Promise<void> {
  await run('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', folder])
}

export const unmountDisk = (folder: string) => run('umount', [folder]).catch(() => {})

export const fillerOf = (disk: string) => join(disk, 'filler')

/** Takes all the room there is. */
export async function fill(disk: string): Promise<void> {
  const file = await open(fillerOf(disk), 'a')
  const zeros = Buffer.alloc(65_536)
  try {
    for (;;) await file.write(zeros)
  } catch (error) {
    if ((error as { code?: string }).code !== 'ENOSPC') throw error
  } finally {
    await file.close()
  }
}
