import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { connectByHttp } from '../../test/support/assistant.ts'
import { writePair } from '../../test/support/certificate.ts'
import { useFolder } from '../../test/support/command.ts'
import { startService, useOwnService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'

const folder = useFolder()
const service = useOwnService()
const shop = useShop(service)

describe('/mcp', () => {
  const accept = 'application/json, text/event-stream'
  const post = (body: unknown, headers: Record<string, string> = {}) =>
    fetch(`${service.address}/mcp`, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        Accept: accept,
        Authorization: `Bearer ${shop.token}`,
        ...headers,
      },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
  const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' }

  it('refuses a caller without a valid token before it reads the body', async () => {
    for (const Authorization of ['', 'Bearer nothing', 'Basic eDp5']) {
      const response = await post('x'.repeat(1_000), { Authorization })
      expect([response.status, response.headers.get('WWW-Authenticate')]).toEqual([
        401,
        expect.stringMatching(/^Bearer realm="kith"/),
      ])
    }
    const cookie = await fetch(`${service.address}/mcp`, { method: 'POST', headers: { Cookie: 'kith_session=x' } })
    expect(cookie.status).toBe(401)
  })

  it('has only POST', async () => {
    for (const method of ['GET', 'DELETE', 'PUT']) {
      const response = await fetch(`${service.address}/mcp`, {
        method,
        headers: { Authorization: `Bearer ${shop.token}` },
      })
      expect([response.status, response.headers.get('Allow')]).toEqual([405, 'POST'])
    }
  })

  it('refuses pages of other origins', async () => {
    for (const Origin of ['https://evil.example', service.address, 'null'])
      expect((await post(list, { Origin })).status).toBe(403)
    expect((await post(list)).status).toBe(200)
  })

  it('refuses bodies that are too large, or not the protocol', async () => {
    expect((await post(`"${'x'.repeat(70_000)}"`)).status).toBe(413)
    for (const body of ['{', '[]', '{}', 'null', [list, list], '['.repeat(60_000)])
      expect((await post(body)).status).toBe(400)
    expect((await post(list, { 'Content-Type': 'text/plain' })).status).toBe(415)
    expect((await post(list, { Accept: 'text/html' })).status).toBe(406)
    const deep = `${'{"$not":'.repeat(5_000)}{}${'}'.repeat(5_000)}`
    const params = `{"name":"count","arguments":{"owner":"people","filter":${deep}}}`
    const answered = await post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`)
    expect(answered.status).toBe(400)
    expect(await answered.text()).toMatch(/"error"/)
  })

  it('refuses a value that would be stored otherwise than it was sent, and several messages', async () => {
    const callOf = (values: string) =>
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create","arguments":{"owner":"people","values":${values}}}}`
    const path = '/params/arguments/values/attribute_values/total'
    for (const [message, where] of [
      [callOf('{"attribute_values":{"total":0.1234567890123456789}}'), path],
      [callOf('{"attribute_values":{"total":1e400}}'), path],
      [callOf('{"first_name":"Ada","first_name":"Bob"}'), '/params/arguments/values/first_name'],
      ['[]', ''],
    ] as const) {
      const answered = await post(message)
      const refused = (await answered.json()) as { details: { path: string }[] }
      expect([answered.status, refused.details.map(({ path }) => path)]).toEqual([400, [where]])
    }
  })
})

describe('a service with few connections', () => {
  const small = useOwnService({ KITH_LIMIT_CONNECTIONS: '20' })

  it('answers more tools than it has connections, because those within the process end', async () => {
    const { token } = await small.organization()
    const many = await connectByHttp(small.address, token)
    for (let n = 0; n < 30; n++)
      expect((await many.call('count', { owner: 'people', filter: {} })).data).toMatchObject({ count: 0 })
  })

  it('reads at most 8 MiB for a tool, and then ends the connection', async () => {
    const { token, send } = await small.organization()
    const external_ids = Array.from({ length: 20 }, (_, n) => `large-${n}`)
    const notes = Array.from({ length: 8 }, (_, n) => [`note_${n}`, 'x'.repeat(60_000)])
    const attribute_values = Object.fromEntries(notes)
    for (const external_id of external_ids)
      expect((await send('POST', '/v1/people', { external_id, attribute_values })).status).toBe(201)
    const many = await connectByHttp(small.address, token)
    expect(await many.call('get', { owner: 'people', external_ids })).toMatchObject({
      isError: true,
      data: { message: expect.stringContaining('8 MiB') },
    })
    // A connection that no client reads would otherwise stay for 10 seconds.
    const isEnded = (line: string) => line.includes('"route":"/v1/people/get","aborted":true')
    await expect.poll(() => small.logs.some(isEnded), { timeout: 5_000 }).toBe(true)
  })
})

describe('another process of the service', () => {
  it('takes the confirmation of a dry run at the first', async () => {
    await shop.ok('POST', '/v1/people', { external_id: 'bob' })
    const second = await startService({}, service.databaseUrl)
    try {
      const [one, other] = [
        await connectByHttp(service.address, shop.token, { write: true }),
        await connectByHttp(second.address, shop.token, { write: true }),
      ]
      const patch = { owner: 'people', external_id: 'bob', changes: { first_name: 'Robert' } }
      const [, confirm] = /"confirm": "([^"]+)"/.exec((await one.call('patch', patch)).note)!
      expect((await other.call('patch', { ...patch, confirm })).data).toMatchObject({ stored: true })
      expect((await shop.ok('GET', '/v1/people/bob')).first_name).toBe('Robert')
    } finally {
      await second.stop()
    }
  })
})

