import { describe, expect, it } from 'vitest'
import { readDigest } from './test-tenant.ts'
import { useWire } from './wire.ts'

const wire = useWire()

const json = 'Content-Type: application/json'

describe('a request line', () => {
  it.each([
    ['HTTP/3.0', 'GET /v1/people/ada HTTP/3.0\r\n\r\n'],
    ['the HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['a TLS handshake', Buffer.from('16030100050100000100', 'hex')],
    ['a space in the path', 'GET /v1/people/a da HTTP/1.1\r\nHost: kith\r\n\r\n'],
    ['a tab', 'GET\t/v1/people/ada HTTP/1.1\r\nHost: kith\r\n\r\n'],
    ['a lowercase method', 'get /v1/people/ada HTTP/1.1\r\nHost: kith\r\n\r\n'],
    ['an unknown method', 'BREW /v1/people/ada HTTP/1.1\r\nHost: kith\r\n\r\n'],
    ['a path without a leading slash', 'GET v1/people/ada HTTP/1.1\r\nHost: kith\r\n\r\n'],
    ['no Host header', 'GET /healthz HTTP/1.1\r\n\r\n'],
    ['two Host headers', 'GET /healthz HTTP/1.1\r\nHost: kith\r\nHost: other\r\n\r\n'],
    ['two Host headers in two cases', 'GET /healthz HTTP/1.1\r\nhost: kith\r\nAccept: */*\r\nHOST: kith\r\n\r\n'],
    ['two Host headers of HTTP/1.0', 'GET /healthz HTTP/1.0\r\nHost: kith\r\nHost: kith\r\n\r\n'],
    ['HTTP/0.9', 'GET /healthz\r\n\r\n'],
    ['an explicit HTTP/0.9', 'GET /healthz HTTP/0.9\r\n\r\n'],
    ['HTTP/2.0', 'GET /healthz HTTP/2.0\r\nHost: kith\r\n\r\n'],
  ])('is refused with 400: %s', async (_, sent) => {
    const { responses } = await wire.send([sent], 1)
    expect(responses.map(({ status }) => status)).toEqual([400])
    expect(JSON.parse(responses[0]!.body)).toMatchObject({ error: 'invalid_parameter', errorstack: null })
  })

  it('gets a response and a closed connection for HTTP/1.0', async () => {
    const sent = `GET /v1/people/ada HTTP/1.0\r\nAuthorization: Bearer ${wire.organization.token}\r\n\r\n`
    const { responses, closed } = await wire.send([sent], 2)
    expect([responses.map(({ status }) => status), closed]).toEqual([[200], true])
  })

  it('needs a token if it has two spaces', async () => {
    const { responses } = await wire.send(['GET  /v1/people/ada HTTP/1.1\r\nHost: kith\r\n\r\n'], 1)
    expect(responses.map(({ status }) => status)).toEqual([401])
  })

  it('returns 404 for the target *', async () => {
    const { responses } = await wire.send([wire.request('OPTIONS * HTTP/1.1', ['Connection: close'])], 1)
    expect(responses.map(({ status }) => status)).toEqual([404])
  })

  it('opens no tunnel for CONNECT', async () => {
    const { responses, closed } = await wire.send(
      [`CONNECT kith:80 HTTP/1.1\r\nHost: kith:80\r\n\r\n${wire.smuggled()}`],
      2,
    )
    expect(responses.filter(({ status }) => status < 400)).toEqual([])
    expect(closed).toBe(true)
    expect(await readDigest(wire.service, wire.organization.id)).toBe(wire.digestBefore)
  })

  it('is refused with 400 if its path has bytes outside ASCII', async () => {
    const { responses } = await wire.send(
      [Buffer.from(wire.request('GET /v1/people/ad\xe4 HTTP/1.1', []), 'latin1')],
      1,
    )
    expect(responses.map(({ status }) => status)).toEqual([400])
  })
})

describe('request headers', () => {
  it('are ignored if they ask for another protocol', async () => {
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

  it.each([
    'X-HTTP-Method-Override: DELETE',
    'X-Method-Override: DELETE',
    'X-Original-URL: /v1/people/bob',
    'X-Rewrite-URL: /v1/people/bob',
  ])('do not override the method or the path: %s', async header => {
    const { responses } = await wire.send([wire.request('GET /v1/people/ada HTTP/1.1', [header])], 1)
    expect(responses[0]).toMatchObject({ status: 200, body: expect.stringContaining('"external_id":"ada"') })
  })

  it('are refused with 431 if they are too long', async () => {
    const { responses, closed } = await wire.send(
      [wire.request('GET /v1/people/ada HTTP/1.1', [`X-Long: ${'a'.repeat(20_000)}`])],
      2,
    )
    expect([responses.map(({ status }) => status), closed]).toEqual([[431], true])
  })

  it('are refused with 401 if they have two tokens', async () => {
    const secondToken = [`Authorization: Bearer ${wire.organization.token}`]
    const { responses } = await wire.send([wire.request('GET /v1/people/ada HTTP/1.1', secondToken)], 1)
    expect(responses.map(({ status }) => status)).toEqual([401])
  })
})

describe('pipelined requests', () => {
  it('get responses in order, each for its own body', async () => {
    const bodies = Array.from({ length: 30 }, (_, nth) => `{"attribute_values":{"n":${nth}}}`)
    const sent = bodies.map(body =>
      wire.request('POST /v1/people HTTP/1.1', [json, `Content-Length: ${body.length}`], body),
    )
    const { responses } = await wire.send([sent.join('')], 30)
    expect(responses.map(({ body }) => JSON.parse(body).data.attribute_values.n)).toEqual(bodies.map((_, nth) => nth))
  })

  it.each([
    ['no HTTP', 'NO HTTP\r\n\r\n', 400],
    ['headers that are too long', `GET / HTTP/1.1\r\nX-Long: ${'x'.repeat(100_000)}\r\n\r\n`, 431],
    ['a malformed body', 'POST /v1/people HTTP/1.1\r\nHost: kith\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n', 400],
  ])('are answered before the refusal of what follows them: %s', async (_, malformed, status) => {
    const body = '{"first_name":"A"}'
    const create = wire.request('POST /v1/people HTTP/1.1', [json, `Content-Length: ${body.length}`], body)
    const { responses, closed } = await wire.send([create + create + malformed], 5)
    expect(responses.slice(0, 2).map(({ status }) => status)).toEqual([201, 201])
    // A body of a request without a token may be refused before it is malformed.
    for (const refused of responses.slice(2)) expect([status, 401]).toContain(refused.status)
    expect(responses.length).toBeGreaterThan(2)
    expect(closed).toBe(true)
  })

  it('are understood when they arrive byte by byte', async () => {
    const sent =
      wire.patch(['Content-Length: 17'], '{"last_name":"B"}') + wire.request('GET /v1/people/ada HTTP/1.1', [])
    const { responses } = await wire.send([...sent], 2)
    expect(responses.map(({ status }) => status)).toEqual([200, 200])
    expect((await wire.organization.send('GET', '/v1/people/ada')).body.data.last_name).toBe('B')
  })

  it('do not inherit the token of the request before', async () => {
    const { responses } = await wire.send(
      [wire.request('GET /v1/people/ada HTTP/1.1', []), 'GET /v1/people/ada HTTP/1.1\r\nHost: kith\r\n\r\n'],
      2,
    )
    expect(responses.map(({ status }) => status)).toEqual([200, 401])
  })

  it('are not read from the body of a GET', async () => {
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
