import { describe, expect, it, vi } from 'vitest'
import { type BrowserSession, sendAsPage, signIn } from '../../test/support/browser-session.ts'
import { useOwnService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'

// Behind a proxy, a test can send its attempts from a separate address.
const service = useOwnService({ KITH_BEHIND_PROXY: '1' })
const shop = useShop(service)

const password = 'a long river bends twice'
let addresses = 0
const from = () => ({ 'X-Forwarded-For': `192.0.2.${++addresses}` })
const post = (path: string, body: unknown, headers: Record<string, string> = from()) =>
  sendAsPage(service, 'POST', `/console/${path}`, { body, headers })
type Reply = Awaited<ReturnType<typeof post>>
const refusalOf = ({ status, body: { error, message } }: Reply) => [status, error, message]

/** The session that a reply has started. */
const sessionOf = ({ headers }: Reply): Pick<BrowserSession, 'send'> => ({
  send: (method, path, body, more = {}) =>
    sendAsPage(service, method, path, {
      body,
      headers: { cookie: headers.get('set-cookie')!.split(';')[0]!, ...more },
    }),
})

type Invited = { id: string; name: string; code: string }

async function invite(name: string, organization = shop as { send: typeof shop.send }): Promise<Invited> {
  const { status, body } = await organization.send('POST', '/v1/accounts', { name, role: null })
  expect([status, body.data.state]).toEqual([201, 'invited'])
  return { id: body.data.id, name, code: body.data.invitation_path.split('#code=')[1] }
}

async function join(name: string): Promise<Invited & Pick<BrowserSession, 'send'>> {
  const invited = await invite(name)
  const accepted = await post('invitation', { code: invited.code, password })
  expect(accepted.status).toBe(200)
  return { ...invited, ...sessionOf(accepted) }
}

const login = (name: string, given = password, organization = shop.key, headers = from()) =>
  post('session', { organization, name, password: given }, headers)
const unknown = [401, 'unauthorized', 'There is no account with this name and password.']
const usedInvitation = [401, 'unauthorized', 'The invitation has expired or was used. Ask for a new one.']

describe('a person with an account', () => {
  it('accepts the invitation, signs in, and is the actor in the change log and in the list of sessions', async () => {
    const { id, code } = await invite('Ada Lovelace')
    const shown = await post('invitation', { code })
    expect(shown.body.data).toMatchObject({ name: 'Ada Lovelace', organization: { key: shop.key } })
    expect(shown.headers.get('set-cookie')).toBeNull()
    expect((await post('invitation', { code, password })).body.data).toMatchObject({
      method: 'account',
      account_id: id,
    })
    const signedIn = await login(' ada  LOVELACE')
    expect(signedIn.body.data).toMatchObject({ name: 'Ada Lovelace', method: 'account', account_id: id })
    const { send } = sessionOf(signedIn)
    expect((await send('POST', '/v1/people', { external_id: 'made-by-ada' })).status).toBe(201)
    const changes = await shop.send('GET', '/v1/changes?limit=1000')
    expect(changes.body.data.items.at(-1)).toMatchObject({ actor: 'Ada Lovelace', external_id: 'made-by-ada' })
    const sessions = await shop.send('GET', '/v1/sessions')
    expect(sessions.body.data.items[0]).toMatchObject({ name: 'Ada Lovelace', method: 'account', account_id: id })
    const [account] = (await shop.send('GET', '/v1/accounts')).body.data.items
    expect(account).toMatchObject({ id, role: null, state: 'active', maker: 'tests', invitation_expires_at: null })
    expect(Date.now() - Date.parse(account.last_sign_in_at)).toBeLessThan(60_000)
  })

  it.each([
    ['disabled', (id: string) => shop.send('PATCH', `/v1/accounts/${id}`, { state: 'disabled' })],
    ['removed', (id: string) => shop.send('DELETE', `/v1/accounts/${id}`)],
  ])(
    'is signed out within ten seconds once the account is %s, with the tokens that were made, and cannot sign in',
    async (word, end) => {
      const { id, name, send } = await join(`Ended ${word}`)
      const made = await send('POST', '/v1/tokens', { scopes: ['people:read'], expires_in: 600 })
      const useToken = () =>
        fetch(`${service.address}/v1/people/nobody`, { headers: { authorization: `Bearer ${made.body.data.token}` } })
      expect((await useToken()).status).toBe(404)
      expect((await end(id)).status).toBe(200)
      expect(refusalOf(await login(name))).toEqual(unknown)
      await vi.waitFor(
        async () => {
          expect((await send('GET', '/v1/organization')).status).toBe(401)
          expect((await useToken()).status).toBe(401)
        },
        { timeout: 10_500, interval: 500 },
      )
    },
    15_000,
  )

  it('has the scopes that the role has, and signs in again after a change of the role', async () => {
    for (const [key, scopes] of [
      ['desk', ['people:read', 'changes:read']],
      ['desk_lead', ['people:read', 'people:write']],
    ] as const)
      expect((await shop.send('POST', '/v1/roles', { key, scopes })).status).toBe(201)
    const { body } = await shop.send('POST', '/v1/accounts', { name: 'At the desk', role: 'desk' })
    const code = body.data.invitation_path.split('#code=')[1]
    const accepted = await post('invitation', { code, password })
    expect(accepted.body.data).toMatchObject({ role: 'desk', scopes: ['people:read', 'changes:read'] })
    const { send } = sessionOf(accepted)
    expect((await send('POST', '/v1/people', { external_id: 'nobody' })).status).toBe(403)
    const changed = await shop.send('PATCH', `/v1/accounts/${body.data.id}`, { role: 'desk_lead' })
    expect(changed.body.data.role).toBe('desk_lead')
    const { body: sessions } = await shop.send('GET', '/v1/sessions')
    expect(JSON.stringify(sessions.data)).not.toContain('At the desk')
    const again = await login('At the desk')
    expect(again.body.data).toMatchObject({ role: 'desk_lead', scopes: ['people:read', 'people:write'] })
    const unknownRole = await shop.send('PATCH', `/v1/accounts/${body.data.id}`, { role: 'none' })
    expect([unknownRole.status, unknownRole.body.details?.[0]?.path]).toEqual([400, '/role'])
  })

  it('can sign in again once the account is enabled, and the sessions of before stay ended', async () => {
    const { id, name } = await join('Enabled')
    await shop.send('PATCH', `/v1/accounts/${id}`, { state: 'disabled' })
    const { body } = await shop.send('PATCH', `/v1/accounts/${id}`, { state: 'active' })
    expect(body.data.state).toBe('active')
    const { body: sessions } = await shop.send('GET', '/v1/sessions')
    expect(sessions.data.items.filter((each: { account_id: string }) => each.account_id === id)).toEqual([])
    expect((await login(name)).status).toBe(200)
  })

  it('changes the password with the one of before, which ends the other sessions', async () => {
    const { id, name, send } = await join('Changer')
    await login(name)
    const change = (current_password: string, new_password: string) =>
      send('POST', '/console/password', { current_password, new_password }, from())
    const wrong = await change('not this one', 'another long river')
    expect([wrong.status, wrong.body.details]).toEqual([
      400,
      [{ path: '/current_password', message: 'is not the password' }],
    ])
    expect((await change(password, 'short')).body.details?.[0]?.path).toBe('/new_password')
    // White space at the ends is part of a password.
    expect((await change(password, ' another long river ')).status).toBe(200)
    const { body } = await shop.send('GET', '/v1/sessions')
    expect(body.data.items.filter((each: { account_id: string }) => each.account_id === id)).toHaveLength(1)
    expect((await send('GET', '/console/session')).body.data.account_id).toBe(id)
    expect(refusalOf(await login(name))).toEqual(unknown)
    expect(refusalOf(await login(name, 'another long river'))).toEqual(unknown)
    expect((await login(name, ' another long river ')).status).toBe(200)
  })

  it('has a password that no statement, row, log line or stored response holds', async () => {
    const secret = 'the unusual canary of 1987'
    const { code, name } = await invite('Canary')
    await post('invitation', { code, password: secret })
    await login(name, secret)
    await post('session', { organization: shop.key, name, password: secret, extra: secret }, { 'Idempotency-Key': 'x' })
    const [row] = await service.sql<{ password_hash: string; all: string }>(
      'select password_hash, accounts::text as all from accounts where organization_id = $1 and name = $2',
      [shop.id, name],
    )
    expect(row!.password_hash).toMatch(/^\$scrypt\$ln=15,r=8,p=3\$[\w-]{22}\$[\w-]{43}$/)
    expect(row!.all).not.toContain('canary of')
    expect(row!.all).not.toContain(code.slice(code.indexOf('.') + 1))
    const kept = await service.sql('select 1 from idempotency_keys where organization_id = $1', [shop.id])
    expect(kept).toEqual([])
  })
})

describe('a guessed password', () => {
  it('is refused as an unknown name, disabled account or foreign organization is, and takes as long', async () => {
    const { name } = await join('Guessed')
    await invite('Only invited')
    const timeOf = async (attempt: () => Promise<Reply>) => {
      const startedAt = performance.now()
      expect(refusalOf(await attempt())).toEqual(unknown)
      return performance.now() - startedAt
    }
    const wrong = await timeOf(() => login(name, 'wrong wrong wrong'))
    for (const attempt of [
      () => login('Nobody at all'),
      () => login('Only invited'),
      () => login(name, password, 'unknown'),
      () => login(name, password, 'No Key!'),
    ])
      expect(await timeOf(attempt)).toBeGreaterThan(wrong / 4)
  })

  it('waits after ten failures from one address, however the name is written, and others do not', async () => {
    const { name } = await join('Waiting')
    const address = from()
    const names = ['waiting', 'WAITING', 'Wаiting', ' Waiting ', 'waiting', 'wait\u0131ng', name, name, name, name]
    for (const each of names) expect((await login(each, 'wrong wrong wrong', shop.key, address)).status).toBe(401)
    const { status, headers } = await login(name, password, shop.key, address)
    expect([status, Number(headers.get('retry-after'))]).toEqual([429, expect.any(Number)])
    expect((await login(name)).status).toBe(200)
  }, 30_000)

  it('of ten megabytes is refused before it is read, and one beyond 1,024 characters before it is hashed', async () => {
    const { name } = await invite('Huge')
    expect((await login(name, 'x'.repeat(10 * 2 ** 20))).status).toBe(413)
    const { status, body } = await login(name, 'x'.repeat(1_025))
    expect([status, body.details?.[0]?.path]).toEqual([400, '/password'])
    expect(JSON.stringify(body)).not.toContain('xxx')
  })

  it('is refused with 503 where too many wait for a hash, instead of taking the memory', async () => {
    const replies = await Promise.all(Array.from({ length: 60 }, () => login('Nobody', 'wrong wrong wrong')))
    const statuses = replies.map(({ status }) => status)
    // On a busy machine, waiting requests may reach the deadline.
    expect([401, 503, 504].filter(status => statuses.includes(status))).toEqual(expect.arrayContaining([503]))
    expect(statuses.filter(status => status !== 503).length).toBeLessThanOrEqual(20)
    expect(replies.find(({ status }) => status === 503)!.headers.get('retry-after')).toBe('1')
  }, 60_000)
})

describe('an invitation', () => {
  it('works once, also for many requests at once', async () => {
    const { code } = await invite('Once')
    const replies = await Promise.all(Array.from({ length: 5 }, () => post('invitation', { code, password })))
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(refusalOf(await post('invitation', { code, password }))).toEqual(usedInvitation)
    expect(refusalOf(await post('invitation', { code }))).toEqual(usedInvitation)
  })

  it('is refused after three days', async () => {
    const { id, code } = await invite('Late')
    const [{ seconds } = { seconds: 0 }] = await service.sql<{ seconds: number }>(
      'select extract(epoch from invitation_expires_at - now())::float as seconds from accounts where id = $1',
      [id],
    )
    expect(Math.round(seconds / 60)).toBe(3 * 24 * 60)
    await service.sql('update accounts set invitation_expires_at = now() where id = $1', [id])
    expect(refusalOf(await post('invitation', { code, password }))).toEqual(usedInvitation)
  })

  it('ends with a newer one, and with a change of the account', async () => {
    const { id, code } = await invite('Again')
    const { body } = await shop.send('POST', `/v1/accounts/${id}/invitation`)
    const newer = body.data.invitation_path.split('#code=')[1]
    expect(refusalOf(await post('invitation', { code }))).toEqual(usedInvitation)
    expect((await post('invitation', { code: newer })).status).toBe(200)
    for (const state of ['disabled', 'active']) await shop.send('PATCH', `/v1/accounts/${id}`, { state })
    expect(refusalOf(await post('invitation', { code: newer, password }))).toEqual(usedInvitation)
  })

  it('sets a new password, and the sessions of before end', async () => {
    const { id, name } = await join('Forgetful')
    const { body } = await shop.send('POST', `/v1/accounts/${id}/invitation`)
    expect((await login(name)).status).toBe(200)
    const code = body.data.invitation_path.split('#code=')[1]
    expect((await post('invitation', { code, password: 'remembered at last' })).status).toBe(200)
    const sessions = await shop.send('GET', '/v1/sessions')
    const own = sessions.body.data.items.filter((each: { account_id: string }) => each.account_id === id)
    expect(own).toHaveLength(1)
    expect(refusalOf(await login(name))).toEqual(unknown)
  })

  it('is refused with another organization before its code, and with ten wrong codes it waits', async () => {
    const other = await service.organization()
    const { code } = await invite('Foreign')
    const foreign = `${other.key}.${code.split('.')[1]}`
    const address = from()
    for (const wrong of [foreign, 'x', `${shop.key}.${'x'.repeat(43)}`, ...Array<string>(7).fill(foreign)])
      expect(refusalOf(await post('invitation', { code: wrong, password }, address))).toEqual(usedInvitation)
    expect((await post('invitation', { code, password }, address)).status).toBe(429)
  })

  it.each([
    ['a short one', 'short', 'at least 12 characters'],
    ['a long one', 'ü'.repeat(600), 'at most 1024 bytes of UTF-8'],
    ['an obvious one', 'password1234', 'first passwords that are guessed'],
    ['one of one letter', 'aaaaaaaaaaaaaaa', 'first passwords that are guessed'],
    ['the name', 'careless person', 'first passwords that are guessed'],
  ])('takes no password that is %s', async (_, bad, reason) => {
    const { id, code } = await invite('Careless Person')
    const { status, body } = await post('invitation', { code, password: bad })
    expect([status, body.details]).toEqual([400, [{ path: '/password', message: expect.stringContaining(reason) }]])
    expect(JSON.stringify(body)).not.toContain(bad)
    await shop.send('DELETE', `/v1/accounts/${id}`)
  })
})

describe('an account', () => {
  it('has a name that no other caller has, and that none can have then', async () => {
    const { name } = await invite('Grace Hopper')
    const ask = async (path: string, body: object) => (await shop.send('POST', path, body)).body.details?.[0]?.path
    for (const taken of ['Grace Hopper', 'GRACE  HOPPER', 'Grасe Hopper', 'kith', 'a\u200bb', ''])
      expect([taken, await ask('/v1/accounts', { name: taken, role: null })]).toEqual([taken, '/name'])
    expect(await ask('/v1/tokens', { name: 'grace hopper', scopes: ['people:read'], expires_in: 60 })).toBe('/name')
    await shop.send('POST', '/v1/tokens', { name: 'Nightly', scopes: ['people:read'], expires_in: 60 })
    expect(await ask('/v1/accounts', { name: 'nightly', role: null })).toBe('/name')
    const byLink = await signIn(service, shop, 'people:read', 'grace hopper')
    expect(byLink.reply.body.data.name).toBe('grace hopper (link)')
    expect(name).toBe('Grace Hopper')
  })

  it('can be made by the person of a link under the same name, once', async () => {
    const { send } = await signIn(service, shop, undefined, 'operator')
    expect((await send('POST', '/v1/accounts', { name: 'operator', role: null })).status).toBe(201)
    expect((await send('POST', '/v1/accounts', { name: 'operator', role: null })).status).toBe(400)
  })

  it('gives nobody more than they have, by its role, by an invitation or by being enabled', async () => {
    const { id } = await join('Powerful')
    const { send } = await signIn(service, shop, 'access:read access:write people:read', 'helper')
    for (const [method, path, body] of [
      ['POST', '/v1/accounts', { name: 'Escalated', role: null }],
      ['PATCH', `/v1/accounts/${id}`, { role: null }],
      ['PATCH', `/v1/accounts/${id}`, { state: 'active' }],
      ['POST', `/v1/accounts/${id}/invitation`, undefined],
    ] as const) {
      const reply = await send(method, path, body)
      expect([method, path, reply.status, reply.body.details?.[0]?.path]).toEqual([method, path, 400, '/role'])
    }
    expect((await send('PATCH', `/v1/accounts/${id}`, { state: 'disabled' })).status).toBe(200)
  })

  it('gives a role only by a caller that has all of it', async () => {
    await shop.send('POST', '/v1/roles', { key: 'small', scopes: ['access:read', 'access:write', 'people:read'] })
    await shop.send('POST', '/v1/roles', { key: 'large', scopes: ['people:read', 'people:erase'] })
    const statusOf = async (send: typeof shop.send, name: string, role: string | null) => {
      const { status, body } = await send('POST', '/v1/accounts', { name, role })
      return status === 201 ? 201 : body.details?.[0]?.path
    }
    const helper = await signIn(service, shop, 'access:read access:write people:read', 'second helper')
    expect(await statusOf(helper.send, 'By the helper', 'small')).toBe(201)
    expect(await statusOf(helper.send, 'By the helper too', 'large')).toBe('/role')
    const { body } = await shop.send('POST', '/v1/accounts', { name: 'With a role', role: 'small' })
    const code = body.data.invitation_path.split('#code=')[1]
    const { send } = sessionOf(await post('invitation', { code, password }))
    expect(await statusOf(send, 'By a role', 'small')).toBe(201)
    for (const role of ['large', null]) expect(await statusOf(send, `By a role: ${role}`, role)).toBe('/role')
  })

  it('is unknown to another organization, as one that does not exist', async () => {
    const { id } = await invite('Hidden')
    const other = await service.organization()
    const missing = '00000000-0000-4000-8000-000000000000'
    for (const [method, suffix, body] of [
      ['PATCH', '', { state: 'disabled' }],
      ['DELETE', '', undefined],
      ['POST', '/invitation', undefined],
    ] as const) {
      const [foreign, unknown] = await Promise.all(
        [id, missing].map(each => other.send(method, `/v1/accounts/${each}${suffix}`, body)),
      )
      expect([foreign!.status, foreign!.body.message]).toEqual([404, unknown!.body.message])
    }
    expect((await other.send('GET', '/v1/accounts')).body.data.items).toEqual([])
  })

  it('is shown an invitation once: a repetition with an Idempotency-Key makes no second account', async () => {
    const key = { 'Idempotency-Key': 'account-1' }
    const first = await shop.send('POST', '/v1/accounts', { name: 'Keyed', role: null }, key)
    const second = await shop.send('POST', '/v1/accounts', { name: 'Keyed', role: null }, key)
    expect([first.status, second.status]).toEqual([201, 400])
    const read = await shop.send('GET', '/v1/accounts')
    expect(JSON.stringify(read.body)).not.toContain('code=')
  })
})

describe('the endpoints of accounts outside of the API', () => {
  it('refuse a page of another site, and a program', async () => {
    const { code } = await invite('Crossed')
    const { send } = await join('Crossing')
    const sites: Record<string, string>[] = [
      { 'Sec-Fetch-Site': 'cross-site' },
      { 'Sec-Fetch-Site': 'same-site' },
      { 'Sec-Fetch-Site': 'none' },
    ]
    for (const site of sites) {
      expect((await post('invitation', { code, password }, site)).status).toBe(403)
      expect((await login('Crossing', password, shop.key, site as ReturnType<typeof from>)).status).toBe(403)
      const passwords = { current_password: password, new_password: 'another long river' }
      expect((await send('POST', '/console/password', passwords, site)).status).toBe(403)
    }
    expect((await post('invitation', { code })).status).toBe(200)
  })

  it('change no password without the session of an account', async () => {
    const passwords = { current_password: password, new_password: 'another long river' }
    expect((await post('password', passwords)).status).toBe(401)
    const { send } = await signIn(service, shop)
    expect((await send('POST', '/console/password', passwords)).status).toBe(403)
  })

  it('take either kind of credentials, not two', async () => {
    const both = { organization: shop.key, name: 'a', password, code: 'x' }
    expect((await post('session', both)).status).toBe(400)
    expect((await post('session', { name: 'a', password })).status).toBe(400)
  })
})
