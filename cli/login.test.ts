import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createClient } from '../src/auth/clients.ts'
import { runInProcess } from '../test/support/command.ts'
import { type Organization, useService } from '../test/support/service.ts'

const service = useService()
let folder: string
let organization: Organization
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kith-login-'))
  organization = await service.organization()
  await organization.client.people.create({ external_id: 'ada', first_name: 'Ada' })
})
afterEach(() => rm(folder, { recursive: true }))

const kith = (words: string[], environment: Record<string, string> = {}) =>
  runInProcess(words, { XDG_CONFIG_HOME: folder, ...environment })

/** Stores the token of an organization as a profile. */
const login = (profile: string, { token } = organization) =>
  kith(['login', '--url', service.address, '--profile', profile], { KITH_TOKEN: token })

const pathOf = (profile: string) => join(folder, 'kith', 'profiles', `${profile}.json`)
const exportPeople = ['export', 'people', '--quiet']

describe('kith login', () => {
  it('stores an address and a token in a file that only its owner may read, and commands use it', async () => {
    const { code, stdout, stderr } = await login('default')
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' })
    expect(stderr).toBe(
      `Logged in to the organization ${organization.key} at ${service.address}. The profile default is in ${pathOf('default')}.\n`,
    )
    expect((await stat(pathOf('default'))).mode & 0o777).toBe(0o600)
    expect((await stat(join(folder, 'kith', 'profiles'))).mode & 0o777).toBe(0o700)
    const exported = await kith(exportPeople)
    expect([exported.code, JSON.parse(exported.stdout).external_id]).toEqual([0, 'ada'])
  })

  it('reads a token from standard input', async () => {
    const words = ['login', '--url', service.address, '--token', '-']
    const environment = { XDG_CONFIG_HOME: folder }
    expect((await runInProcess(words, environment, folder, `${organization.token}\n`)).code).toBe(0)
    expect(JSON.parse(await readFile(pathOf('default'), 'utf8'))).toEqual({
      url: service.address,
      token: organization.token,
    })
  })

  it('stores a client, whose tokens the commands fetch', async () => {
    const options = { organizationKey: organization.key, scope: 'people:read exports:read', name: '' }
    const { client_id, client_secret } = await createClient(service.db, options)
    const words = ['login', '--url', service.address, '--client-id', client_id, '--profile', 'robot']
    const { code, stderr } = await kith(words, { KITH_CLIENT_SECRET: client_secret })
    // The client lacks the scope that reads the organization.
    expect([code, stderr]).toEqual([0, expect.stringMatching(/^Logged in at /)])
    expect((await kith([...exportPeople, '--profile', 'robot'])).stdout).toContain('"ada"')
    const listed = await kith(['profiles', '--format', 'csv'])
    expect(listed.stdout).toBe(`name,url,credentials\nrobot,${service.address},client ${client_id}\n`)
  })

  it('stores nothing if the service refuses the token, and keeps the profile of before', async () => {
    await login('default')
    const before = await readFile(pathOf('default'), 'utf8')
    const refused = await kith(['login', '--url', service.address], { KITH_TOKEN: 'e30.e30.e30' })
    expect([refused.code, refused.stdout]).toEqual([1, ''])
    expect(refused.stderr).not.toContain('e30.e30')
    expect(await readFile(pathOf('default'), 'utf8')).toBe(before)
    expect(await readdir(join(folder, 'kith', 'profiles'))).toEqual(['default.json'])
  })

  it.each([
    ['a name that leaves the folder', ['--profile', '../x'], /name of a profile/],
    ['an address that is no URL', ['--url', 'kith.example.org'], /is not a URL/],
    ['two secrets from standard input', ['--token', '-', '--client-secret', '-'], /only one/],
    ['a client without its secret', ['--client-id', 'acme.x'], /KITH_CLIENT_SECRET/],
  ])('refuses %s as wrong usage', async (_, words, pattern) => {
    const { code, stderr } = await kith(['login', '--url', service.address, ...words])
    expect([code, stderr]).toEqual([2, expect.stringMatching(pattern)])
    expect(await readdir(folder)).toEqual([])
  })
})

describe('a command', () => {
  it('uses the profile of --profile, else of KITH_PROFILE, else default', async () => {
    const other = await service.organization()
    await other.client.people.create({ external_id: 'grace' })
    await login('default')
    await login('other', other)
    const exported = async (words: string[], environment = {}) =>
      JSON.parse((await kith([...exportPeople, ...words], environment)).stdout).external_id
    expect(await exported([])).toBe('ada')
    expect(await exported([], { KITH_PROFILE: 'other' })).toBe('grace')
    expect(await exported(['--profile', 'default'], { KITH_PROFILE: 'other' })).toBe('ada')
    expect(await exported(['--profile', 'other'], { KITH_URL: 'http://127.0.0.1:9', KITH_TOKEN: 'x' })).toBe('grace')
    // An explicit address never gets the token of a profile.
    expect(
      await exported([], { KITH_PROFILE: 'other', KITH_URL: service.address, KITH_TOKEN: organization.token }),
    ).toBe('ada')
    const withoutToken = await kith([...exportPeople, '--url', service.address])
    expect([withoutToken.code, withoutToken.stderr]).toEqual([2, expect.stringContaining('A token')])
  })

  it('refuses a profile beside other credentials, a missing one, and a file that is none', async () => {
    await login('default')
    const beside = await kith([...exportPeople, '--profile', 'default', '--token', 'x'])
    expect([beside.code, beside.stderr]).toEqual([2, expect.stringContaining('Leave out --profile')])
    const missing = await kith(exportPeople, { KITH_PROFILE: 'nobody' })
    expect([missing.code, missing.stderr]).toEqual([2, expect.stringContaining('kith login --profile nobody')])
    await writeFile(pathOf('default'), '{"url":')
    const broken = await kith(exportPeople)
    expect([broken.code, broken.stderr]).toEqual([1, expect.stringContaining('is not a profile')])
  })
})

describe('kith logout', () => {
  it('deletes a profile, and fails if there is none', async () => {
    await login('work')
    expect(await kith(['logout', '--profile', 'work'])).toMatchObject({
      code: 0,
      stderr: 'Deleted the profile work.\n',
    })
    expect((await kith(['profiles'])).stdout).toBe('')
    expect(await kith(['logout', '--profile', 'work'])).toMatchObject({ code: 1, stdout: '' })
  })
})
