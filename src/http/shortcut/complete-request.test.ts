import { createServer } from 'node:http'
import { duplexPair } from 'node:stream'
import fc from 'fast-check'
import { afterAll, expect, it } from 'vitest'
import { parseCompleteRequest } from './complete-request.ts'

const head = 'PATCH /v1/people/ada?x[y]=1 HTTP/1.1\r\nHost: kith\r\nauthorization: Bearer t\r\nX-Request-Id: mine\r\n'
const request = (more: string, body = '') => `${head}${more}\r\n${body}`
const parse = (text: string) => parseCompleteRequest(Buffer.from(text, 'latin1'))

it('parses a request that is complete', () => {
  const expected = { authorization: 'Bearer t', request_id: 'mine' }
  expect(parse(request(''))).toEqual({ ...expected, bytes: 0 })
  expect(parse(request('Content-Length: 2\r\n', '{}'))).toEqual({ ...expected, bytes: 2 })
})

it('leaves to Node a request with bytes before or behind it, and each part of a request', () => {
  const whole = request('Content-Length: 2\r\n', '{}')
  for (let end = 0; end < whole.length; end += 1) expect(parse(whole.slice(0, end))).toBe(undefined)
  for (let start = 1; start < whole.length; start += 1) expect(parse(whole.slice(start))).toBe(undefined)
  expect(parse(`${whole}\n`)).toBe(undefined)
  expect(parse(`\r\n${whole}`)).toBe(undefined)
  expect(parse(`${whole}${whole}`)).toBe(undefined)
})

it.each([
  'Transfer-Encoding: chunked',
  'Connection: close',
  'Proxy-Connection: close',
  'Expect: 100-continue',
  'Upgrade: h2c',
  'Origin: https://app.example',
  'Authorization: Bearer another',
  'Content-Length: 0\r\nContent-Length: 0',
  'Content-Length: +0',
  'Content-Length: 0 ',
  'X-Folded: a\r\n b',
  'X-Colon : a',
  'X-Empty:',
])('leaves to Node a request with an unusual header line: %j', line => {
  expect(parse(request(`${line}\r\n`))).toBe(undefined)
})

it.each([
  ['PATCH ', 'HEAD '],
  ['PATCH ', 'OPTIONS '],
  ['PATCH ', 'patch '],
  ['/v1/', '/healthz/'],
  ['/v1/', '/%761/'],
  ['/v1/', 'http://kith/v1/'],
  ['HTTP/1.1', 'HTTP/1.0'],
  ['authorization', 'x-nobody'],
  ['\r\nHost', '\nHost'],
])('leaves to Node an unusual form of request: %j as %j', (usual, other) => {
  expect(parse(request('').replace(usual, other))).toBe(undefined)
})

type ParsedRequest = { authorization: string | undefined; bytes: number; complete: boolean }

const server = createServer({ requireHostHeader: false })
afterAll(() => server.close())

/** The requests that Node's parser makes of bytes that arrive together. */
function parseWithNode(bytes: Buffer): ParsedRequest[] {
  const [serverSide, clientSide] = duplexPair()
  const requests: { authorization: string | undefined; length: string | undefined; complete: () => boolean }[] = []
  server.removeAllListeners('request').on('request', request => {
    const { authorization, 'content-length': length } = request.headers
    requests.push({ authorization, length, complete: () => request.complete })
  })
  server.emit('connection', serverSide)
  serverSide.emit('data', bytes)
  const all = requests.map(({ authorization, length, complete }) => {
    return { authorization, bytes: Number(length ?? 0), complete: complete() }
  })
  clientSide.destroy()
  serverSide.destroy()
  return all
}

const piece = fc.constantFrom(
  '\r\n',
  '\n',
  ' ',
  ':',
  '\0',
  '\t',
  '5',
  'Content-Length: 2\r\n',
  'content-length: 0\r\n',
  'Transfer-Encoding: chunked\r\n',
  'Connection: close\r\n',
  'GET /v1/x HTTP/1.1\r\n',
  '{}',
)
const change = fc.record({ at: fc.double({ min: 0, max: 1, noNaN: true }), take: fc.nat(4), put: fc.option(piece) })
const changed = fc
  .tuple(
    fc.constantFrom(
      request(''),
      request('Content-Length: 2\r\n', '{}'),
      request('Content-Length: 90\r\n', request('')),
    ),
    fc.array(change, { maxLength: 3 }),
  )
  .map(([text, changes]) =>
    changes.reduce((changed, { at, take, put }) => {
      const index = Math.floor(at * changed.length)
      return changed.slice(0, index) + (put ?? '') + changed.slice(index + take)
    }, text),
  )

it('parses only what Node parses as one complete request with the same token and length', () => {
  fc.assert(
    fc.property(changed, text => {
      const bytes = Buffer.from(text, 'latin1')
      const complete = parseCompleteRequest(bytes)
      if (!complete) return
      const expected = { authorization: complete.authorization.trim(), bytes: complete.bytes, complete: true }
      expect(parseWithNode(bytes)).toEqual([expected])
    }),
    { numRuns: 1_000 },
  )
})
