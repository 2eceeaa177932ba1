import { describe, expect, it, vi } from 'vitest'
import { createClient as createCredentials, revokeClient } from '../../src/auth/clients.ts'
import { useService } from '../../test/support/service.ts'
import { createClient } from '../index.ts'
import { networkError, refusal, type Step, scriptedClient, success } from './scripted-fetch.ts'

const clientCredentials = { clientId: 'shop', clientSecret: 'secret' }
const tokenResponse = (access_token: string, expires_in = 600) =>
  Response.json({ access_token, token_type: 'Bearer', expires_in, scope: 'people:read' })

/**
 * A client with clientCredentials. `requested` lists its requests: `token` for a token, else the Authorization header.
 */
function scripted(steps: Step[], options = {}) {
  const { sent, ...rest } = scriptedClient(steps, { token: undefined, clientCredentials, ...options } as never)
  const requested = () =>
    sent.map(({ url, headers }) => (url.endsWith('/oauth/token') ? 'token' : headers.get('authorization')))
  return { ...rest, sent, requested }
}

describe('clientCredentials', () => {
  it('fetch one token for concurrent calls and cache it', async () => {
    const { client, requested } = scripted([tokenResponse('a'), success({}), success({}), success({})])
    await Promise.all([client.people.get('ada'), client.people.get('bob')])
    await client.people.get('cy')
    expect(requested()).toEqual(['token', 'Bearer a', 'Bearer a', 'Bearer a'])
  })

  it('renew the token before it expires', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    try {
      const { client, requested } = scripted([
        tokenResponse('a'),
        success({}),
        success({}),
        tokenResponse('b'),
        success({}),
      ])
      for (const elapsedSeconds of [0, 470, 20]) {
        vi.setSystemTime(Date.now() + elapsedSeconds * 1_000)
        await client.people.get('ada')
      }
      expect(requested()).toEqual(['token', 'Bearer a', 'Bearer a', 'token', 'Bearer b'])
    } finally {
      vi.useRealTimers()
    }
  })

  it('renew a refused token once, also for writes and exports', async () => {
    const refused = () => refusal('unauthorized', 401)
    const patched = scripted([tokenResponse('a'), refused(), tokenResponse('b'), success(true)], { retries: 0 })
    expect(await patched.client.people.patch('ada', {})).toBe(true)
    expect(patched.requested()).toEqual(['token', 'Bearer a', 'token', 'Bearer b'])
    const twice = scripted([tokenResponse('a'), refused(), tokenResponse('b'), refused()])
    await expect(twice.client.people.get('ada')).rejects.toMatchObject({ code: 'unauthorized', status: 401 })
    const lines = new Response('{"external_id":"ada"}\n', { headers: { 'Content-Type': 'application/x-ndjson' } })
    const exported = scripted([tokenResponse('a'), refused(), tokenResponse('b'), lines])
    for await (const person of exported.client.people.export()) expect(person).toEqual({ external_id: 'ada' })
    expect(exported.requested()).toEqual(['token', 'Bearer a', 'token', 'Bearer b'])
  })

  it('retry a failed token request before the call is sent', async () => {
    const { client, requested } = scripted([
      networkError('ECONNRESET'),
      refusal('operation_failed', 503),
      tokenResponse('a'),
      success(true),
    ])
    expect(await client.people.patch('ada', {})).toBe(true)
    expect(requested()).toEqual(['token', 'token', 'token', 'Bearer a'])
  })

  it('that are wrong cause an error without the secret', async () => {
    const wrong = Response.json({ error: 'invalid_client', error_description: 'Unknown.' }, { status: 401 })
    const { client, sent } = scripted([wrong])
    const error = await client.people.get('ada').catch(each => each)
    expect(error).toMatchObject({ name: 'KithError', code: 'unauthorized', status: 401, message: 'Unknown.' })
    expect(sent).toHaveLength(1)
    const elsewhere = scripted([new Response('<h1>hello</h1>', { status: 404 })])
    await expect(elsewhere.client.people.get('ada')).rejects.toMatchObject({ name: 'KithConnectionError', status: 404 })
  })
})

describe('clientCredentials of a service', () => {
  const service = useService()

  it('from kith client create give its scopes or fewer until the client is revoked', async () => {
    const { key } = await service.organization()
    const created = await createCredentials(service.db, {
      organizationKey: key,
      scope: 'people:read people:write',
      name: 'shop',
    })
    const credentials = { clientId: created.client_id, clientSecret: created.client_secret }
    const open = (scope?: string) =>
      createClient({ url: service.address, clientCredentials: { ...credentials, ...(scope && { scope }) } })
    expect(await open().people.create({ external_id: 'ada' })).toMatchObject({ external_id: 'ada' })
    await expect(open('people:read').people.create({})).rejects.toMatchObject({ code: 'forbidden' })
    await expect(open('schema:read').people.get('ada')).rejects.toMatchObject({ code: 'unauthorized', status: 400 })
    await revokeClient(service.db, created.client_id)
    await expect(open().people.get('ada')).rejects.toMatchObject({ code: 'unauthorized', status: 401 })
  })
})
