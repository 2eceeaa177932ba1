import { execFile } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'

const root = join(import.meta.dirname, '..')
let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kith-secrets-'))
})
afterAll(() => rm(folder, { recursive: true }))

/** The rules that secretlint, with the settings of the repository, finds broken in a text. */
async function rulesBrokenBy(text: string): Promise<string[]> {
  const file = join(folder, 'file.txt')
  await writeFile(file, text)
  const words = ['--format', 'json', '--no-glob', '--no-gitignore', '--secretlintrc', join(root, '.secretlintrc.json')]
  const program = join(root, 'node_modules/secretlint/bin/secretlint.js')
  const stdout = await new Promise<string>(resolve =>
    execFile(process.execPath, [program, ...words, file], (_, printed) => resolve(printed)),
  )
  const [found] = JSON.parse(stdout) as { messages: { ruleId: string }[] }[]
  return found!.messages.map(({ ruleId }) => ruleId.replace('@secretlint/secretlint-rule-', ''))
}

it('npm run secrets finds keys and passwords, but not the passwords of the tests', async () => {
  const { privateKey } = generateKeyPairSync('rsa', {
    modulusLength: 2_048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  })
  expect(await rulesBrokenBy(privateKey)).toEqual(['privatekey'])
  const url = (password: string) => `postgresql://kith:${password}@database.example/kith`
  expect(await rulesBrokenBy(url(privateKey.slice(40, 60).replace(/\W/g, 'x')))).toEqual(['database-connection-string'])
  expect(await rulesBrokenBy(url('s3cret'))).toEqual([])
})
