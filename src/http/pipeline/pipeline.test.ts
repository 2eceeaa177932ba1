import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import { beforeEach, describe, expect, it } from 'vitest'
import { useService } from '../../../test/support/service.ts'
import { useShop } from '../../../test/support/shop.ts'

const service = useService()
const shop = useShop(service)
const { send } = shop
beforeEach(() => send('POST', '/v1/people', { external_id: 'ada' }))

/** Sends a request with exactly these headers. */
async function sendRaw(method: string, path: string, headers: Record<string, string | string[]>, body?: string) {
  const { hostname, port } = new URL(service.address)
  const sent = request({ hostname, port, method, path, headers })
  sent.end(body)
  const [response] = (await new Promise<unknown[]>((resolve, reject) => {
    sent.on('response', (...all) => resolve(all)).on('error', reject)
  })) as [import('node:http').IncomingMessage]
  const answer = await text(response)
  return { status: response.statusCode, headers: response.headers, body: answer === '' ? {} : JSON.parse(answer) }
}

const readFirstName = async () => (await send('GET', '/v1/people/ada')).body.data.first_name

describe('an error', () => {
  it('is a problem of RFC 9457 with the same members if the client accepts that', async () => {
    const Authorization = `Bearer ${shop.token}`
    const plain = await sendRaw('GET', '/v1/people/nobody', { Authorization, 'X-Request-Id': 'one' })
    const headers = { Authorization, 'X-Request-Id': 'one', Accept: 'application/problem+json, application/json' }
    const problem = await sendRaw('GET', '/v1/people/nobody', headers)
    expect([problem.status, problem.headers['content-type']]).toEqual([404, 'application/problem+json'])
    const { type, title, status, detail, ...members } = problem.body
    expect([type, title, status, detail]).toEqual(['urn:kith:error:not_found', 'not found', 404, plain.body.message])
    expect(members).toEqual(plain.body)
  })
})

describe('a condition', () => {
  const stored = () => send('GET', '/v1/schema/settings').then(({ body }) => body.data.display_name)

  it.each(['"1"', '*'])('that a write would ignore is refused: If-Match: %s', async tag => {
    for (const [method, path, body] of [
      ['PATCH', '/v1/schema/settings', { display_name: 'New' }],
      ['POST', '/v1/people/batch', { operations: [{ op: 'delete', external_id: 'ada' }] }],
    ] as const) {
      const { status, body: refused } = await send(method, path, body, { 'If-Match': tag })
      expect([status, refused.details?.[0]?.path]).toEqual([400, '/If-Match'])
    }
    expect([await stored(), (await send('GET', '/v1/people/ada')).status]).toEqual([null, 200])
  })

  it.each(['POST /v1/people/upsert', 'PUT /v1/people/ada', 'PATCH /v1/people/ada', 'POST /v1/people'])(
    'of a cache is refused: If-None-Match at %s',
    async request => {
      const [method, path] = request.split(' ') as [string, string]
      const body = { external_id: 'ada', first_name: 'New' }
      const refused = await send(method, path, body, { 'If-None-Match': '*' })
      expect([refused.status, refused.body.details?.[0]?.path]).toEqual([400, '/If-None-Match'])
      expect(await readFirstName()).toBeNull()
    },
  )

  it('of a read is honored, also of one by POST', async () => {
    expect((await send('POST', '/v1/people/filter', { filter: {} }, { 'If-None-Match': '*' })).status).toBe(200)
    expect((await send('GET', '/v1/people/ada', undefined, { 'If-None-Match': '*' })).status).toBe(304)
  })
})

describe('binding', () => {
  it.each([
    'application/json',
    'APPLICATION/JSON',
    'application/json; charset=utf-8',
    ' application/json;x=y',
    'application/merge-patch+json',
  ])('reads a body of type %s and ignores the query', async type => {
    const reply = await send(
      'PATCH',
      '/v1/people/ada?last_name=query',
      { first_name: 'body' },
      { 'Content-Type': type },
    )
    expect(reply.status).toBe(200)
    expect((await send('GET', '/v1/people/ada')).body.data).toMatchObject({ first_name: 'body', last_name: null })
  })

  it.each(['text/plain', 'application/x-www-form-urlencoded', 'application/json5', 'application/jsonx', 'nonsense'])(
    'ignores a body of type %s and reads the query',
    async type => {
      const reply = await send('PATCH', '/v1/people/ada?first_name=%20query%20', '{"first_name": "body"}', {
        'Content-Type': type,
      })
      expect([reply.status, await readFirstName()]).toEqual([200, 'query'])
    },
  )

  it('reads the query if there is no body, and refuses a request with neither', async () => {
    const headers = { Authorization: `Bearer ${shop.token}` }
    expect((await sendRaw('PATCH', '/v1/people/ada?first_name=a+b', headers)).status).toBe(200)
    expect(await readFirstName()).toBe('a b')
    for (const [method, path] of [
      ['POST', '/v1/people'],
      ['POST', '/v1/people/upsert'],
      ['PUT', '/v1/people/ada'],
      ['PATCH', '/v1/people/ada'],
    ] as const)
      for (const body of [undefined, '{}']) {
        const reply = await sendRaw(method, path, { ...headers, ...(body && { 'Content-Type': 'text/plain' }) }, body)
        expect([reply.status, reply.body.error]).toEqual([400, 'invalid_parameter'])
        expect(reply.body.message).toMatch(/^Body required: .*Content-Type: application\/json/)
      }
    expect(await readFirstName()).toBe('a b')
  })

  it.each([
    'first_name=a&first_name=b',
    'first_name=%ff',
    'first_name=%00',
    'attribute_values[__proto__]=1',
    'attribute_values[a',
    'email_consent=maybe',
  ])('refuses the query %s', async query => {
    const reply = await sendRaw('PATCH', `/v1/people/ada?${query}`, { Authorization: `Bearer ${shop.token}` })
    expect([reply.status, reply.body.error]).toEqual([400, 'invalid_parameter'])
  })
})

