import { randomBytes } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { type BrowserSession, samePage, signIn } from '../../test/support/browser-session.ts'
import { exchange, parseResponse } from '../../test/support/process.ts'
import { useOwnService } from '../../test/support/service.ts'
import { useSharedShop } from '../../test/support/shop.ts'
import { routeTable } from '../process/app.ts'
import type { ParameterKind } from '../route/route.ts'

// Behind a proxy, each attempt can have a separate address.
const service = useOwnService({ KITH_BEHIND_PROXY: '1' })
let session: BrowserSession
let value: string
let addresses = 0
const organization = useSharedShop(service)
beforeAll(async () => {
  session = await signIn(service, organization)
  value = session.cookie.slice('kith_session='.length)
})

const request = async (headers: Record<string, string>, path = '/v1/schema', init: RequestInit = {}) => {
  const from = { 'X-Forwarded-For': `2001:db8:0:${(++addresses).toString(16)}::1` }
  const response = await fetch(`${service.address}${path}`, { ...init, headers: { ...from, ...headers } })
  return response.status
}
const withCookie = (cookie: string) => request({ ...samePage, cookie })

describe('a session is accepted', () => {
  it('from its cookie, whatever other cookies the browser sends', async () => {
    for (const cookie of [session.cookie, `a=b; ${session.cookie};c="d"`, `kith_sessions=x;${session.cookie}`])
      expect(await withCookie(cookie)).toBe(200)
  })

  it('from nowhere else', async () => {
    const elsewhere = [
      request({ ...samePage }, `/v1/schema?kith_session=${value}`),
      request({ ...samePage, Authorization: `Bearer ${value}` }),
      request({ ...samePage, Authorization: session.cookie }),
      request({ ...samePage, 'X-Cookie': session.cookie }),
      request({ ...samePage, Cookie2: session.cookie }),
      request({ ...samePage, cookie: `KITH_SESSION=${value}` }),
      request({ ...samePage, cookie: `xkith_session=${value}` }),
      request({ ...samePage, cookie: `a="kith_session=${value}"` }),
      request({ ...samePage, 'Content-Type': 'application/json' }, '/v1/people/list', {
        method: 'POST',
        body: JSON.stringify({ kith_session: value }),
      }),
    ]
    for (const status of await Promise.all(elsewhere)) expect(status).toBe(401)
  })
})

describe('a cookie is refused', () => {
  it.each([
    ['twice in one header', () => `${session.cookie}; ${session.cookie}`],
    ['beside another value', () => `kith_session=x; ${session.cookie}`],
    ['in quotes', () => `kith_session="${value}"`],
    ['percent-encoded', () => `kith_session=${value.replace('.', '%2E')}`],
    ['empty', () => 'kith_session='],
    ['of 10 KiB', () => `kith_session=${value}${'x'.repeat(10_240)}`],
    ['with another organization', () => `kith_session=default.${value.split('.')[1]}`],
    ['with an organization that does not exist', () => `kith_session=nobody.${value.split('.')[1]}`],
    ['with a letter less', () => session.cookie.slice(0, -1)],
    ['with the last letter changed', () => `${session.cookie.slice(0, -1)}${session.cookie.endsWith('A') ? 'B' : 'A'}`],
    ['with its letters in capitals', () => `kith_session=${organization.key}.${value.split('.')[1]!.toUpperCase()}`],
    ['with random bits', () => `kith_session=${organization.key}.${randomBytes(32).toString('base64url')}`],
  ])('%s', async (_, cookie) => expect(await withCookie(cookie())).toBe(401))

  it('in two headers', async () => {
    const lines = ['GET /v1/schema HTTP/1.1', 'Host: kith', 'Sec-Fetch-Site: same-origin', 'Connection: close']
    const cookies = [`Cookie: ${session.cookie}`, `Cookie: ${session.cookie}`]
    const { status } = parseResponse(await exchange(service.address, [...lines, ...cookies, '', ''].join('\r\n')))
    expect(status).toBe(401)
  })

  it('that is larger than all headers may be', async () => {
    expect(await withCookie(`kith_session=${'x'.repeat(20_000)}`)).toBe(431)
  })

  it('of one organization for the data of another: the session sees its own', async () => {
    const other = await service.organization()
    await other.client.people.create({ external_id: 'ada' })
    expect((await session.send('GET', '/v1/people/ada')).status).toBe(404)
    expect((await session.send('GET', '/v1/organization')).body.data.key).toBe(organization.key)
  })

  it('beside any Authorization header, which alone decides', async () => {
    for (const authorization of ['', 'Basic YTpi', 'Bearer', 'Bearer x', `Bearer ${value}`])
      expect(await request({ ...samePage, cookie: session.cookie, authorization })).toBe(401)
    const authorization = `Bearer ${organization.token}`
    expect(await request({ 'Sec-Fetch-Site': 'cross-site', cookie: 'kith_session=x', authorization })).toBe(200)
  })
})

