import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Service, startService } from '../support/service.ts'
import { digestOf } from './lane.ts'

let service: Service
let organization: Awaited<ReturnType<Service['organization']>>
let before: string
beforeAll(async () => {
  service = await startService()
  organization = await service.organization()
  await organization.send('POST', '/v1/people', { external_id: 'ada', first_name: 'Ada' })
})
afterAll(() => service.stop())
beforeEach(async () => {
  before = await digestOf(service, organization.id)
})

type Response = { status: number; headers: string; body: string }

/** Sends the parts one after the other and answers all that came until the connection was closed, or had answered `count`. */
function exchange(parts: (string | Buffer)[], count: number): Promise<{ responses: Response[]; closed: boolean }> {
  sendings += 1
  return new Promise((resolve, reject) => {
    const socket: Socket = connect(Number(new URL(service.address).port), '127.0.0.1')
    let received = Buffer.alloc(0)
    const end = (closed: boolean) => {
      socket.destroy()
      resolve({ responses: responsesIn(received), closed })
    }
    socket.on('data', part => {
      received = Buffer.concat([received, part])
      if (responsesIn(received).length >= count) end(false)
    })
    socket.on('close', () => end(true))
    socket.on('error', error => ((error as { code?: string }).code === 'ECONNRESET' ? end(true) : reject(error)))
    for (const part of parts) socket.write(part)
  })
}

/** Whole responses; a 100 is none. */
function responsesIn(received: Buffer): Response[] {
  const found: Response[] = []
  let rest = received.toString('latin1')
  for (;;) {
    const head_end = rest.indexOf('\r\n\r\n')
    if (head_end === -1) return found
    const headers = rest.slice(0, head_end)
    const status = Number(/^HTTP\/1\.1 (\d+)/.exec(headers)?.[1])
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(headers)?.[1] ?? 0)
    const body = rest.slice(head_end + 4, head_end + 4 + length)
    if (body.length < length) return found
    if (status >= 200) found.push({ status, headers, body })
    rest = rest.slice(head_end + 4 + length)
  }
}

const request = (line: string, headers: string[], body = '') =>
  `${[line, 'Host: kith', `Authorization: Bearer ${organization.token}`, ...headers].join('\r\n')}\r\n\r\n${body}`

const json = 'Content-Type: application/json'
/** What a smuggler would have carried out. */
const smuggled = () => request('DELETE /v1/people/ada HTTP/1.1', ['Content-Length: 0'])
const post = (headers: string[], body = '') => request('PATCH /v1/people/ada HTTP/1.1', [json, ...headers], body)

/** Refused with our envelope or cut off, closed, and nothing that stood behind it was carried out. */
async function refusedWhole(sent: string | Buffer, statuses = [400]) {
  const { responses, closed } = await exchange([sent], 2)
  expect(closed).toBe(true)
  expect(responses.length).toBeLessThanOrEqual(1)
  for (const { status, body, headers } of responses) {
    expect(statuses).toContain(status)
    expect(JSON.parse(body)).toMatchObject({ error: 'invalid_parameter', errorstack: null })
    expect(headers).toMatch(/\r\nconnection: close/i)
  }
  expect(await digestOf(service, organization.id)).toBe(before)
}

/** Sends of this file, for its count. */
let sendings = 0
afterAll(() => console.log(`raw sockets: ${sendings} connections`))

const hidden = (head: (length: number) => string[], body: (smuggled: string) => string) => () => {
  const whole = body(smuggled())
  return post(head(Buffer.byteLength(whole)), whole)
}

