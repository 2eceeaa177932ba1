import { statfsSync } from 'node:fs'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  interface ProvidedContext {
    /** A folder that is removed after the run. */
    runFolder: string
  }
}

/** The prefix of a run's temporary folders. The pid of the run, or of one of its workers, follows it. */
export const folderPrefix = 'kith-test-'

/** Linux keeps the files of this folder in memory. */
const memoryFolder = '/dev/shm'
/** A run of all tests has up to 3 GB of files at a time. */
const minFreeBytes = 8 * 2 ** 30

/**
 * Chooses where a run puts its temporary files: in memory if there is room. PostgreSQL keeps the settings of production, but its
 * fsync waits for no disk. The run also gets a folder for code that Node.js has compiled, which its processes share.
 * Returns the teardown.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  if (!process.env.TMPDIR && freeBytes(memoryFolder) >= minFreeBytes) process.env.TMPDIR = memoryFolder
  const runFolder = await mkdtemp(join(tmpdir(), `${folderPrefix}${process.pid}-`))
  // As root, the embedded PostgreSQL runs as another user, who has to enter the folder.
  await chmod(runFolder, 0o711)
  process.env.NODE_COMPILE_CACHE = join(runFolder, 'compiled')
  project.provide('runFolder', runFolder)
  return () => rm(runFolder, { recursive: true, force: true, maxRetries: 10 })
}

function freeBytes(folder: string): number {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize
  } catch {
    // Only Linux has the folder.
    return 0
  }
}
