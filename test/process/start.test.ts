import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { basename, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { migrate } from '../../src/db/migrate.ts'
import { operatorName } from '../../src/sessions/sign-in-link.ts'
import { sendAsPage } from '../support/browser-session.ts'
import { compileCache } from '../support/command.ts'
import { fillDataFolder } from '../support/data-folder.ts'
import { createTestDatabase } from '../support/database.ts'
import { query } from '../support/embedded-service.ts'
import {
  checkout,
  endProcesses,
  firstStepsOf,
  hasServer,
  type Kith,
  launch,
  makeDataFolder,
  makeFolder,
  senderTo,
  terminate,
  tokenFrom,
} from '../support/process.ts'
import { allScopes } from '../support/service.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
let otherFolder: string

beforeEach(async () => {
  database = await createTestDatabase()
  otherFolder = await makeFolder()
})

afterEach(async () => {
  await endProcesses()
  await database.drop()
})

/** Runs lines in another shell, in a folder of its own. Returns the JSON documents that they print. */
async function paste(lines: string[], environment: Record<string, string> = {}) {
  const { PATH = '', HOME = '' } = process.env
  const shell = spawn('sh', [], { cwd: otherFolder, env: { PATH, HOME, ...compileCache, ...environment } })
  shell.stdin.end(`${lines.join('\n')}\n`)
  const [stdout, stderr] = await Promise.all([text(shell.stdout), text(shell.stderr), once(shell, 'close')])
  expect({ code: shell.exitCode, stderr }).toEqual({ code: 0, stderr: '' })
  // The responses have no newline between them.
  return stdout
    .replaceAll('}{"', '}\n{"')
    .split('\n')
    .map(answer => JSON.parse(answer))
}

const patchResponse = { status: 'Success', data: true }
const readResponse = {
  status: 'Success',
  data: expect.objectContaining({
    external_id: 'first',
    first_name: 'Ada',
    email_consent: true,
    attribute_values: { city: 'Rome' },
    version: 2,
  }),
}

describe('the three lines that a start logs', () => {
  it('work as pasted on the embedded database, and work again', async () => {
    const dataDir = join(otherFolder, '.kith')
    const kith = launch({ KITH_DATA_DIR: dataDir })
    expect(await kith.ready).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    const lines = firstStepsOf(kith)
    expect(lines).toHaveLength(3)
    expect(await paste(lines)).toEqual([patchResponse, readResponse])
    expect(await paste(lines)).toEqual([
      patchResponse,
      { ...readResponse, data: expect.objectContaining({ version: 3 }) },
    ])
    expect(await terminate(kith)).toBe(0)
    expect(await hasServer(dataDir)).toBe(false)
  })

  it('work with the same DATABASE_URL, and do not contain its password', async () => {
    const environment = { DATABASE_URL: database.url }
    const kith = launch(environment)
    await kith.ready
    expect(await paste(firstStepsOf(kith), environment)).toEqual([patchResponse, readResponse])
    expect(kith.output.stdout).not.toContain(new URL(database.url).password)
    expect(kith.output.stdout + kith.output.stderr).not.toContain(database.url)
  })

  it('find the data folder of a service that was started in another folder', async () => {
    const name = `${basename(otherFolder)}'s $HOME`
    await fillDataFolder(join(otherFolder, name))
    const kith = launch({ KITH_DATA_DIR: name }, ['serve'], otherFolder)
    await kith.ready
    expect(await hasServer(join(otherFolder, name))).toBe(true)
    // Wrong lines would create the folder in the checkout.
    onTestFinished(() => rm(join(checkout, name), { recursive: true, force: true }))
    expect(await paste(firstStepsOf(kith))).toEqual([patchResponse, readResponse])
    expect(await terminate(kith)).toBe(0)
  })
})

/** The link to the console that a start logs. */
function linkOf({ output }: Kith): string | undefined {
  const line = output.stdout.split('\n').find(text => text.includes('"first_steps"'))
  return line && JSON.parse(line).console
}

describe('the link to the console that a start logs', () => {
  it.each([
    ['a process', ['serve']],
    ['a process with workers', ['serve', '--workers', '2']],
  ])('signs in once at %s, as the user of the machine with all scopes', async (_, words) => {
    const kith = launch({ DATABASE_URL: database.url }, words)
    const address = await kith.ready
    const [page, code] = linkOf(kith)!.split('#code=')
    expect(page).toBe(`${address}/console/sign-in`)
    const signIn = () => sendAsPage({ address }, 'POST', '/console/session', { body: { code } })
    const { status, body } = await signIn()
    expect([status, body.data.organization.key, body.data.name]).toEqual([200, 'default', operatorName()])
    expect(body.data.scopes).toEqual(allScopes.split(' '))
    expect((await signIn()).status).toBe(401)
  })

  it('is missing where others may read the log: behind a proxy', async () => {
    const kith = launch({ DATABASE_URL: database.url, KITH_BEHIND_PROXY: '1' })
    await kith.ready
    expect(firstStepsOf(kith)).toHaveLength(3)
    expect(linkOf(kith)).toBeUndefined()
  })
})

it('two services that start together on an empty database share tables, organization and signing key', async () => {
  const environment = { DATABASE_URL: database.url }
  await query(database.url, 'drop schema public cascade; create schema public')
  const services = [launch(environment), launch(environment)]
  const [first = '', second = ''] = await Promise.all(services.map(({ ready }) => ready))
  expect(await migrate(database.url)).toEqual([])
  expect(await query(database.url, 'select key from organizations')).toEqual([{ key: 'default' }])
  expect(await query(database.url, 'select count(*)::integer as keys from signing_keys')).toEqual([{ keys: 1 }])
  const token = await tokenFrom(environment)
  expect((await senderTo(first, token)('POST', '/v1/people', { external_id: 'ada' })).status).toBe(201)
  expect((await senderTo(second, token)('GET', '/v1/people/ada')).status).toBe(200)
  expect(await Promise.all(services.map(terminate))).toEqual([0, 0])
})

it('serve --json prints its address on standard output and logs to standard error', async () => {
  const kith = launch({ DATABASE_URL: database.url }, ['serve', '--json'])
  await expect.poll(() => kith.output.stdout, { timeout: 30_000 }).toMatch(/\n$/)
  const { address } = JSON.parse(kith.output.stdout)
  expect((await fetch(`${address}/healthz`)).status).toBe(200)
  expect(await terminate(kith)).toBe(0)
  expect(kith.output.stdout.trimEnd().split('\n')).toHaveLength(1)
  for (const line of kith.output.stderr.trimEnd().split('\n')) expect(() => JSON.parse(line)).not.toThrow()
})

/** Starts a service that must fail without a stack trace. Returns its standard error. */
async function expectStartFailure(environment: Record<string, string>): Promise<string> {
  const kith = launch(environment)
  expect(await kith.ended).toBe(1)
  expect(kith.output.stdout).not.toContain('kith is ready')
  expect(kith.output.stdout + kith.output.stderr).not.toMatch(/^\s+at /m)
  return kith.output.stderr
}

describe('a failed start', () => {
  it('names a port that is taken in one sentence, and leaves no database server running', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = other.address() as { port: number }
    const dataDir = await makeDataFolder()
    expect(await expectStartFailure({ KITH_DATA_DIR: dataDir, PORT: `${port}` })).toMatch(
      new RegExp(`^PORT ${port} on 127\\.0\\.0\\.1 is taken [^\\n]*\\n$`),
    )
    expect(await hasServer(dataDir)).toBe(false)
    other.close()
  })

  it('names the process that uses the data folder', async () => {
    const dataDir = await makeDataFolder()
    const owner = launch({ KITH_DATA_DIR: dataDir })
    const address = await owner.ready
    expect(await expectStartFailure({ KITH_DATA_DIR: dataDir })).toMatch(
      new RegExp(`^The data folder \\S+ is in use by another service, kith serve pid ${owner.child.pid}: [^\\n]*\\n$`),
    )
    expect((await fetch(`${address}/readyz`)).status).toBe(200)
    await terminate(owner)
  })
})

it('finds its data when it starts again on the same folder', async () => {
  const environment = { KITH_DATA_DIR: await makeDataFolder(), NODE_ENV: 'production' }
  // A repeated consent is a write too, so each start adds a version.
  for (const version of [2, 3]) {
    const kith = launch(environment)
    await kith.ready
    const [, { data }] = await paste(firstStepsOf(kith))
    expect(data).toMatchObject({ external_id: 'first', version })
    expect(await terminate(kith)).toBe(0)
  }
})
