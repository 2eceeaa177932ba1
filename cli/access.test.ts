import { beforeEach, describe, expect, it } from 'vitest'
import { scopes } from '../src/route/scopes.ts'
import { runInProcess, useFolder } from '../test/support/command.ts'
import { type Organization, useService } from '../test/support/service.ts'

const service = useService()
const folder = useFolder()
let organization: Organization
beforeEach(async () => {
  organization = await service.organization()
  const administrator = { name: 'administrator', scopes: [...scopes] }
  const { client_id, client_secret } = await organization.client.access.clients.create(administrator)
  const secret = ['--client-id', client_id, '--client-secret', '-']
  const login = ['login', '--url', service.address, '--profile', organization.key, ...secret]
  expect(await runInProcess(login, environment, folder, client_secret)).toMatchObject({ code: 0 })
})

/** DATABASE_URL leads to no server, so a command that uses the database fails. */
const environment = { XDG_CONFIG_HOME: folder, DATABASE_URL: 'postgresql://127.0.0.1:1/nowhere' }
const kith = (...words: string[]) => runInProcess([...words, '--profile', organization.key], environment, folder)
/** The result that a command prints. */
const resultOf = async (...words: string[]) => {
  const { code, stdout, stderr } = await kith(...words, '--json')
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.not.stringContaining('    at ') })
  return JSON.parse(stdout)
}

describe('with a profile', () => {
  it('kith token makes a token of the organization, with a name in the change log', async () => {
    const { code, stdout, stderr } = await kith('token', '--scope', 'people:read people:write', '--subject', 'report')
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const send = service.sender(stdout.trim())
    expect((await send('POST', '/v1/people', { external_id: 'ada' })).status).toBe(201)
    expect((await send('GET', '/v1/changes')).status).toBe(403)
    const items = await organization.client.changes.list().all()
    expect(items.at(-1)?.actor).toBe('report')
    expect(await resultOf('token', '--scope', 'people:read', '--ttl', '60')).toMatchObject({ expires_in: 60 })
  })

  it('kith client creates, lists and revokes the clients of the organization', async () => {
    const created = await resultOf('client', 'create', '--scope', 'people:read', '--name', 'shop')
    expect(created).toEqual({ client_id: expect.any(String), client_secret: expect.any(String) })
    const listed = await resultOf('client', 'list')
    expect(listed).toEqual(await organization.client.access.clients.list().all())
    expect(listed.map(({ name }: { name: string }) => name)).toEqual(['shop', 'administrator'])
    expect(await kith('client', 'revoke', created.client_id)).toMatchObject({ code: 2, stdout: '' })
    expect((await resultOf('client', 'list'))[0].revoked_at).toBeNull()
    await resultOf('client', 'revoke', created.client_id, '--yes')
    expect((await resultOf('client', 'list'))[0].revoked_at).toEqual(expect.any(String))
  })

  it('kith user invites people, lists, disables, enables and removes their accounts', async () => {
    await organization.send('POST', '/v1/roles', { key: 'support', scopes: ['people:read'] })
    const { stdout } = await kith('user', 'add', 'Ada Lovelace', '--role', 'support')
    const link = new RegExp(`^${service.address}/console/invitation#code=${organization.key}\\.[\\w-]{43}\n$`)
    expect(stdout).toMatch(link)
    expect(await resultOf('user', 'list')).toMatchObject([{ name: 'Ada Lovelace', role: 'support', state: 'invited' }])
    const again = await kith('user', 'invite', 'Ada Lovelace')
    expect(again.stdout).toMatch(link)
    expect(again.stdout).not.toBe(stdout)
    expect(await resultOf('user', 'role', 'Ada Lovelace')).toMatchObject({ role: null })
    expect(await resultOf('user', 'disable', 'Ada Lovelace')).toMatchObject({ state: 'disabled' })
    expect(await resultOf('user', 'enable', 'Ada Lovelace')).toMatchObject({ state: 'invited' })
    expect(await kith('user', 'remove', 'Ada Lovelace')).toMatchObject({ code: 2, stdout: '' })
    await resultOf('user', 'remove', 'Ada Lovelace', '--yes')
    expect(await resultOf('user', 'list')).toEqual([])
    expect(await kith('user', 'invite', 'Ada Lovelace')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('There is no account "Ada Lovelace"'),
    })
  })

  it('kith token list and revoke end a token, on the service', async () => {
    const made = await kith('token', '--scope', 'people:read', '--subject', 'report')
    const [listed] = await resultOf('token', 'list')
    expect(listed).toMatchObject({ name: 'report', scopes: ['people:read'], revoked_at: null })
    expect(made.stdout).not.toContain(listed.jti)
    expect(await kith('token', 'revoke', listed.jti)).toMatchObject({ code: 2, stdout: '' })
    await resultOf('token', 'revoke', listed.jti, '--yes')
    expect((await resultOf('token', 'list'))[0].revoked_at).toEqual(expect.any(String))
    expect(await kith('token')).toMatchObject({ code: 2, stderr: expect.stringContaining('--scope') })
  })

  it('kith keys list has the keys of the service', async () => {
    expect(await resultOf('keys', 'list')).toEqual(await organization.client.access.keys())
  })

  it.each([
    ['an unknown scope', ['token', '--scope', 'people:admin'], 1, /\/scopes\/0/],
    ['a client without a name', ['client', 'create', '--scope', 'people:read'], 2, /--name/],
    ['an unknown client', ['client', 'revoke', 'nobody', '--yes'], 1, /client_id/],
    ['the organization of a database', ['client', 'list', '--org', 'default'], 2, /--org/],
    ['a command that works only on the database', ['keys', 'rotate'], 2, /--profile/],
  ])('refuses %s', async (_, words, code, message) => {
    expect(await kith(...words)).toMatchObject({ code, stdout: '', stderr: expect.stringMatching(message) })
  })
})
