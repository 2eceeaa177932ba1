import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createAuthenticator } from '../src/auth/authenticator.ts'
import { verifyClient } from '../src/auth/clients.ts'
import { loadOrCreateKeys } from '../src/auth/keys/keys.ts'
import { type Database, openDatabase, statement } from '../src/db/db.ts'
import { loadConfig } from '../src/process/config.ts'
import { runInProcess } from '../test/support/command.ts'
import { createTestDatabase } from '../test/support/database.ts'
import { query } from '../test/support/embedded-service.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
let db: Database

beforeAll(async () => {
  database = await createTestDatabase()
  db = openDatabase(database.url, { connections: 2, statementTimeoutMs: 10_000 })
})

afterAll(async () => {
  await db.close()
  await database.drop()
})

const run = (args: string[], environment: Record<string, string>) => runInProcess(args, environment)
const kith = (...args: string[]) => run(args, { DATABASE_URL: database.url })
/** The rows that a command prints. */
const rowsOf = async (...args: string[]) => {
  const { code, stdout, stderr } = await kith(...args, '--json')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout)
}

async function callerOf(token: string, nowMs = Date.now) {
  const options = { db, keys: await loadOrCreateKeys(db), config: loadConfig({}), nowMs }
  return createAuthenticator(options).authenticate([`Bearer ${token}`])
}

/** The decoded payload of a token. */
const payloadOf = (token: string) => JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString())

const oneSentence = /^[A-Z][^\n]*\.\n$/

describe('kith org', () => {
  it('creates organizations and lists them and default, each with its time of creation', async () => {
    const created = await kith('org', 'create', 'acme')
    expect(created).toEqual({ code: 0, stdout: '', stderr: 'Created organization acme.\n' })
    const created_at = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
    expect(await rowsOf('org', 'list')).toEqual([
      { key: 'default', created_at },
      { key: 'acme', created_at },
    ])
  })

  it.each([
    ['an existing key', 'default', /is the key of another organization/],
    ['an invalid key', 'Acme Inc', /1 to 63/],
  ])('refuses %s in one sentence', async (_, key, pattern) => {
    const { code, stdout, stderr } = await kith('org', 'create', key)
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(oneSentence)
    expect(stderr).toMatch(pattern)
  })
})

describe('kith token', () => {
  it('prints a token that the service accepts, and nothing else', async () => {
    const { code, stdout, stderr } = await kith('token', '--org', 'default', '--scope', 'people:read people:write')
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/)
    const caller = await callerOf(stdout.trim())
    expect(caller).toMatchObject({ organization: { key: 'default' }, subject: 'cli' })
    expect(caller.scopes).toEqual(new Set(['people:read', 'people:write']))
    const { iat, exp } = payloadOf(stdout)
    expect(exp - iat).toBe(3_600)
  })

  it('creates a token with the given lifetime and subject', async () => {
    const settings = ['--ttl', '60', '--subject', 'nightly import']
    const { stdout } = await kith('token', '--org', 'default', '--scope', 'records:write', ...settings)
    expect(await callerOf(stdout.trim())).toMatchObject({ subject: 'nightly import' })
    const { iat, exp } = payloadOf(stdout)
    expect(exp - iat).toBe(60)
    await expect(callerOf(stdout.trim(), () => exp * 1_000)).rejects.toThrow('expired')
  })

  it.each([
    ['an unknown organization', ['--org', 'nobody', '--scope', 'people:read'], /nobody/],
    ['an unknown scope', ['--org', 'default', '--scope', 'people:read people:admin'], /people:admin.*people:write/],
    ['no scope', ['--org', 'default', '--scope', ''], /scope/],
    ['an invalid subject', ['--org', 'default', '--scope', 'people:read', '--subject', 'a\nb'], /subject/],
  ])('refuses %s in one sentence', async (_, args, pattern) => {
    const { code, stdout, stderr } = await kith('token', ...args)
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(/^[A-Z][^\n]*\n$/)
    expect(stderr).toMatch(pattern)
  })
})

