import { describe, expect, test } from 'vitest'
import { useWire } from './wire.ts'

const wire = useWire()

/** A request whose body hides another one behind it. */
const hidden = (head: (length: number) => string[], body: (smuggled: string) => string) => () => {
  const whole = body(wire.smuggled())
  return wire.patch(head(Buffer.byteLength(whole)), whole)
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
    await wire.refusedWhole(sentOf())
  })
})

describe('a line that ends in a bare LF', () => {
  test('ends no header and hides no request', async () => {
    await wire.refusedWhole(wire.patch(['Content-Length: 2\nX-Smuggled: a'], `{}${wire.smuggled()}`))
    await wire.refusedWhole(wire.smuggled().replaceAll('\r\n', '\n'))
    await wire.refusedWhole(wire.patch(['Transfer-Encoding: chunked'], `2\n{}\n0\n\n${wire.smuggled()}`))
  })
})

describe('chunks', () => {
  const chunked = (body: string) => wire.patch(['Transfer-Encoding: chunked'], body)
  const patched = '{"last_name":"L"}'
  const size = patched.length.toString(16)

  test('of whatever sizes come together as one body', async () => {
    const body = [...patched].map(character => `1\r\n${character}\r\n`).join('')
    const { responses } = await wire.send([chunked(`${body}0\r\n\r\n`)], 1)
    expect(responses.map(({ status }) => status)).toEqual([200])
  })

  test('with extensions and trailers mean what they mean without', async () => {
    const sent = `${size};name=value;quoted="a b"\r\n${patched}\r\n0;last\r\nX-Trailer: a\r\n\r\n`
    const { responses } = await wire.send([chunked(sent), wire.smuggled().replace('ada', 'nobody')], 2)
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
    await wire.refusedWhole(chunked(body + wire.smuggled()))
  })

  test('with endless extensions are cut off', async () => {
    await wire.refusedWhole(
      chunked(`1;${'a'.repeat(100_000)}\r\n{\r\n1\r\n}\r\n0\r\n\r\n${wire.smuggled()}`),
      [400, 413, 431],
    )
  })

  test('in a trailer change no header', async () => {
    const sent = `2\r\n{}\r\n0\r\nAuthorization: Bearer x\r\nX-Request-Id: mine\r\n\r\n`
    const { responses } = await wire.send([chunked(sent)], 1)
    expect(responses.map(({ status }) => status)).toEqual([200])
    expect(responses[0]!.headers).not.toMatch(/: mine\r/)
  })
})
