import { randomBytes } from 'node:crypto'
import { chmod, copyFile, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { query } from '../support/embedded-service.ts'
import { endProcesses, launch, makeDataFolder, makeFolder, senderTo, terminate, tokenFrom } from '../support/process.ts'

afterEach(endProcesses)

/** The prefixes of what the tables of keys hold. */
const storedKeys = async (url: string) =>
  (
    await query(
      url,
      `select private_jwk #>> '{}' as text from signing_keys union all select private_jwk #>> '{}' from ledger_keys
       union all select convert_from(substr(secret, 1, 8), 'LATIN1') from link_keys`,
    )
  ).map(({ text }) => String(text).slice(0, 8))

it('a start wraps what is not wrapped yet, also with workers, and says so; without the file, the next start stops with one sentence', {
  timeout: 120_000,
}, async () => {
  const database = await createTestDatabase()
  try {
    const plain = { DATABASE_URL: database.url }
    const first = launch(plain)
    const send = senderTo(await first.ready, await tokenFrom(plain))
    expect((await send('POST', '/v1/people', { external_id: 'ada' })).status).toBe(201)
    const links = await send('POST', '/v1/people/ada/consent-links', {})
    expect(links.status).toBe(200)
    expect(await terminate(first)).toBe(0)
    expect(await storedKeys(database.url)).not.toContain('wrapped:')

    const file = join(await makeFolder(), 'keys')
    await writeFile(file, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600 })
    const wrapped = { ...plain, KITH_MASTER_KEY_FILE: file }
    const second = launch(wrapped, ['serve', '--workers', '2'])
    const address = await second.ready
    expect(await storedKeys(database.url)).toEqual(['wrapped:', 'wrapped:', 'wrapped:'])
    expect(second.output.stdout).toContain('"wrapped":{"signing_keys":1,"ledger_keys":1,"link_keys":1}')
    const { pathname } = new URL(links.body.data.preferences_url)
    expect((await fetch(`${address}${pathname}`)).status).toBe(200)
    expect((await senderTo(address, await tokenFrom(wrapped))('GET', '/v1/people/ada')).status).toBe(200)
    expect(await terminate(second)).toBe(0)

    const third = launch(plain)
    expect(await third.ended).toBe(1)
    const lines = (third.output.stderr + third.output.stdout).split('\n').filter(line => line.includes('wrapped by'))
    expect(lines).toHaveLength(1)
    expect(lines[0]).toMatch(
      /master key [0-9a-f]{16}, which this process does not have\. Name its file with KITH_MASTER_KEY_FILE\./,
    )
  } finally {
    await endProcesses()
    await database.drop()
  }
})

it('a data folder without a master key gets one at the next start, which only its user may read, and none in place of a lost one', {
  timeout: 120_000,
}, async () => {
  const dataDir = await makeDataFolder()
  const environment = { KITH_DATA_DIR: dataDir }
  const file = join(dataDir, 'master.key')
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  const key = await readFile(file, 'utf8')
  const kept = join(await makeFolder(), 'kept')
  await copyFile(file, kept)
  // Other keys are not the one that wraps.
  await writeFile(file, `${randomBytes(32).toString('base64')}\n`)
  const refused = launch(environment)
  expect(await refused.ended).toBe(1)
  expect(refused.output.stderr + refused.output.stdout).toContain(`which ${file} does not have. Put it into ${file}.`)

  await copyFile(kept, file)
  await chmod(file, 0o600)
  const service = launch(environment)
  expect((await senderTo(await service.ready, await tokenFrom(environment))('GET', '/v1/schema')).status).toBe(200)
  expect(await terminate(service)).toBe(0)
  expect(await readFile(file, 'utf8')).toBe(key)
})