describe('authentication', () => {
  it.each([
    ['/v1/people/ada', 'GET'],
    ['/v1/nothing', 'GET'],
    ['/v1/people/ada', 'POST'],
    ['/v1', 'GET'],
  ])('requires a token first for %s %s', async (path, method) => {
    const missing = await sendRaw(method, path, {})
    expect([missing.status, missing.body.error, missing.headers['www-authenticate']]).toEqual([
      401,
      'unauthorized',
      'Bearer realm="kith"',
    ])
    const wrong = await sendRaw(method, path, { Authorization: 'Bearer x.y.z' })
    expect([wrong.status, wrong.headers['www-authenticate']]).toEqual([
      401,
      'Bearer realm="kith", error="invalid_token"',
    ])
  })

  it('requires the scope of the endpoint before the request is read', async () => {
    const organization = await service.organization()
    const reader = service.sender(await service.tokenFor(organization.key, 'people:read schema:write'))
    const reply = await reader('POST', '/v1/people', '{broken')
    expect([reply.status, reply.body.error]).toEqual([403, 'forbidden'])
    expect(reply.headers.get('www-authenticate')).toBe(
      'Bearer realm="kith", error="insufficient_scope", scope="people:write"',
    )
    expect((await reader('GET', '/v1/people/nobody')).status).toBe(404)
  })
})

describe('routing and envelopes', () => {
  it.each([
    ['POST', '/v1/people/ada', 'GET, PUT, PATCH, DELETE, HEAD'],
    ['GET', '/v1/people', 'POST'],
    ['DELETE', '/v1/schema/stacks', 'POST, GET, HEAD'],
    ['PROPFIND', '/v1/people/ada', 'GET, PUT, PATCH, DELETE, HEAD'],
    ['PROPFIND', '/v1/people/list', 'GET, PUT, PATCH, DELETE, HEAD, POST'],
    ['OPTIONS', '/v1/people', 'POST'],
    ['MKCOL', '/v1/stacks/orders/batch', 'GET, PUT, PATCH, DELETE, HEAD, POST'],
    ['GET', '/oauth/token', 'POST'],
    ['PROPFIND', '/oauth/token', 'POST'],
    ...['/healthz', '/readyz', '/metrics', '/openapi.json', '/docs', '/docs/api', '/.well-known/jwks.json'].flatMap(
      path => ['POST', 'DELETE', 'OPTIONS', 'PROPFIND'].map(method => [method, path, 'GET, HEAD']),
    ),
  ])('%s %s returns 405 with the allowed methods', async (method, path, allow) => {
    const reply = await send(method, path)
    expect([reply.status, reply.body.error]).toEqual([405, 'invalid_parameter'])
    expect(reply.headers.get('allow')!.split(', ').sort()).toEqual(allow.split(', ').sort())
  })

  it.each(['/v1/nothing', '/v1/people/ada/nothing', '/v2/people', '/nothing'])(
    '%s returns 404 in the error envelope',
    async path => {
      const reply = await send('GET', path)
      expect([reply.status, reply.body.error, reply.body.errorstack]).toEqual([404, 'not_found', null])
    },
  )

  it('distinguishes an unknown path from a missing stack and a missing person', async () => {
    const missing = async (path: string) => {
      const { status, body } = await send('GET', path)
      expect([status, body.error]).toEqual([404, 'not_found'])
      return [body.message, body.details!.map(({ path }) => path)]
    }
    expect(await missing('/v1/persons/ada')).toEqual(['There is no such address.', ['']])
    expect(await missing('/v1/stacks/orders/o1')).toEqual(['There is no such stack: "orders".', ['/stack_key']])
    expect(await missing('/v1/people/nobody')).toEqual(['There is no such person.', []])
  })

  it('keeps a valid request id, otherwise makes one, and sends it in header and body', async () => {
    const valid = await send('GET', '/v1/nothing', undefined, { 'X-Request-Id': 'a-B_9' })
    expect([valid.headers.get('x-request-id'), valid.body.request_id]).toEqual(['a-B_9', 'a-B_9'])
    for (const id of ['a b', 'x'.repeat(65), 'ä']) {
      const replaced = await send('GET', '/v1/nothing', undefined, { 'X-Request-Id': encodeURI(id) })
      expect(replaced.body.request_id).toMatch(/^[\w-]{36}$/)
    }
  })

  it('sends the envelopes exactly, byte by byte', async () => {
    const reply = await fetch(`${service.address}/v1/people/ada`, {
      method: 'PATCH',
      headers: { Authorization: `Bearer ${shop.token}`, 'Content-Type': 'application/json', 'X-Request-Id': 'r' },
      body: '{}',
    })
    expect(await reply.text()).toBe('{"status":"Success","data":true}')
    const missing = await fetch(`${service.address}/v1/people/nobody`, {
      headers: { Authorization: `Bearer ${shop.token}`, 'X-Request-Id': 'r' },
    })
    expect(await missing.text()).toBe(
      '{"error":"not_found","errorstack":null,"message":"There is no such person.","details":[],"request_id":"r"}',
    )
  })
})
