import { chmod, mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import { inject } from 'vitest'
import { withSession } from '../../cli/session.ts'
import { run } from '../../src/db/embedded/processes.ts'
import type {} from './temporary-files.ts'

/** A data folder that no server uses. The tests of this process copy it. */
let original: Promise<string> | undefined

/**
 * Fills a data folder that does not exist yet, as a first start and a stop of the service leave it. On a loaded machine,
 * the copy takes 0.5 s, and a first start and stop 5.9 s.
 */
export async function fillDataFolder(dataDir: string): Promise<void> {
  original ??= initialize()
  const { ok, output } = await run('cp', ['-a', await original, dataDir], undefined)
  if (!ok) throw new Error(output)
}

async function initialize(): Promise<string> {
  const folder = await mkdtemp(join(inject('runFolder'), 'data-'))
  // As root, the server runs as another user, who has to enter the folder.
  await chmod(folder, 0o711)
  const dataDir = join(folder, '.kith')
  await withSession({ KITH_DATA_DIR: dataDir }, async () => {})
  return dataDir
}
