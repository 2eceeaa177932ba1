import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { copyFile, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import { afterEach, describe, expect, it } from 'vitest'
import { createClient } from '../../client/index.ts'
import { startCommand } from '../support/command.ts'
import { createTestDatabase } from '../support/database.ts'
import { endProcesses, launch, launchProgram, makeFolder, terminate, tokenFrom } from '../support/process.ts'
import { expectStored, restartRolling } from '../support/rolling-restart.ts'
import { readAll } from './read-all.ts'

const folder = (release: string, name: string) => join(import.meta.dirname, release, name)
const releases = readdirSync(import.meta.dirname).filter(name => !name.includes('.ts'))

afterEach(endProcesses)

/** Extracts an archive of a release into a new folder. */
async function extract(release: string, name: string): Promise<string> {
  const home = await makeFolder()
  execFileSync('tar', ['--extract', '--directory', home], {
    input: zstdDecompressSync(readFileSync(folder(release, name))),
  })
  return home
}

/** Runs the service of this checkout on what a release has stored, and checks that everything is there and works. */
async function expectUpgraded(release: string, environment: Record<string, string>): Promise<void> {
  const { checkpoint, ...stored } = JSON.parse(String(gunzipSync(readFileSync(folder(release, 'expected.json.gz')))))
  const kith = launch(environment)
  const client = createClient({ url: await kith.ready, token: await tokenFrom(environment) })
  // A later version may add members and no more.
  expect(await readAll(client)).toMatchObject(stored)
  const [person] = stored.people
  await client.people.patch(person.external_id, {
    first_name: 'Upgraded',
    consents: [{ consent_type_id: 1, channel: 'email', state: false }],
  })
  expect(await client.people.get(person.external_id)).toMatchObject({
    first_name: 'Upgraded',
    version: person.version + 1,
  })
  const since = join(await makeFolder(), 'checkpoint.txt')
  await writeFile(since, checkpoint)
  const verify = startCommand(['ledger', 'verify', '--org', 'default', '--since', since], environment)
  expect(await verify.ended).toMatchObject({ code: 0 })
  expect(await terminate(kith)).toBe(0)
}

describe.each(releases)('what kith %s has stored', release => {
  it('is opened as a data folder: the same export, a new write, and a ledger that continues', async () => {
    const home = await extract(release, 'data.tar.zst')
    await expectUpgraded(release, { KITH_DATA_DIR: join(home, '.kith') })
  })

  it('is restored from a backup', async () => {
    const KITH_DATA_DIR = join(await makeFolder(), '.kith')
    await mkdir(KITH_DATA_DIR, { mode: 0o700 })
    await copyFile(folder(release, 'master.key'), join(KITH_DATA_DIR, 'master.key'))
    const restored = startCommand(['restore', folder(release, 'kith.backup')], { KITH_DATA_DIR })
    expect(await restored.ended).toMatchObject({ code: 0 })
    await expectUpgraded(release, { KITH_DATA_DIR })
  })
})

describe.each(releases)('a rolling restart from kith %s to this version', release => {
  it('refuses no request behind an HTTP proxy, and loses none behind a TCP balancer if clients retry after Retry-After', async () => {
    const database = await createTestDatabase({ tables: false })
    const environment = { DATABASE_URL: database.url }
    const program = join(await extract(release, 'program.tar.zst'), 'package', 'cli', 'kith.js')
    const runOld = (...words: string[]) => launchProgram(program, environment, words)
    const stored = await restartRolling({
      launchOld: () => runOld('serve'),
      launchNew: () => launch(environment),
      makeToken: async () => {
        const printed = runOld('token', '--org', 'default', '--scope', 'people:write')
        expect(await printed.ended).toBe(0)
        return printed.output.stdout.trim()
      },
    })
    await expectStored(database.url, stored)
    expect(await startCommand(['ledger', 'verify', '--org', 'default'], environment).ended).toMatchObject({ code: 0 })
    await endProcesses()
    await database.drop()
  }, 240_000)
})
