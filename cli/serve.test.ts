import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { runInProcess } from '../test/support/command.ts'
import { createTestDatabase } from '../test/support/database.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kith-serve-'))
})
afterEach(() => rm(folder, { recursive: true }))

/** Starts a service that must fail without a stack trace. Returns its standard error. */
async function expectStartFailure(environment: Record<string, string>): Promise<string> {
  const { code, stdout, stderr } = await runInProcess(['serve'], { PORT: '0', ...environment })
  expect(code).toBe(1)
  expect(stdout).not.toContain('kith is ready')
  expect(stdout + stderr).not.toMatch(/^\s+at /m)
  return stderr
}

it('lists every problem of the environment before it creates anything', async () => {
  const dataDir = join(folder, '.kith')
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
  expect(await readdir(folder)).toEqual([])
})

it.each(['/proc/kith', '/proc/kith/data'])('names a data folder that cannot be created: %s', async dataDir => {
  expect(await expectStartFailure({ KITH_DATA_DIR: dataDir })).toBe(
    `The data folder ${dataDir} cannot be used: ENOENT: no such file or directory, mkdir '/proc/kith'. Set KITH_DATA_DIR to a folder that kith can write to.\n`,
  )
})

it('names the setting of a missing TLS file', async () => {
  const TLS_CERT_FILE = join(folder, 'certificate.pem')
  const database = await createTestDatabase()
  const settings = { DATABASE_URL: database.url, TLS_CERT_FILE, TLS_KEY_FILE: join(folder, 'key.pem') }
  const stderr = await expectStartFailure(settings).finally(database.drop)
  expect(stderr).toMatch(/^[A-Z][^\n]*\n$/)
  expect(stderr).toContain('TLS_CERT_FILE')
  expect(stderr).toContain(TLS_CERT_FILE)
})
