import { execFile } from 'node:child_process'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Mounts a tmpfs of `megabytes` on a folder. Needs root. Without it the tests that use it fail. */
export async function mountDisk(folder: string, megabytes: number): Promise<void> {
  await run('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', folder])
}

export const unmountDisk = (folder: string) => run('umount', [folder]).catch(() => {})

export const fillerOf = (disk: string) => join(disk, 'filler')

/** Fills the disk until a write fails with ENOSPC. */
export async function fillDisk(disk: string): Promise<void> {
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
