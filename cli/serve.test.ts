import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { version } from '../src/process/version.ts'
import { writePair } from '../test/support/certificate.ts'
import { runInProcess } from '../test/support/command.ts'
import { createTestDatabase } from '../test/support/database.ts'
import { query } from '../test/support/embedded-service.ts'

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

it.each([
  ['a short secret', { AUTH_SECRET: 'abcdefghijklmnopqrstuvwxyz01234' }, /AUTH_SECRET/],
  ['half an outside issuer', { AUTH_ISSUER: 'https://issuer.example' }, /AUTH_ISSUER/],
  ['another HOST without TLS files', { HOST: '0.0.0.0' }, / HOST .*TLS_CERT_FILE/],
])('exits with 1 because of %s', async (_, settings, problem) => {
  const stderr = await expectStartFailure({ KITH_DATA_DIR: join(folder, '.kith'), ...settings })
  expect(stderr).toMatch(/^The configuration cannot be used:\n {2}- [^\n]*\n$/)
  expect(stderr).toMatch(problem)
})

describe('on a database', () => {
  let database: Awaited<ReturnType<typeof createTestDatabase>>
  beforeEach(async () => {
    database = await createTestDatabase()
  })
  afterEach(() => database.drop())

  it('names the setting of a missing TLS file', async () => {
    const TLS_CERT_FILE = join(folder, 'certificate.pem')
    const settings = { DATABASE_URL: database.url, TLS_CERT_FILE, TLS_KEY_FILE: join(folder, 'key.pem') }
    const stderr = await expectStartFailure(settings)
    expect(stderr).toMatch(/^[A-Z][^\n]*\n$/)
    expect(stderr).toContain('TLS_CERT_FILE')
    expect(stderr).toContain(TLS_CERT_FILE)
  })

  it('says that certificate and key belong to different pairs', async () => {
    const [{ TLS_CERT_FILE }, { TLS_KEY_FILE }] = await Promise.all(
      ['one', 'other'].map(async name => {
        await mkdir(join(folder, name))
        return writePair(join(folder, name))
      }) as [ReturnType<typeof writePair>, ReturnType<typeof writePair>],
    )
    const stderr = await expectStartFailure({ DATABASE_URL: database.url, TLS_CERT_FILE, TLS_KEY_FILE })
    expect(stderr).toMatch(/^TLS_CERT_FILE \S+ and TLS_KEY_FILE \S+ cannot be used: [^\n]*\n$/)
  })

  it('names a migration of a newer version, as other commands do, and leaves the tables as they are', async () => {
    await query(database.url, `insert into migrations (name, run_on) values ('9999_of_a_newer_version', now())`)
    // A migration of this version has not run, but later ones have. kith must not run it out of order.
    await query(database.url, `delete from migrations where name = '0007_identity'`)
    const before = await query(database.url, 'select * from migrations order by id')
    for (const words of [['serve'], ['org', 'list']]) {
      const { code, stderr } = await runInProcess(words, { DATABASE_URL: database.url, PORT: '0' })
      expect([code, stderr]).toEqual([
        1,
        `A newer version of kith has migrated the database: kith ${version} does not know 9999_of_a_newer_version. Run the newer version, or restore a backup from before the upgrade.\n`,
      ])
    }
    expect(await query(database.url, 'select * from migrations order by id')).toEqual(before)
  })

  it('refuses a database of an earlier beta in one sentence, as other commands do, and leaves the tables as they are', async () => {
    await query(database.url, `update migrations set name = '0001_house' where name = '0001_organizations'`)
    const before = await query(database.url, 'select * from migrations order by id')
    for (const words of [['serve'], ['migrate'], ['org', 'list'], ['backup', '-']]) {
      const { code, stdout, stderr } = await runInProcess(words, { DATABASE_URL: database.url, PORT: '0' })
      expect([code, stderr.split('\n').at(-2)]).toEqual([
        1,
        'An earlier beta of kith made the database, and this version does not read its data: export every organization with that beta ' +
          '(kith schema pull, kith export), start this version with an empty database or data folder, and import there ' +
          '(kith schema push, kith import), as docs/scale.md describes.',
      ])
      expect(stdout).not.toContain('kith-backup')
    }
    expect(await query(database.url, 'select * from migrations order by id')).toEqual(before)
  })
})
