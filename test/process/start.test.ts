import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { basename, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { operatorName } from '../../src/sessions/sign-in-link.ts'
import { sendAsPage } from '../support/browser-session.ts'
import { compileCache } from '../support/command.ts'
import { fillDataFolder } from '../support/data-folder.ts'
import { createTestDatabase } from '../support/database.ts'
import {
  checkout,
  endProcesses,
  firstStepsOf,
  hasServer,
  type Kith,
  launch,
  makeDataFolder,
  makeFolder,
  terminate,
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

/** Starts a service that must fail without a stack trace. Returns its standard error. */
async function expectStartFailure(environment: Record<string, string>, cwd?: string): Promise<string> {
  const kith = launch(environment, ['serve'], cwd)
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

  it('lists every problem of the environment before it creates anything', async () => {
    const dataDir = join(otherFolder, '.kith')
    const stderr = await expectStartFailure({
      KITH_DATA_DIR: dataDir,
      PORT: '65536',
      DATABASE_URL: 'mysql://kith:s3cret@localhost/kith',
      LOG_LEVEL: 'loud',
      HOST: '0.0.0.0',
      TLS_KEY_FILE: '/nowhere/key.pem',
      AUTH_SECRET: 'too short to be one',
      KITH_LIMIT_LINKS: '0',
      KITH_LIMIT_REQUEST_MS: '10s',
      KITH_LIMIT_REQUESTS: '1',
    })
    const [title, ...problems] = stderr.trimEnd().split('\n')
    expect(title).toBe('The configuration cannot be used:')
    expect(problems.map(problem => /^ {2}- (\w+) \S/.exec(problem)?.[1]).sort()).toEqual([
      'AUTH_SECRET',
      'DATABASE_URL',
      'HOST',
      'KITH_LIMIT_LINKS',
      'KITH_LIMIT_REQUESTS',
      'KITH_LIMIT_REQUEST_MS',
      'LOG_LEVEL',
      'PORT',
      'TLS_CERT_FILE',
    ])
    expect(stderr).not.toContain('too short to be one')
    expect(await hasServer(dataDir)).toBe(false)
  })

  it.each(['/proc/kith', '/proc/kith/data'])('names a data folder that cannot be created: %s', async dataDir => {
    expect(await expectStartFailure({ KITH_DATA_DIR: dataDir })).toBe(
      `The data folder ${dataDir} cannot be used: ENOENT: no such file or directory, mkdir '/proc/kith'. Set KITH_DATA_DIR to a folder that kith can write to.\n`,
    )
  })

  it('names the setting of a missing TLS file', async () => {
    const TLS_CERT_FILE = join(otherFolder, 'certificate.pem')
    const settings = { DATABASE_URL: database.url, TLS_CERT_FILE, TLS_KEY_FILE: join(otherFolder, 'key.pem') }
    const stderr = await expectStartFailure(settings)
    expect(stderr).toMatch(/^[A-Z][^\n]*\n$/)
    expect(stderr).toContain('TLS_CERT_FILE')
    expect(stderr).toContain(TLS_CERT_FILE)
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
