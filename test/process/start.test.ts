import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { basename, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { checkout, endProcesses, firstStepsOf, hasServer, launch, makeFolder, terminate } from '../support/process.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
let elsewhere: string

beforeEach(async () => {
  database = await createTestDatabase()
  elsewhere = await makeFolder()
})

afterEach(async () => {
  await endProcesses()
  await database.drop()
})

/** Runs lines in a shell of another terminal, which stands in a folder of its own. */
async function paste(lines: string[], environment: Record<string, string> = {}) {
  const { PATH = '', HOME = '' } = process.env
  const shell = spawn('sh', [], { cwd: elsewhere, env: { PATH, HOME, ...environment } })
  shell.stdin.end(`${lines.join('\n')}\n`)
  const [stdout, stderr] = await Promise.all([text(shell.stdout), text(shell.stderr), once(shell, 'close')])
  expect({ code: shell.exitCode, stderr }).toEqual({ code: 0, stderr: '' })
  // The answers come without a newline between them.
  return stdout
    .replaceAll('}{"', '}\n{"')
    .split('\n')
    .map(answer => JSON.parse(answer))
}

const patched = { status: 'Success', data: true }
const read = {
  status: 'Success',
  data: expect.objectContaining({
    external_id: 'first',
    first_name: 'Ada',
    email_consent: true,
    attribute_values: { city: 'Rome' },
    version: 2,
  }),
}

describe('the log of a start shows the address and three lines', () => {
  it('that work as pasted, on the embedded database, and a second time', async () => {
    const dataDir = join(elsewhere, '.kith')
    const kith = launch({ KITH_DATA_DIR: dataDir })
    expect(await kith.ready).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    const lines = firstStepsOf(kith)
    expect(lines).toHaveLength(3)
    expect(await paste(lines)).toEqual([patched, read])
    expect(await paste(lines)).toEqual([patched, { ...read, data: expect.objectContaining({ version: 3 }) }])
    expect(await terminate(kith)).toBe(0)
    expect(await hasServer(dataDir)).toBe(false)
  })

  it('that work with the same DATABASE_URL set, and do not repeat its password', async () => {
    const environment = { DATABASE_URL: database.url }
    const kith = launch(environment)
    await kith.ready
    expect(await paste(firstStepsOf(kith), environment)).toEqual([patched, read])
    expect(kith.said.stdout).not.toContain(new URL(database.url).password)
    expect(kith.said.stdout + kith.said.stderr).not.toContain(database.url)
  })

  it('that find the data folder of a service that was started in another folder', async () => {
    const name = `${basename(elsewhere)}'s $HOME`
    const kith = launch({ KITH_DATA_DIR: name }, ['serve'], elsewhere)
    await kith.ready
    expect(await hasServer(join(elsewhere, name))).toBe(true)
    // Lines that mean another folder make it in the checkout.
    onTestFinished(() => rm(join(checkout, name), { recursive: true, force: true }))
    expect(await paste(firstStepsOf(kith))).toEqual([patched, read])
    expect(await terminate(kith)).toBe(0)
  })
})

/** What a start that fails ends with. */
async function refusal(environment: Record<string, string>, cwd?: string): Promise<string> {
  const kith = launch(environment, ['serve'], cwd)
  expect(await kith.ended).toBe(1)
  expect(kith.said.stdout).not.toContain('kith is ready')
  expect(kith.said.stdout + kith.said.stderr).not.toMatch(/^\s+at /m)
  return kith.said.stderr
}

describe('a start that cannot be ends with 1 and no stack trace:', () => {
  it('a port that is taken is named, in one sentence, and no database server is left running', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = other.address() as { port: number }
    const dataDir = join(elsewhere, '.kith')
    expect(await refusal({ KITH_DATA_DIR: dataDir, PORT: `${port}` })).toMatch(
      new RegExp(`^PORT ${port} on 127\\.0\\.0\\.1 is taken [^\\n]*\\n$`),
    )
    expect(await hasServer(dataDir)).toBe(false)
    other.close()
  })

  it('a bad environment is one list with every problem, before anything is made', async () => {
    const dataDir = join(elsewhere, '.kith')
    const stderr = await refusal({
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

  it.each(['/proc/kith', '/proc/kith/data'])('a data folder that cannot be made: %s', async dataDir => {
    expect(await refusal({ KITH_DATA_DIR: dataDir })).toBe(
      `The data folder ${dataDir} cannot be used: ENOENT: no such file or directory, mkdir '/proc/kith'. Set KITH_DATA_DIR to a folder that kith may write to.\n`,
    )
  })

  it('TLS files that are not there are named by the setting', async () => {
    const TLS_CERT_FILE = join(elsewhere, 'certificate.pem')
    const settings = { DATABASE_URL: database.url, TLS_CERT_FILE, TLS_KEY_FILE: join(elsewhere, 'key.pem') }
    const stderr = await refusal(settings)
    expect(stderr).toMatch(/^[A-Z][^\n]*\n$/)
    expect(stderr).toContain('TLS_CERT_FILE')
    expect(stderr).toContain(TLS_CERT_FILE)
  })

  it('a data folder that is in use says who has it', async () => {
    const dataDir = join(elsewhere, '.kith')
    const owner = launch({ KITH_DATA_DIR: dataDir })
    const address = await owner.ready
    expect(await refusal({ KITH_DATA_DIR: dataDir })).toMatch(
      new RegExp(`^The data folder \\S+ is in use by another service, kith serve pid ${owner.child.pid}: [^\\n]*\\n$`),
    )
    expect((await fetch(`${address}/readyz`)).status).toBe(200)
    await terminate(owner)
  })
})

it('starts twice in a row on the same folder, and finds what was there', async () => {
  const environment = { KITH_DATA_DIR: join(elsewhere, '.kith'), NODE_ENV: 'production' }
  // The same consent given again is a write.
  for (const version of [2, 3]) {
    const kith = launch(environment)
    await kith.ready
    const [, { data }] = await paste(firstStepsOf(kith))
    expect(data).toMatchObject({ external_id: 'first', version })
    expect(await terminate(kith)).toBe(0)
  }
})
