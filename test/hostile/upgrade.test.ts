import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { writePair } from '../support/certificate.ts'
import { endProcesses, makeFolder } from '../support/process.ts'
import { type Service, startService } from '../support/service.ts'
import { readDigest } from './test-tenant.ts'
import { exchange, useWire } from './wire.ts'

const wire = useWire()
let encrypted: Service
beforeAll(async () => {
  encrypted = await startService({ ...(await writePair(await makeFolder())) }, wire.service.databaseUrl)
})
afterAll(async () => {
  await encrypted.stop()
  await endProcesses()
})

const websocket = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
]
const h2c = ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA']
const json = 'Content-Type: application/json'
const body = '{"last_name":"L"}'

const upgradeRequests: [string, () => string][] = [
  ['a GET that asks for a WebSocket', () => wire.request('GET /v1/people/ada HTTP/1.1', websocket)],
  ['a GET that asks for h2c', () => wire.request('GET /v1/people/ada HTTP/1.1', h2c)],
  ['a GET outside /v1', () => wire.request('GET /healthz HTTP/1.1', h2c)],
  [
    'a POST with a length',
    () => wire.request('POST /v1/people/list HTTP/1.1', [...h2c, json, 'Content-Length: 2'], '{}'),
  ],
  [
    'a POST in chunks',
    () =>
      wire.request(
        'POST /v1/people/list HTTP/1.1',
        [...websocket, json, 'Transfer-Encoding: chunked'],
        '2\r\n{}\r\n0\r\n\r\n',
      ),
  ],
]

describe.each(['http', 'https'])('a request with Upgrade over %s', protocol => {
  const send = (parts: string[], count: number, waitForEach = false) =>
    exchange((protocol === 'http' ? wire.service : encrypted).address, parts, count, waitForEach)

  async function expectOnlyAnswered(parts: string[], status = 200) {
    const { responses, closed } = await send(parts, 2, true)
    expect(responses.map(response => response.status)).toEqual([status])
    expect(responses[0]!.headers).toMatch(/\r\nConnection: close(\r|$)/)
    expect(closed).toBe(true)
    expect(await readDigest(wire.service, wire.organization.id)).toBe(wire.digestBefore)
  }

  it.each(upgradeRequests)('gets its response and closes the connection: %s', async (_, buildRequest) => {
    await expectOnlyAnswered([buildRequest()])
  })

  it.each(upgradeRequests)('does not start a request whose body hides another: %s', async (_, buildRequest) => {
    const smuggled = wire.smuggled()
    const head = wire.request('POST /v1/people/list HTTP/1.1', [json, `Content-Length: ${smuggled.length}`])
    await expectOnlyAnswered([buildRequest() + head, smuggled])
  })

  it('does not start a request whose body hides another, after one with an unknown expectation', async () => {
    const smuggled = wire.smuggled()
    const head = wire.request('POST /v1/people/list HTTP/1.1', [json, `Content-Length: ${smuggled.length}`])
    const refused = wire.request('GET /v1/people/ada HTTP/1.1', [...h2c, 'Expect: unknown'])
    await expectOnlyAnswered([refused + head, smuggled], 400)
  })

  it.each(upgradeRequests)(
    'does not start a pipelined request, in the same chunk or the next: %s',
    async (_, buildRequest) => {
      await expectOnlyAnswered([buildRequest() + wire.smuggled(), wire.smuggled()])
    },
  )

  it('does not affect the responses to earlier requests', async () => {
    const first = wire.request('GET /healthz HTTP/1.1', [])
    const { responses, closed } = await send([first + first + upgradeRequests[0]![1]() + wire.smuggled()], 4)
    expect(responses.map(({ headers }) => /\r\nConnection: ([\w-]+)/.exec(headers)?.[1])).toEqual([
      'keep-alive',
      'keep-alive',
      'close',
    ])
    expect(closed).toBe(true)
  })

  it.each([
    ['a length', `Content-Length: ${body.length}`, body],
    ['chunks', 'Transfer-Encoding: chunked', `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`],
  ])('is processed with its whole body: %s', async (_, framing, framedBody) => {
    await wire.organization.send('PATCH', '/v1/people/ada', { last_name: null })
    const head = wire.patch([...h2c, framing])
    const { responses } = await send([head + framedBody.slice(0, 5), framedBody.slice(5)], 1)
    expect(responses.map(({ status }) => status)).toEqual([200])
    expect((await wire.organization.send('GET', '/v1/people/ada')).body.data.last_name).toBe('L')
  })
})
