import { randomBytes } from 'node:crypto'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { generateX25519Identity, identityToRecipient } from 'age-encryption'
import { beforeAll, describe, expect, it } from 'vitest'
import { contentsOf, useBackupFixture, writePerson } from '../test/support/backups.ts'
import { runInProcess } from '../test/support/command.ts'
import { query } from '../test/support/embedded-service.ts'

const ground = useBackupFixture()
const { emptyDatabase, kith, newDatabase, newFile, pathTo, serveOn } = ground

/** Two recipients of a backup and a third key. The identity files have the format of age-keygen. */
const holders: { identity: string; recipient: string; file: string }[] = []
beforeAll(async () => {
  for (const name of ['ada', 'bob', 'eve']) {
    const identity = await generateX25519Identity()
    const recipient = await identityToRecipient(identity)
    const file = `${name}.txt`
    await writeFile(pathTo(file), `# created: 2027-01-15T10:00:00Z\n# public key: ${recipient}\n${identity}\n`)
    holders.push({ identity, recipient, file })
  }
})

/** Makes an encrypted backup of some people for the two recipients. */
async function encrypted() {
  const url = await newDatabase()
  const { send } = await (await serveOn(url)).organization()
  for (let turn = 0; turn < 3; turn++) await writePerson(send, 'ada', turn)
  const file = newFile()
  const [ada, bob] = holders
  const words = ['backup', file, '--recipient', ada!.recipient, '--recipient', bob!.recipient, '--json']
  const { code, stdout, stderr } = await kith(words, url)
  expect([code, stderr]).toEqual([0, expect.stringContaining('Signed by kith+')])
  expect(JSON.parse(stdout)).toMatchObject({ encrypted: true, bytes: (await stat(pathTo(file))).size })
  return { url, file }
}

describe('an encrypted backup', { timeout: 60_000 }, () => {
  it('is restored with the identity of any recipient, and says nothing without one', async () => {
    const { url, file } = await encrypted()
    const bytes = await readFile(pathTo(file))
    expect(bytes.toString('latin1')).toMatch(/^age-encryption\.org\/v1\n/)
    for (const text of ['kith-backup', 'signing_keys']) expect(bytes.includes(text)).toBe(false)
    expect((await stat(pathTo(file))).mode & 0o777).toBe(0o600)
    for (const { file: identity } of holders.slice(0, 2)) {
      const target = await emptyDatabase()
      const restored = await kith(['restore', file, '--identity', identity, '--keep-log-id'], target)
      expect(restored).toMatchObject({ code: 0, stderr: expect.stringContaining('signed the backup') })
      expect(await contentsOf(target)).toEqual(await contentsOf(url))
    }
    const input = await readFile(pathTo(file))
    const words = ['restore', '-', '--identity', holders[0]!.file]
    expect(await runInProcess(words, { DATABASE_URL: await emptyDatabase() }, ground.folder, input)).toMatchObject({
      code: 0,
    })
  })

  it('is refused without an identity, with that of somebody else, and if a byte of it was changed or is missing', async () => {
    const { file } = await encrypted()
    const target = await emptyDatabase()
    const [ada, , eve] = holders
    const refused = async (words: string[], code: number, message: string) => {
      const result = await kith(['restore', ...words], target)
      expect(result).toMatchObject({ code, stderr: expect.stringContaining(message) })
      expect(await query(target, `select from pg_class where relnamespace = 'public'::regnamespace`)).toEqual([])
    }
    await refused([file], 2, 'is encrypted. Give --identity')
    expect(await kith(['verify', file], target)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('Decrypt it first'),
    })
    await refused([file, '--identity', eve!.file], 1, 'no identity of the file of --identity opens it')
    await refused([file, '--identity', 'none.txt'], 2, 'cannot be read (ENOENT)')
    await writeFile(pathTo('empty.txt'), 'nothing\n')
    await refused([file, '--identity', 'empty.txt'], 2, 'has no line with AGE-SECRET-KEY-')
    const bytes = await readFile(pathTo(file))
    const changed = Buffer.from(bytes)
    changed[bytes.length - 100]! ^= 1
    for (const damaged of [changed, bytes.subarray(0, -100)]) {
      await writeFile(pathTo('damaged'), damaged)
      await refused(['damaged', '--identity', ada!.file], 1, 'is damaged or incomplete')
    }
  })

  it('is not written for a text that is no recipient', async () => {
    const file = newFile()
    const { code, stderr } = await kith(['backup', file, '--recipient', 'age1x'], await newDatabase())
    expect([code, stderr]).toEqual([2, expect.stringContaining('age1x is no recipient of age')])
    await expect(stat(pathTo(file))).rejects.toThrow('ENOENT')
  })
})

it('a backup never holds the master key, and its keys open with the master key alone', {
  timeout: 60_000,
}, async () => {
  const url = await newDatabase()
  const key = randomBytes(32)
  await writeFile(pathTo('master.key'), `${key.toString('base64')}\n`, { mode: 0o600 })
  const run = (words: string[], environment: Record<string, string> = {}) =>
    runInProcess(
      words,
      { DATABASE_URL: url, KITH_MASTER_KEY_FILE: pathTo('master.key'), ...environment },
      ground.folder,
    )
  expect((await run(['token', '--scope', 'people:read', '--org', 'default'])).code).toBe(0)
  const backup = await run(['backup', 'plain.backup'])
  expect(backup.stderr).toContain('Signed by kith+')
  expect(backup.stderr).toContain('The backup lies beside the master key')
  // The rows are compressed, so the test also searches the text of all tables.
  const text = JSON.stringify(await contentsOf(url))
  const bytes = await readFile(pathTo('plain.backup'))
  for (const form of [key, key.toString('base64'), key.toString('base64url'), key.toString('hex')])
    expect([bytes.includes(form), text.includes(form.toString('latin1'))]).toEqual([false, false])

  const target = await emptyDatabase()
  const restored = await kith(['restore', 'plain.backup'], target)
  expect(restored).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(/wrapped by the master key [0-9a-f]{16}\. Put it into/),
  })
  const lost = await kith(['token', '--scope', 'people:read', '--org', 'default'], target)
  expect(lost).toMatchObject({ code: 1, stderr: expect.stringContaining('Name its file with KITH_MASTER_KEY_FILE') })
  expect(await run(['token', '--scope', 'people:read', '--org', 'default'], { DATABASE_URL: target })).toMatchObject({
    code: 0,
  })
  const findings = async (environment: Record<string, string>) =>
    JSON.parse((await run(['doctor', '--json'], environment)).stdout).findings.filter(
      ({ check }: { check: string }) => check === 'master key',
    )
  expect(await findings({})).toMatchObject([
    { verdict: 'ok', message: expect.stringMatching(/^the master key [0-9a-f]{16} wraps all keys and secrets$/) },
    { verdict: 'warning', message: expect.stringContaining('plain.backup is a backup beside the master key') },
  ])
  expect(await findings({ KITH_MASTER_KEY_FILE: '' })).toMatchObject([
    { verdict: 'wrong', message: expect.stringContaining('do not open, because their master key is missing') },
  ])
})
