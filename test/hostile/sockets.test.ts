import { describe, expect, test } from 'vitest'
import { digestOf } from './test-tenant.ts'
import { useWire } from './wire.ts'

const wire = useWire()

const json = 'Content-Type: application/json'

describe('the first line', () => {
  test.each([
    ['HTTP/3.0', 'GET /v1/people/ada HTTP/3.0\r\n\r\n'],
    ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['TLS', Buffer.from('16030100050100000100', 'hex')],
    ['a space in the address', 'GET /v1/people/a da HTTP/1.1\r\nHost: kith\r\n\r\n'],
    ['a tab', 'GET\t/v1/people/ada HTTP/1.1\r\nHost: kith\r\n\r\n'],
    ['a method in small letters', 'get /v1/people/ada HTTP/1.1\r\nHost: kith\r\n\r\n'],
    ['a method nobody knows', 'BREW /v1/people/ada HTTP/1.1\r\nHost: kith\r\n\r\n'],
    ['an address without a slash', 'GET v1/people/ada HTTP/1.1\r\nHost: kith\r\n\r\n'],
    ['no host', 'GET /healthz HTTP/1.1\r\n\r\n'],
  ])('of %s is refused', async (_, sent) => {
    const { responses } = await wire.send([sent], 1)
    expect(responses.map(({ status }) => status)).toEqual([400])
    expect(JSON.parse(responses[0]!.body)).toMatchObject({ error: 'invalid_parameter', errorstack: null })
  })

  test('of HTTP/1.0 is answered, and the connection closed unless it asks to stay', async () => {
    const sent = `GET /v1/people/ada HTTP/1.0\r\nAuthorization: Bearer ${wire.organization.token}\r\n\r\n`
    const { responses, closed } = await wire.send([sent], 2)
    expect([responses.map(({ status }) => status), closed]).toEqual([[200], true])
  })

  test.each([
    ['HTTP/0.9', 'GET /v1/people/ada\r\n\r\n'],
    ['HTTP/0.9 by name', 'GET /v1/people/ada HTTP/0.9\r\n\r\n'],
    ['two spaces', 'GET  /v1/people/ada HTTP/1.1\r\nHost: kith\r\n\r\n'],
  ])('of %s is no way around the token', async (_, sent) => {
    const { responses } = await wire.send([sent], 1)
    expect(responses.map(({ status }) => status)).toEqual([401])
  })

  test('with an asterisk means no address of ours', async () => {
    const { responses } = await wire.send([wire.request('OPTIONS * HTTP/1.1', ['Connection: close'])], 1)
    expect(responses.map(({ status }) => status)).toEqual([404])
  })

  test('of CONNECT makes no tunnel', async () => {
    const { responses, closed } = await wire.send(
      [`CONNECT kith:80 HTTP/1.1\r\nHost: kith:80\r\n\r\n${wire.smuggled()}`],
      2,
    )
    expect(responses.filter(({ status }) => status < 400)).toEqual([])
    expect(closed).toBe(true)
    expect(await digestOf(wire.service, wire.organization.id)).toBe(wire.before)
  })

  test('with bytes beyond ASCII in the address is refused', async () => {
    const { responses } = await wire.send(
      [Buffer.from(wire.request('GET /v1/people/ad\xe4 HTTP/1.1', []), 'latin1')],
      1,
    )
    expect(responses.map(({ status }) => status)).toEqual([400])
  })
})

describe('headers', () => {
  test('that ask for another protocol change none', async () => {
    const { responses } = await wire.send(
      [
        wire.request('GET /v1/people/ada HTTP/1.1', [
          'Connection: Upgrade, HTTP2-Settings',
          'Upgrade: h2c',
          'HTTP2-Settings: AAMAAABkAAQAAP__',
        ]),
      ],
      1,
    )
    expect(responses.map(({ status }) => status)).toEqual([200])
  })

  test.each([
    'X-HTTP-Method-Override: DELETE',
    'X-Method-Override: DELETE',
    'X-Original-URL: /v1/people/bob',
    'X-Rewrite-URL: /v1/people/bob',
  ])('%s override nothing', async header => {
    const { responses } = await wire.send([wire.request('GET /v1/people/ada HTTP/1.1', [header])], 1)
    expect(responses[0]).toMatchObject({ status: 200, body: expect.stringContaining('"external_id":"ada"') })
  })

  test('that are endless are refused with 431', async () => {
    const { responses, closed } = await wire.send(
      [wire.request('GET /v1/people/ada HTTP/1.1', [`X-Long: ${'a'.repeat(20_000)}`])],
      2,
    )
    expect([responses.map(({ status }) => status), closed]).toEqual([[431], true])
  })

  test('of two hosts, or two tokens, are refused', async () => {
    const twice = [`Authorization: Bearer ${wire.organization.token}`]
    const { responses } = await wire.send([wire.request('GET /v1/people/ada HTTP/1.1', twice)], 1)
    expect(responses.map(({ status }) => status)).toEqual([401])
  })
})

describe('requests behind each other on one connection', () => {
  test('are answered in their order, each body its own', async () => {
    const bodies = Array.from({ length: 30 }, (_, nth) => `{"attribute_values":{"n":${nth}}}`)
    const sent = bodies.map(body =>
      wire.request('POST /v1/people HTTP/1.1', [json, `Content-Length: ${body.length}`], body),
    )
    const { responses } = await wire.send([sent.join('')], 30)
    expect(responses.map(({ body }) => JSON.parse(body).data.attribute_values.n)).toEqual(bodies.map((_, nth) => nth))
  })

  test('byte by byte are the same requests', async () => {
    const sent =
      wire.patch(['Content-Length: 17'], '{"last_name":"B"}') + wire.request('GET /v1/people/ada HTTP/1.1', [])
    const { responses } = await wire.send([...sent], 2)
    expect(responses.map(({ status }) => status)).toEqual([200, 200])
    expect((await wire.organization.send('GET', '/v1/people/ada')).body.data.last_name).toBe('B')
  })

  test('do not inherit a token', async () => {
    const { responses } = await wire.send(
      [wire.request('GET /v1/people/ada HTTP/1.1', []), 'GET /v1/people/ada HTTP/1.1\r\nHost: kith\r\n\r\n'],
      2,
    )
    expect(responses.map(({ status }) => status)).toEqual([200, 401])
  })

  test('a body that a GET brings is read to its end, and is no request', async () => {
    const body = wire.smuggled()
    const { responses } = await wire.send(
      [
        wire.request('GET /v1/people/ada HTTP/1.1', [`Content-Length: ${body.length}`], body),
        wire.request('GET /v1/people/ada HTTP/1.1', []),
      ],
      2,
    )
    expect(responses.map(({ status }) => status)).toEqual([200, 200])
  })
})