const examples: Record<ParameterKind, string> = {
  external_id: 'ada',
  uuid: '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f',
  object_id: '6740a1b2c3d4e5f60718293a',
  channel: 'email',
  key: 'orders',
  number: '1',
  client_id: 'shop.Zm9vYmFyYmF6cXV4',
  count: '0',
  path: '0/000',
}

describe('a request that another site causes', () => {
  const rows = () => [
    ...routeTable(service).map(({ method, path, params }) => ({
      method,
      path: path.replace(/\{(\w+)\}/g, (_, name: string) => examples[params![name]!]),
    })),
    { method: 'GET', path: '/v1/nothing' },
    { method: 'PATCH', path: '/v1/schema' },
    { method: 'GET', path: '/console/session' },
    { method: 'DELETE', path: '/console/session' },
    { method: 'POST', path: '/console/session' },
  ]

  it.each([
    ['a form or a link', { 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'navigate' }],
    ['a page of a neighbouring host', { 'Sec-Fetch-Site': 'same-site' }],
    ['the address bar', { 'Sec-Fetch-Site': 'none' }],
    ['a page with an own Origin', { 'Sec-Fetch-Site': 'cross-site', Origin: 'SELF' }],
    ['an older browser', { Origin: 'https://attacker.example' }],
    ['a page without an origin', { Origin: 'null' }],
    ['a program', {}],
  ])('is refused at every address: %s', async (_, given) => {
    const headers: Record<string, string> = { cookie: session.cookie, ...given }
    if (headers.Origin === 'SELF') headers.Origin = service.address
    for (const { method, path } of rows()) {
      const reply = await fetch(`${service.address}${path}`, { method, headers })
      expect([method, path, reply.status]).toEqual([method, path, 403])
      await reply.arrayBuffer()
    }
    expect((await session.send('GET', '/v1/organization')).status).toBe(200)
  })

  it('without a cookie is refused as one without a token', async () => {
    expect(await request({ 'Sec-Fetch-Site': 'cross-site' })).toBe(401)
  })
})

describe('the Origin of an older browser', () => {
  const from = (origin: string, headers: Record<string, string> = {}) =>
    request({ cookie: `${session.cookie}; __Host-${session.cookie}`, Origin: origin, ...headers })

  it('is the scheme, host and port under which it reaches the service', async () => {
    const { host, port } = new URL(service.address)
    expect(await from(`http://${host}`)).toBe(200)
    expect(await from(`http://${host}`.toUpperCase())).toBe(200)
    expect(await from(`https://${host}`)).toBe(403)
    expect(await from(`https://${host}`, { 'X-Forwarded-Proto': 'https' })).toBe(200)
    expect(await from(`http://${host}`, { 'X-Forwarded-Proto': 'https' })).toBe(403)
    // The client may have sent the first entry. The proxy appends its entry.
    expect(await from(`http://${host}`, { 'X-Forwarded-Proto': 'https, http' })).toBe(200)
    for (const wrong of ['http://127.0.0.1', `http://localhost:${port}`, `http://${host}.attacker.example`, host, ''])
      expect(await from(wrong), wrong).toBe(403)
  })
})