describe('kith client', () => {
  const create = async (...more: string[]) => {
    const { code, stdout, stderr } = await kith(
      'client',
      'create',
      '--org',
      'default',
      '--scope',
      'people:read',
      ...more,
    )
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const { client_id = '', client_secret = '' } = Object.fromEntries(
      stdout.split('\n').map(line => line.split('=') as [string, string]),
    )
    expect(stdout).toBe(`client_id=${client_id}\nclient_secret=${client_secret}\n`)
    return { client_id, client_secret }
  }

  it('creates a client with a valid secret, lists it without the secret, and revokes it', async () => {
    const client = await create('--name', 'the shop')
    const organization = { key: 'default' }
    expect(await verifyClient(db, client)).toMatchObject({ organization, name: 'the shop', scope: 'people:read' })
    const other = await create()
    const listed = { scopes: ['people:read'], role: null, created_at: expect.any(String), revoked_at: null }
    const rows = [
      { ...listed, client_id: other.client_id, name: '' },
      { ...listed, client_id: client.client_id, name: 'the shop' },
    ]
    expect(await rowsOf('client', 'list')).toEqual(rows)
    expect(await rowsOf('client', 'list', '--org', 'acme')).toEqual([])
    expect(await kith('client', 'revoke', client.client_id)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/nothing was done.*--yes/),
    })
    const revoked = await kith('client', 'revoke', client.client_id, '--yes')
    expect(revoked).toEqual({ code: 0, stdout: '', stderr: `Revoked client ${client.client_id}.\n` })
    expect(await verifyClient(db, client)).toBeUndefined()
    expect(await verifyClient(db, other)).toBeDefined()
    expect(await rowsOf('client', 'list')).toEqual([rows[0], { ...rows[1], revoked_at: expect.any(String) }])
    expect(await kith('client', 'revoke', client.client_id, '--yes')).toMatchObject({ code: 1, stdout: '' })
  })

  it.each([
    ['an unknown organization', ['create', '--org', 'nobody', '--scope', 'people:read'], /nobody/],
    ['an unknown scope', ['create', '--org', 'default', '--scope', 'people:admin'], /people:admin.*people:write/],
    ['an unknown client', ['revoke', 'default.AAAAAAAAAAAAAAAA', '--yes'], /default\.A/],
    ['an invalid client id', ['revoke', 'x', '--yes'], /"x"/],
  ])('refuses %s in one sentence', async (_, args, pattern) => {
    const { code, stdout, stderr } = await kith('client', ...args)
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(oneSentence)
    expect(stderr).toMatch(pattern)
  })
})

describe('kith keys', () => {
  it('rotates to a new key while older tokens stay valid, and revokes the older key', async () => {
    const token = async () => (await kith('token', '--org', 'default', '--scope', 'people:read')).stdout.trim()
    const kidOf = (text: string) => JSON.parse(Buffer.from(text.split('.')[0]!, 'base64url').toString()).kid as string
    const before = await token()
    const rotated = await kith('keys', 'rotate')
    expect(rotated).toMatchObject({ code: 0, stdout: '' })
    const after = await token()
    expect(rotated.stderr).toBe(`The key ${kidOf(after)} signs from now on.\n`)
    expect(kidOf(before)).not.toBe(kidOf(after))
    for (const each of [before, after]) expect(await callerOf(each)).toMatchObject({ subject: 'cli' })
    expect(await rowsOf('keys', 'list')).toMatchObject([
      { kid: kidOf(after), algorithm: 'ES256', state: 'signs', verifies_until: null },
      { kid: kidOf(before), state: 'verifies', verifies_until: expect.stringMatching(/^\d{4}-/) },
    ])
    expect(await kith('keys', 'revoke', kidOf(before))).toMatchObject({ code: 2, stdout: '' })
    expect(await kith('keys', 'revoke', kidOf(after), '--yes')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/rotate/),
    })
    expect(await kith('keys', 'revoke', kidOf(before), '--yes')).toMatchObject({ code: 0, stdout: '' })
    await expect(callerOf(before)).rejects.toThrow('not valid')
    expect(await callerOf(after)).toMatchObject({ subject: 'cli' })
  })
})

describe('kith token revoke', () => {
  it('refuses a text that is not the id of a token', async () => {
    expect(await kith('token', 'revoke', 'abc', '--yes')).toMatchObject({
      code: 1,
      stderr: '"abc" is not the id of a token. See kith token list.\n',
    })
  })
})

describe('kith migrate', () => {
  it('reports the migrations that ran, or that there is nothing to do', async () => {
    expect(await kith('migrate')).toMatchObject({
      code: 0,
      stdout: '',
      stderr: expect.stringContaining('Nothing to do'),
    })
    await db.query(statement('', 'drop schema public cascade'), [])
    await db.query(statement('', 'create schema public'), [])
    const shown = await kith('migrate', '--dry-run')
    expect(shown).toMatchObject({ code: 0, stderr: '' })
    expect(shown.stdout).toMatch(/^-- 0001_organizations\n/)
    expect(JSON.parse((await kith('migrate', '--dry-run', '--json')).stdout).pending).toContainEqual({
      ...{ name: '0003_entities', sql: expect.stringMatching(/create table entities/i) },
    })
    expect(await kith('migrate')).toMatchObject({
      code: 0,
      stdout: '',
      stderr: expect.stringMatching(/^Ran migration 0001_organizations\.\n/),
    })
    expect(await kith('migrate', '--dry-run')).toMatchObject({ stdout: '', stderr: expect.stringContaining('Nothing') })
  })
})

