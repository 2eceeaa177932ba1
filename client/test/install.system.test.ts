import { execFile } from 'node:child_process'
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { useFolder } from '../../test/support/command.ts'

const run = promisify(execFile)
const source = fileURLToPath(new URL('..', import.meta.url))

const base = useFolder()
let npm: (cwd: string, ...words: string[]) => Promise<{ stdout: string; stderr: string }>

beforeAll(async () => {
  // The installation works without a network, because the package has no dependencies.
  const env = { PATH: process.env.PATH, HOME: base, npm_config_cache: join(base, 'cache'), npm_config_offline: 'true' }
  npm = (cwd, ...words) => run('npm', [...words, '--no-audit', '--no-fund', '--no-update-notifier'], { cwd, env })
})

const program = `
import { createClient, KithError, writable } from '@kith/client'
const client = createClient({ url: 'http://127.0.0.1:1', token: 'a', retries: 0 })
const error = await client.people.get('ada').catch(each => each)
console.log(error.name, typeof KithError, typeof writable)
`

const typed = `
import { type Client, createClient } from '@kith/client'
export const client: Client = createClient({ url: 'http://127.0.0.1:1', clientCredentials: { clientId: 'a', clientSecret: 'b' } })
// @ts-expect-error: there is no such option
createClient({ url: 'http://127.0.0.1:1', token: 'a', tokens: [] })
`

/** Creates a project that installs the client, imports it with plain Node, and compiles against its types. */
async function installAndUse(name: string, ...words: string[]) {
  const project = join(base, name)
  await mkdir(project)
  await writeFile(join(project, 'package.json'), '{"name":"shop","private":true,"type":"module"}')
  await npm(project, 'install', ...words)
  await writeFile(join(project, 'shop.js'), program)
  const { stdout, stderr } = await run(process.execPath, ['shop.js'], { cwd: project, env: {} })
  expect({ stdout, stderr }).toEqual({ stdout: 'KithConnectionError function function\n', stderr: '' })
  await writeFile(join(project, 'shop.ts'), typed)
  const compiler = fileURLToPath(new URL('../../node_modules/typescript/bin/tsc', import.meta.url))
  const flags = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2022', '--types', '']
  const compiled = await run(process.execPath, [compiler, ...flags, 'shop.ts'], { cwd: project }).catch(error => error)
  expect(compiled.stdout).toBe('')
}

describe('the client', { timeout: 120_000 }, () => {
  it('can be installed from its folder', async () => {
    await rm(join(source, 'dist'), { recursive: true, force: true })
    await installAndUse('folder', source)
  })

  it('can be installed from the package of npm pack, which contains only the necessary files', async () => {
    await rm(join(source, 'dist'), { recursive: true, force: true })
    await npm(source, 'pack', '--pack-destination', base)
    const [tarball] = (await readdir(base)).filter(name => name.endsWith('.tgz'))
    await installAndUse('package', join(base, tarball!))
    const installed = join(base, 'package', 'node_modules', '@kith', 'client')
    expect((await readdir(installed)).toSorted()).toEqual(['LICENSE', 'README.md', 'dist', 'package.json'])
  })
})