describe('a request that two readers would end at different places is refused and the connection closed:', () => {
  test.each<[string, () => string]>([
    [
      'a length and chunks',
      hidden(
        length => [`Content-Length: ${length}`, 'Transfer-Encoding: chunked'],
        rest => `0\r\n\r\n${rest}`,
      ),
    ],
    [
      'chunks and a length',
      hidden(
        length => ['Transfer-Encoding: chunked', `Content-Length: ${length}`],
        rest => `0\r\n\r\n${rest}`,
      ),
    ],
    [
      'two lengths that differ',
      hidden(
        length => ['Content-Length: 2', `Content-Length: ${length}`],
        rest => `{}${rest}`,
      ),
    ],
    [
      'two lengths that agree',
      hidden(
        () => ['Content-Length: 2', 'Content-Length: 2'],
        rest => `{}${rest}`,
      ),
    ],
    [
      'a list of lengths',
      hidden(
        () => ['Content-Length: 2, 2'],
        rest => `{}${rest}`,
      ),
    ],
    [
      'a length with a sign',
      hidden(
        () => ['Content-Length: +2'],
        rest => `{}${rest}`,
      ),
    ],
    [
      'a negative length',
      hidden(
        () => ['Content-Length: -1'],
        rest => `{}${rest}`,
      ),
    ],
    [
      'a hexadecimal length',
      hidden(
        () => ['Content-Length: 0x2'],
        rest => `{}${rest}`,
      ),
    ],
    [
      'an empty length',
      hidden(
        () => ['Content-Length: '],
        rest => `{}${rest}`,
      ),
    ],
    [
      'a length beyond 2^64',
      hidden(
        () => ['Content-Length: 18446744073709551618'],
        rest => `{}${rest}`,
      ),
    ],
    [
      'a length with an inner space',
      hidden(
        () => ['Content-Length: 2 2'],
        rest => `{}${rest}`,
      ),
    ],
    [
      'a space before the colon',
      hidden(
        length => [`Content-Length : ${length}`],
        rest => `{}${rest}`,
      ),
    ],
    [
      'a coding that is unknown',
      hidden(
        () => ['Transfer-Encoding: xchunked'],
        rest => `0\r\n\r\n${rest}`,
      ),
    ],
    [
      'chunks that are not last',
      hidden(
        () => ['Transfer-Encoding: chunked, identity'],
        rest => `0\r\n\r\n${rest}`,
      ),
    ],
    [
      'chunks twice',
      hidden(
        () => ['Transfer-Encoding: chunked', 'Transfer-Encoding: identity'],
        rest => `0\r\n\r\n${rest}`,
      ),
    ],
    [
      'a coding behind a vertical tab',
      hidden(
        () => ['Transfer-Encoding: \vchunked'],
        rest => `0\r\n\r\n${rest}`,
      ),
    ],
    [
      'a coding in quotes',
      hidden(
        () => ['Transfer-Encoding: "chunked"'],
        rest => `0\r\n\r\n${rest}`,
      ),
    ],
    [
      'a coding and a length, folded',
      hidden(
        length => [`Content-Length: ${length}`, 'Transfer-Encoding:\r\n chunked'],
        rest => `0\r\n\r\n${rest}`,
      ),
    ],
    [
      'a space before the coding’s colon',
      hidden(
        length => [`Content-Length: ${length}`, 'Transfer-Encoding : chunked'],
        rest => `0\r\n\r\n${rest}`,
      ),
    ],
    [
      'a folded header',
      hidden(
        () => ['X-Folded: a', ' Content-Length: 2'],
        rest => `{}${rest}`,
      ),
    ],
    [
      'a line without a colon',
      hidden(
        () => ['Nonsense'],
        rest => `{}${rest}`,
      ),
    ],
    [
      'a header without a name',
      hidden(
        () => [': value'],
        rest => `{}${rest}`,
      ),
    ],
    [
      'NUL in a header',
      hidden(
        () => ['X-Bad: a\0b'],
        rest => `{}${rest}`,
      ),
    ],
    [
      'a bare CR in a header',
      hidden(
        () => ['X-Bad: a\rContent-Length: 2'],
        rest => `{}${rest}`,
      ),
    ],
    [
      'a control in a header’s name',
      hidden(
        () => ['X\u0001Bad: a'],
        rest => `{}${rest}`,
      ),
    ],
  ])('%s', async (_, sentOf) => {
    await refusedWhole(sentOf())
  })
})

