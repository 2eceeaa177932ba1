import { execFile } from 'node:child_process'
import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { checkout } from '../support/process.ts'
import { folderPrefix } from '../support/temporary-files.ts'

const run = promisify(execFile)

/** Packs kith and its client, and installs both as a user does. The path of the folder is in KITH_TEST_PACKAGES. Returns the teardown. */
export default async function setup(): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), `${folderPrefix}${process.pid}-packages-`))
  // As root, the embedded PostgreSQL runs as another user, who has to enter the folder.
  await chmod(folder, 0o755)
  await run(process.execPath, ['scripts/pack.ts', folder], { cwd: checkout, maxBuffer: 2 ** 24 })
  const tarballs = (await readdir(folder)).filter(name => name.endsWith('.tgz')).map(name => join(folder, name))
  await run('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', ...tarballs], { cwd: folder })
  process.env.KITH_TEST_PACKAGES = folder
  return () => rm(folder, { recursive: true, force: true })
}
