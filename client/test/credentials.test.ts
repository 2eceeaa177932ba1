import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { createClient as createCredentials, revokeClient } from '../../src/auth/clients.ts'
import { type Service, startService } from '../../test/support/service.ts'
import { createClient } from '../index.ts'
import { networkError, refusal, type Step, scriptedClient, success } from './scripted-fetch.ts'

const clientCredentials = { clientId: 'shop', clientSecret: 'secret' }
const granted = (access_token: string, expires_in = 600) =>
  Response.json({ access_token, token_type: 'Bearer', expires_in, scope: 'people:read' })

/** A client of its own credentials; what it asked for, and the tokens that its requests bore. */
function scripted(steps: Step[], options = {}) {
  const { sent, ...rest } = scriptedClient(steps, { token: undefined, clientCredentials, ...options } as never)
  const asked = () =>
    sent.map(({ url, headers }) => (url.endsWith('/oauth/token') ? 'token' : headers.get('authorization')))
  return { ...rest, sent, asked }
}

describe('clientCredentials', () => {
  it('fetch one token for calls that begin together, and keep it', async () => {
    const { client, asked } = scripted([granted('a'), success({}), success({}), success({})])
    await Promise.all([client.people.get('ada'), client.people.get('bob')])
    await client.people.get('cy')
    expect(asked()).toEqual(['token', 'Bearer a', 'Bearer a', 'Bearer a'])
  })

  it('renew it before it expires', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    try {
      const { client, asked } = scripted([granted('a'), success({}), success({}), granted('b'), success({})])
      for (const passed of [0, 470, 20]) {
        vi.setSystemTime(Date.now() + passed * 1_000)
        await client.people.get('ada')
      }
      expect(asked()).toEqual(['token', 'Bearer a', 'Bearer a', 'token', 'Bearer b'])
    } finally {
      vi.useRealTimers()
    }
  })

  it('renew it once when it is refused, for writes and exports too', async () => {
    const refused = () => refusal('unauthorized', 401)
    const patched = scripted([granted('a'), refused(), granted('b'), success(true)], { retries: 0 })
    expect(await patched.client.people.patch('ada', {})).toBe(true)
    expect(patched.asked()).toEqual(['token', 'Bearer a', 'token', 'Bearer b'])
    const twice = scripted([granted('a'), refused(), granted('b'), refused()])
    await expect(twice.client.people.get('ada')).rejects.toMatchObject({ word: 'unauthorized', status: 401 })
    const lines = new Response('{"external_id":"ada"}\n', { headers: { 'Content-Type': 'application/x-ndjson' } })
    const exported = scripted([granted('a'), refused(), granted('b'), lines])
    for await (const person of exported.client.people.export()) expect(person).toEqual({ external_id: 'ada' })
    expect(exported.asked()).toEqual(['token', 'Bearer a', 'token', 'Bearer b'])
  })

  it('ask again for a token that the service could not give, before any call', async () => {
    const { client, asked } = scripted([
      networkError('ECONNRESET'),
      refusal('operation_failed', 503),
      granted('a'),
      success(true),
    ])
    expect(await client.people.patch('ada', {})).toBe(true)
    expect(asked()).toEqual(['token', 'token', 'token', 'Bearer a'])
  })

  it('that are wrong are told, and the secret is not', async () => {
    const wrong = Response.json({ error: 'invalid_client', error_description: 'Unknown.' }, { status: 401 })
    const { client, sent } = scripted([wrong])
    const error = await client.people.get('ada').catch(each => each)
    expect(error).toMatchObject({ name: 'KithError', word: 'unauthorized', status: 401, message: 'Unknown.' })
    expect(sent).toHaveLength(1)
    const elsewhere = scripted([new Response('<h1>hello</h1>', { status: 404 })])
    await expect(elsewhere.client.people.get('ada')).rejects.toMatchObject({ name: 'KithConnectionError', status: 404 })
  })
})

describe('clientCredentials of a service', () => {
  let service: Service
  beforeAll(async () => {
    service = await startService()
  })
  afterAll(() => service.stop())

  it('are those of kith client create, with its scopes or fewer, until it is revoked', async () => {
    const { key } = await service.organization()
    const made = await createCredentials(service.db, {
      organizationKey: key,
      scope: 'people:read people:write',
      name: 'shop',
    })
    const credentials = { clientId: made.client_id, clientSecret: made.client_secret }
    const open = (scope?: string) =>
      createClient({ url: service.address, clientCredentials: { ...credentials, ...(scope && { scope }) } })
    expect(await open().people.create({ external_id: 'ada' })).toMatchObject({ external_id: 'ada' })
    await expect(open('people:read').people.create({})).rejects.toMatchObject({ word: 'forbidden' })
    await expect(open('schema:read').people.get('ada')).rejects.toMatchObject({ word: 'unauthorized', status: 400 })
    await revokeClient(service.db, made.client_id)
    await expect(open().people.get('ada')).rejects.toMatchObject({ word: 'unauthorized', status: 401 })
  })
})