describe('a line that ends in a bare LF', () => {
  test('ends no header and hides no request', async () => {
    await refusedWhole(post(['Content-Length: 2\nX-Smuggled: a'], `{}${smuggled()}`))
    await refusedWhole(smuggled().replaceAll('\r\n', '\n'))
    await refusedWhole(post(['Transfer-Encoding: chunked'], `2\n{}\n0\n\n${smuggled()}`))
  })
})

describe('chunks', () => {
  const chunked = (body: string) => post(['Transfer-Encoding: chunked'], body)
  const patched = '{"last_name":"L"}'
  const size = patched.length.toString(16)

  test('of whatever sizes come together as one body', async () => {
    const body = [...patched].map(character => `1\r\n${character}\r\n`).join('')
    const { responses } = await exchange([chunked(`${body}0\r\n\r\n`)], 1)
    expect(responses.map(({ status }) => status)).toEqual([200])
  })

  test('with extensions and trailers mean what they mean without', async () => {
    const sent = `${size};name=value;quoted="a b"\r\n${patched}\r\n0;last\r\nX-Trailer: a\r\n\r\n`
    const { responses } = await exchange([chunked(sent), smuggled().replace('ada', 'nobody')], 2)
    expect(responses.map(({ status }) => status)).toEqual([200, 404])
  })

  test.each([
    ['a size that is no number', 'zz\r\n{}\r\n0\r\n\r\n'],
    ['a size with a sign', '-2\r\n{}\r\n0\r\n\r\n'],
    ['a size with 0x', '0x2\r\n{}\r\n0\r\n\r\n'],
    ['a size beyond 2^64', '10000000000000002\r\n{}\r\n0\r\n\r\n'],
    ['an empty size', '\r\n{}\r\n0\r\n\r\n'],
    ['a chunk longer than it says', '1\r\n{}\r\n0\r\n\r\n'],
    ['a chunk shorter than it says', '3\r\n{}\r\n0\r\n\r\n'],
    ['a space before the size', ' 2\r\n{}\r\n0\r\n\r\n'],
    ['LF in an extension', '2;a\nb\r\n{}\r\n0\r\n\r\n'],
    ['no CRLF behind the data', '2\r\n{}0\r\n\r\n'],
  ])('with %s are refused, and nothing behind them is carried out', async (_, body) => {
    await refusedWhole(chunked(body + smuggled()))
  })

  test('with endless extensions are cut off', async () => {
    await refusedWhole(chunked(`1;${'a'.repeat(100_000)}\r\n{\r\n1\r\n}\r\n0\r\n\r\n${smuggled()}`), [400, 413, 431])
  })

  test('in a trailer change no header', async () => {
    const sent = `2\r\n{}\r\n0\r\nAuthorization: Bearer x\r\nX-Request-Id: mine\r\n\r\n`
    const { responses } = await exchange([chunked(sent)], 1)
    expect(responses.map(({ status }) => status)).toEqual([200])
    expect(responses[0]!.headers).not.toMatch(/: mine\r/)
  })
})

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
    const { responses } = await exchange([sent], 1)
    expect(responses.map(({ status }) => status)).toEqual([400])
    expect(JSON.parse(responses[0]!.body)).toMatchObject({ error: 'invalid_parameter', errorstack: null })
  })

  test('of HTTP/1.0 is answered, and the connection closed unless it asks to stay', async () => {
    const sent = `GET /v1/people/ada HTTP/1.0\r\nAuthorization: Bearer ${organization.token}\r\n\r\n`
    const { responses, closed } = await exchange([sent], 2)
    expect([responses.map(({ status }) => status), closed]).toEqual([[200], true])
  })

  test.each([
    ['HTTP/0.9', 'GET /v1/people/ada\r\n\r\n'],
    ['HTTP/0.9 by name', 'GET /v1/people/ada HTTP/0.9\r\n\r\n'],
    ['two spaces', 'GET  /v1/people/ada HTTP/1.1\r\nHost: kith\r\n\r\n'],
  ])('of %s is no way around the token', async (_, sent) => {
    const { responses } = await exchange([sent], 1)
    expect(responses.map(({ status }) => status)).toEqual([401])
  })

  test('with an asterisk means no address of ours', async () => {
    const { responses } = await exchange([request('OPTIONS * HTTP/1.1', ['Connection: close'])], 1)
    expect(responses.map(({ status }) => status)).toEqual([404])
  })

  test('of CONNECT makes no tunnel', async () => {
    const { responses, closed } = await exchange([`CONNECT kith:80 HTTP/1.1\r\nHost: kith:80\r\n\r\n${smuggled()}`], 2)
    expect(responses.filter(({ status }) => status < 400)).toEqual([])
    expect(closed).toBe(true)
    expect(await digestOf(service, organization.id)).toBe(before)
  })

  test('with bytes beyond ASCII in the address is refused', async () => {
    const { responses } = await exchange([Buffer.from(request('GET /v1/people/ad\xe4 HTTP/1.1', []), 'latin1')], 1)
    expect(responses.map(({ status }) => status)).toEqual([400])
  })
})

