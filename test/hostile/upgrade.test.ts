import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { writePair } from '../support/certificate.ts'
import { endProcesses, makeFolder } from '../support/process.ts'
import { type Service, startService } from '../support/service.ts'
import { digestOf } from './test-tenant.ts'
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

const asking: [string, () => string][] = [
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

describe.each(['http', 'https'])('over %s a request with Upgrade', protocol => {
  const send = (parts: string[], count: number, inTurn = false) =>
    exchange((protocol === 'http' ? wire.service : encrypted).address, parts, count, inTurn)

  async function holdAnsweredAlone(parts: string[]) {
    const { responses, closed } = await send(parts, 2, true)
    expect(responses.map(({ status }) => status)).toEqual([200])
    expect(responses[0]!.headers).toMatch(/\r\nConnection: close(\r|$)/)
    expect(closed).toBe(true)
    expect(await digestOf(wire.service, wire.organization.id)).toBe(wire.before)
  }

  test.each(asking)('is answered and ends its connection: %s', async (_, ask) => {
    await holdAnsweredAlone([ask()])
  })

  test.each(asking)('hides no request in a body that comes behind it: %s', async (_, ask) => {
    const smuggled = wire.smuggled()
    const head = wire.request('POST /v1/people/list HTTP/1.1', [json, `Content-Length: ${smuggled.length}`])
    await holdAnsweredAlone([ask() + head, smuggled])
  })

  test.each(asking)('lets no request behind it begin, in the same chunk or the next: %s', async (_, ask) => {
    await holdAnsweredAlone([ask() + wire.smuggled(), wire.smuggled()])
  })

  test('leaves the answers to those before it as they are', async () => {
    const first = wire.request('GET /healthz HTTP/1.1', [])
    const { responses, closed } = await send([first + first + asking[0]![1]() + wire.smuggled()], 4)
    expect(responses.map(({ headers }) => /\r\nConnection: ([\w-]+)/.exec(headers)?.[1])).toEqual([
      'keep-alive',
      'keep-alive',
      'close',
    ])
    expect(closed).toBe(true)
  })

  test.each([
    ['a length', `Content-Length: ${body.length}`, body],
    ['chunks', 'Transfer-Encoding: chunked', `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`],
  ])('is carried out with its whole body: %s', async (_, framing, sent) => {
    await wire.organization.send('PATCH', '/v1/people/ada', { last_name: null })
    const head = wire.patch([...h2c, framing])
    const { responses } = await send([head + sent.slice(0, 5), sent.slice(5)], 1)
    expect(responses.map(({ status }) => status)).toEqual([200])
    expect((await wire.organization.send('GET', '/v1/people/ada')).body.data.last_name).toBe('L')
  })
})
