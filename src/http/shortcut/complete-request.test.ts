import { createServer } from 'node:http'
import { duplexPair } from 'node:stream'
import fc from 'fast-check'
import { afterAll, expect, it } from 'vitest'
import { readWhole } from './complete-request.ts'

const head = 'PATCH /v1/people/ada?x[y]=1 HTTP/1.1\r\nHost: kith\r\nauthorization: Bearer t\r\nX-Request-Id: mine\r\n'
const request = (more: string, body = '') => `${head}${more}\r\n${body}`
const read = (text: string) => readWhole(Buffer.from(text, 'latin1'))

it('reads a request that is there from its first byte to its last', () => {
  const asked = { authorization: 'Bearer t', request_id: 'mine' }
  expect(read(request(''))).toEqual({ ...asked, bytes: 0 })
  expect(read(request('Content-Length: 2\r\n', '{}'))).toEqual({ ...asked, bytes: 2 })
})

it('leaves to Node a request with something before or behind it, and each part of one', () => {
  const whole = request('Content-Length: 2\r\n', '{}')
  for (let end = 0; end < whole.length; end += 1) expect(read(whole.slice(0, end))).toBe(undefined)
  for (let start = 1; start < whole.length; start += 1) expect(read(whole.slice(start))).toBe(undefined)
  expect(read(`${whole}\n`)).toBe(undefined)
  expect(read(`\r\n${whole}`)).toBe(undefined)
  expect(read(`${whole}${whole}`)).toBe(undefined)
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
])('leaves to Node what says more than is read here: %j', line => {
  expect(read(request(`${line}\r\n`))).toBe(undefined)
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
])('leaves to Node what is asked in another way: %j as %j', (usual, other) => {
  expect(read(request('').replace(usual, other))).toBe(undefined)
})

type Seen = { authorization: string | undefined; bytes: number; complete: boolean }

const server = createServer({ requireHostHeader: false })
afterAll(() => server.close())

/** What Node's parser makes of bytes that arrive at once. */
function parsed(bytes: Buffer): Seen[] {
  const [ours, theirs] = duplexPair()
  const seen: { authorization: string | undefined; length: string | undefined; complete: () => boolean }[] = []
  server.removeAllListeners('request').on('request', asked => {
    const { authorization, 'content-length': length } = asked.headers
    seen.push({ authorization, length, complete: () => asked.complete })
  })
  server.emit('connection', ours)
  ours.emit('data', bytes)
  const all = seen.map(({ authorization, length, complete }) => {
    return { authorization, bytes: Number(length ?? 0), complete: complete() }
  })
  theirs.destroy()
  ours.destroy()
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
    changes.reduce((soFar, { at, take, put }) => {
      const place = Math.floor(at * soFar.length)
      return soFar.slice(0, place) + (put ?? '') + soFar.slice(place + take)
    }, text),
  )

it('whatever it reads, Node reads as one request, complete, for the same and as long', () => {
  fc.assert(
    fc.property(changed, text => {
      const bytes = Buffer.from(text, 'latin1')
      const whole = readWhole(bytes)
      if (!whole) return
      const same = { authorization: whole.authorization.trim(), bytes: whole.bytes, complete: true }
      expect(parsed(bytes)).toEqual([same])
    }),
    { numRuns: 1_000 },
  )
})