describe('headers', () => {
  test('that ask for another protocol change none', async () => {
    const { responses } = await exchange(
      [
        request('GET /v1/people/ada HTTP/1.1', [
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
    const { responses } = await exchange([request('GET /v1/people/ada HTTP/1.1', [header])], 1)
    expect(responses[0]).toMatchObject({ status: 200, body: expect.stringContaining('"external_id":"ada"') })
  })

  test('that are endless are refused with 431', async () => {
    const { responses, closed } = await exchange(
      [request('GET /v1/people/ada HTTP/1.1', [`X-Long: ${'a'.repeat(20_000)}`])],
      2,
    )
    expect([responses.map(({ status }) => status), closed]).toEqual([[431], true])
  })

  test('of two hosts, or two tokens, are refused', async () => {
    const twice = [`Authorization: Bearer ${organization.token}`]
    const { responses } = await exchange([request('GET /v1/people/ada HTTP/1.1', twice)], 1)
    expect(responses.map(({ status }) => status)).toEqual([401])
  })
})

describe('requests behind each other on one connection', () => {
  test('are answered in their order, each body its own', async () => {
    const bodies = Array.from({ length: 50 }, (_, nth) => `{"attribute_values":{"n":${nth}}}`)
    const sent = bodies.map(body => request('POST /v1/people HTTP/1.1', [json, `Content-Length: ${body.length}`], body))
    const { responses } = await exchange([sent.join('')], 50)
    expect(responses.map(({ body }) => JSON.parse(body).data.attribute_values.n)).toEqual(bodies.map((_, nth) => nth))
  })

  test('byte by byte are the same requests', async () => {
    const sent = post(['Content-Length: 17'], '{"last_name":"B"}') + request('GET /v1/people/ada HTTP/1.1', [])
    const { responses } = await exchange([...sent], 2)
    expect(responses.map(({ status }) => status)).toEqual([200, 200])
    expect((await organization.send('GET', '/v1/people/ada')).body.data.last_name).toBe('B')
  })

  test('do not inherit a token', async () => {
    const { responses } = await exchange(
      [request('GET /v1/people/ada HTTP/1.1', []), 'GET /v1/people/ada HTTP/1.1\r\nHost: kith\r\n\r\n'],
      2,
    )
    expect(responses.map(({ status }) => status)).toEqual([200, 401])
  })

  test('a body that a GET brings is read to its end, and is no request', async () => {
    const body = smuggled()
    const { responses } = await exchange(
      [
        request('GET /v1/people/ada HTTP/1.1', [`Content-Length: ${body.length}`], body),
        request('GET /v1/people/ada HTTP/1.1', []),
      ],
      2,
    )
    expect(responses.map(({ status }) => status)).toEqual([200, 200])
  })
})