describe('a service behind a proxy, with rate limits', () => {
  const proxied = useOwnService({
    ...{ KITH_ACCESS_LOG: 'strict', KITH_BEHIND_PROXY: '1', KITH_CORS_ORIGINS: 'https://app.example' },
    ...{ KITH_RATE_READ: '1', KITH_RATE_READ_BURST: '12' },
  })

  it('answers the pages of KITH_CORS_ORIGINS', async () => {
    const Origin = 'https://app.example'
    const asked = {
      Origin,
      'Access-Control-Request-Method': 'POST',
      'Access-Control-Request-Headers': 'mcp-protocol-version',
    }
    const preflight = await fetch(`${proxied.address}/mcp`, { method: 'OPTIONS', headers: asked })
    expect(preflight.headers.get('Access-Control-Allow-Headers')?.toLowerCase()).toContain('mcp-protocol-version')
    const { token } = await proxied.organization()
    const by = await connectByHttp(proxied.address, token, { headers: { Origin } })
    expect((await by.call('count', { owner: 'people', filter: {} })).data.count).toBe(0)
  })

  it('logs the address of the client, and counts each message and each request of its tool', async () => {
    const { token, send } = await proxied.organization()
    const by = await connectByHttp(proxied.address, token, { headers: { 'X-Forwarded-For': '192.0.2.7' } })
    await send('POST', '/v1/people', { external_id: 'ada' })
    await by.call('get', { owner: 'people', external_ids: ['ada'] })
    const { items } = (await send('GET', '/v1/access-log?limit=1')).body.data
    expect(items).toMatchObject([{ route: '/v1/people/get', ip: '192.0.2.7' }])
    const outcomes: string[] = []
    for (let n = 0; n < 12; n++)
      outcomes.push(
        await by.call('count', { owner: 'people', filter: {} }).then(
          ({ isError, note }) => (isError ? note : 'done'),
          ({ status }) => `HTTP ${status}`,
        ),
      )
    expect(outcomes[0]).toBe('done')
    expect(outcomes.filter(each => each === 'done').length).toBeLessThan(8)
    expect(outcomes.at(-1)).toMatch(/429/)
  })
})

it('serves tools over TLS too', async () => {
  const { request, Agent } = await import('undici')
  const pair = await writePair(folder)
  const encrypted = await startService(pair)
  const dispatcher = new Agent({ connect: { ca: readFileSync(pair.TLS_CERT_FILE) } })
  try {
    const { token } = await encrypted.organization()
    const params = { name: 'count', arguments: { owner: 'people', filter: {} } }
    const { body } = await request(`${encrypted.address}/mcp`, {
      dispatcher,
      method: 'POST',
      headers: {
        ...{ 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' },
        Authorization: `Bearer ${token}`,
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
    })
    expect(await body.text()).toContain(String.raw`{\"count\":0,`)
  } finally {
    await dispatcher.close()
    await encrypted.stop()
  }
})