it.each(['--version', '-V'])('kith %s prints the version of package.json, and nothing else', async option => {
  const { version } = JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8'))
  expect(await kith(option)).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' })
})

describe('wrong usage', () => {
  it.each([
    ['no command', []],
    ['an unknown command', ['serv']],
    ['an unknown command of org', ['org', 'remove', 'acme']],
    ['an unknown option', ['org', 'list', '--all']],
    ['a missing argument', ['org', 'create']],
    ['one argument too many', ['org', 'create', 'a', 'b']],
    ['a missing option', ['token', '--org', 'default']],
    ['a lifetime that is not a number', ['token', '--org', 'default', '--scope', 'people:read', '--ttl', '1h']],
  ])('%s exits with 2 and prints nothing on standard output', async (_, args) => {
    const { code, stdout, stderr } = await kith(...args)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).not.toBe('')
    expect(stderr).not.toMatch(/^ {4}at /m)
  })
})

describe('a misspelt word', () => {
  it.each([
    ['a command', ['imprt'], 'import'],
    ['a subcommand', ['observed', 'declar', 'people', 'age'], 'declare'],
    ['an option', ['people', 'list', '--formt', 'csv'], '--format'],
    ['an earlier name of an option', ['dossier', 'ada', '--out', 'ada.html'], '--output'],
  ])('that is %s gets the right one suggested', async (_, args, word) => {
    const { code, stdout, stderr } = await kith(...args)
    expect([code, stdout, stderr]).toEqual([2, '', expect.stringContaining(`(Did you mean ${word}?)`)])
  })
})

describe('an unusable database or setting', () => {
  it('exits with 1 and one sentence if the database does not exist', async () => {
    const { pathname } = new URL(database.url)
    const gone = database.url.replace(pathname, '/kith_that_is_not_there')
    const { code, stdout, stderr } = await run(['org', 'list'], { DATABASE_URL: gone })
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(oneSentence)
    expect(stderr).toContain('kith_that_is_not_there')
  })

  it('reports that the disk of the database is full', async () => {
    await query(
      database.url,
      `create function fill() returns trigger language plpgsql as
         $$ begin raise exception 'could not extend a file' using errcode = 'disk_full'; end $$;
       create trigger fill before insert on organizations for each row execute function fill()`,
    )
    const { code, stderr } = await kith('org', 'create', 'full')
    await query(database.url, 'drop trigger fill on organizations; drop function fill')
    expect(code).toBe(1)
    expect(stderr).toBe('The database has no disk space left.\n')
  })

  it('names every invalid setting and does not start', async () => {
    const settings = { DATABASE_URL: database.url, PORT: 'eighty', KITH_POTR: '1' }
    const { code, stderr } = await run(['serve'], settings)
    expect(code).toBe(1)
    expect(stderr).toContain('PORT')
    expect(stderr).toContain('KITH_POTR')
    expect(stderr).not.toMatch(/^ {4}at /m)
  })
})

describe('kith log renew', () => {
  const ids = async () =>
    (await query(database.url, 'select log_id from change_heads order by 1')).map(({ log_id }) => log_id)

  it('gives one organization, or all, a new log_id, and prints it with the number of the newest change', async () => {
    await kith('org', 'create', 'renewed')
    const before = await ids()
    const log_id = expect.stringMatching(/^[\da-f-]{36}$/)
    expect(await rowsOf('log', 'renew', '--org', 'renewed')).toEqual([{ organization: 'renewed', log_id, head: 0 }])
    expect((await ids()).filter(id => before.includes(id))).toHaveLength(before.length - 1)
    expect(await rowsOf('log', 'renew', '--all')).toHaveLength(before.length)
    expect((await ids()).filter(id => before.includes(id))).toEqual([])
  })

  it('refuses an unknown organization with 1, and neither or both options with 2', async () => {
    const unknown = await kith('log', 'renew', '--org', 'nobody')
    expect([unknown.code, unknown.stderr]).toEqual([1, 'There is no organization "nobody". See kith org list.\n'])
    expect((await kith('log', 'renew')).code).toBe(2)
    expect((await kith('log', 'renew', '--all', '--org', 'default')).code).toBe(2)
  })
})
