import { describe, expect, it } from 'vitest'
import { useWire } from './wire.ts'

const wire = useWire()

/** Returns a builder of a request with another request hidden in its body. */
const withSmuggled = (head: (length: number) => string[], body: (smuggled: string) => string) => () => {
  const wholeBody = body(wire.smuggled())
  return wire.patch(head(Buffer.byteLength(wholeBody)), wholeBody)
}

describe('a request with ambiguous framing', () => {
  it.each<[string, () => string]>([
    [
      'a length before chunks',
      withSmuggled(
        length => [`Content-Length: ${length}`, 'Transfer-Encoding: chunked'],
        rest => `0\r\n\r\n${rest}`,
      ),
    ],
    [
      'chunks before a length',
      withSmuggled(
        length => ['Transfer-Encoding: chunked', `Content-Length: ${length}`],
        rest => `0\r\n\r\n${rest}`,
      ),
    ],
    [
      'two lengths that differ',
      withSmuggled(
        length => ['Content-Length: 2', `Content-Length: ${length}`],
        rest => `{}${rest}`,
      ),
    ],
    [
      'two lengths that agree',
      withSmuggled(
        () => ['Content-Length: 2', 'Content-Length: 2'],
        rest => `{}${rest}`,
      ),
    ],
    [
      'a list of lengths',
      withSmuggled(
        () => ['Content-Length: 2, 2'],
        rest => `{}${rest}`,
      ),
    ],
    [
      'a length with a sign',
      withSmuggled(
        () => ['Content-Length: +2'],
        rest => `{}${rest}`,
      ),
    ],
    [
      'a negative length',
      withSmuggled(
        () => ['Content-Length: -1'],
        rest => `{}${rest}`,
      ),
    ],
    [
      'a hexadecimal length',
      withSmuggled(
        () => ['Content-Length: 0x2'],
        rest => `{}${rest}`,
      ),
    ],
    [
      'an empty length',
      withSmuggled(
        () => ['Content-Length: '],
        rest => `{}${rest}`,
      ),
    ],
    [
      'a length above 2^64',
      withSmuggled(
        () => ['Content-Length: 18446744073709551618'],
        rest => `{}${rest}`,
      ),
    ],
    [
      'a length with an inner space',
      withSmuggled(
        () => ['Content-Length: 2 2'],
        rest => `{}${rest}`,
      ),
    ],
    [
      'a space before the colon',
      withSmuggled(
        length => [`Content-Length : ${length}`],
        rest => `{}${rest}`,
      ),
    ],
    [
      'an unknown coding',
      withSmuggled(
        () => ['Transfer-Encoding: xchunked'],
        rest => `0\r\n\r\n${rest}`,
      ),
    ],
    [
      'a coding after chunked',
      withSmuggled(
        () => ['Transfer-Encoding: chunked, identity'],
        rest => `0\r\n\r\n${rest}`,
      ),
    ],
    [
      'two Transfer-Encoding headers',
      withSmuggled(
        () => ['Transfer-Encoding: chunked', 'Transfer-Encoding: identity'],
        rest => `0\r\n\r\n${rest}`,
      ),
    ],
    [
      'a coding after a vertical tab',
      withSmuggled(
        () => ['Transfer-Encoding: \vchunked'],
        rest => `0\r\n\r\n${rest}`,
      ),
    ],
    [
      'a coding in quotes',
      withSmuggled(
        () => ['Transfer-Encoding: "chunked"'],
        rest => `0\r\n\r\n${rest}`,
      ),
    ],
    [
      'a coding and a length, folded',
      withSmuggled(
        length => [`Content-Length: ${length}`, 'Transfer-Encoding:\r\n chunked'],
        rest => `0\r\n\r\n${rest}`,
      ),
    ],
    [
      'a space before the coding’s colon',
      withSmuggled(
        length => [`Content-Length: ${length}`, 'Transfer-Encoding : chunked'],
        rest => `0\r\n\r\n${rest}`,
      ),
    ],
    [
      'a folded header',
      withSmuggled(
        () => ['X-Folded: a', ' Content-Length: 2'],
        rest => `{}${rest}`,
      ),
    ],
    [
      'a line without a colon',
      withSmuggled(
        () => ['Nonsense'],
        rest => `{}${rest}`,
      ),
    ],
    [
      'a header without a name',
      withSmuggled(
        () => [': value'],
        rest => `{}${rest}`,
      ),
    ],
    [
      'NUL in a header',
      withSmuggled(
        () => ['X-Bad: a\0b'],
        rest => `{}${rest}`,
      ),
    ],
    [
      'a bare CR in a header',
      withSmuggled(
        () => ['X-Bad: a\rContent-Length: 2'],
        rest => `{}${rest}`,
      ),
    ],
    [
      'a control character in a header name',
      withSmuggled(
        () => ['X\u0001Bad: a'],
        rest => `{}${rest}`,
      ),
    ],
  ])('is refused and its connection closed: %s', async (_, buildRequest) => {
    await wire.expectRefused(buildRequest())
  })
})

describe('a line that ends with a bare LF', () => {
  it('is refused and smuggles no request', async () => {
    await wire.expectRefused(wire.patch(['Content-Length: 2\nX-Smuggled: a'], `{}${wire.smuggled()}`))
    await wire.expectRefused(wire.smuggled().replaceAll('\r\n', '\n'))
    await wire.expectRefused(wire.patch(['Transfer-Encoding: chunked'], `2\n{}\n0\n\n${wire.smuggled()}`))
  })
})

describe('chunked bodies', () => {
  const chunked = (body: string) => wire.patch(['Transfer-Encoding: chunked'], body)
  const patched = '{"last_name":"L"}'
  const size = patched.length.toString(16)

  it('are joined from chunks of one byte each', async () => {
    const body = [...patched].map(character => `1\r\n${character}\r\n`).join('')
    const { responses } = await wire.send([chunked(`${body}0\r\n\r\n`)], 1)
    expect(responses.map(({ status }) => status)).toEqual([200])
  })

  it('are read without their chunk extensions and trailers', async () => {
    const sent = `${size};name=value;quoted="a b"\r\n${patched}\r\n0;last\r\nX-Trailer: a\r\n\r\n`
    const { responses } = await wire.send([chunked(sent), wire.smuggled().replace('ada', 'nobody')], 2)
    expect(responses.map(({ status }) => status)).toEqual([200, 404])
  })

  it.each([
    ['a size that is not a number', 'zz\r\n{}\r\n0\r\n\r\n'],
    ['a size with a sign', '-2\r\n{}\r\n0\r\n\r\n'],
    ['a size with 0x', '0x2\r\n{}\r\n0\r\n\r\n'],
    ['a size above 2^64', '10000000000000002\r\n{}\r\n0\r\n\r\n'],
    ['an empty size', '\r\n{}\r\n0\r\n\r\n'],
    ['a chunk longer than its size', '1\r\n{}\r\n0\r\n\r\n'],
    ['a chunk shorter than its size', '3\r\n{}\r\n0\r\n\r\n'],
    ['a space before the size', ' 2\r\n{}\r\n0\r\n\r\n'],
    ['LF in an extension', '2;a\nb\r\n{}\r\n0\r\n\r\n'],
    ['no CRLF after the data', '2\r\n{}0\r\n\r\n'],
  ])('are refused with all requests behind them: %s', async (_, body) => {
    await wire.expectRefused(chunked(body + wire.smuggled()))
  })

  it('are refused if a chunk extension is too long', async () => {
    await wire.expectRefused(
      chunked(`1;${'a'.repeat(100_000)}\r\n{\r\n1\r\n}\r\n0\r\n\r\n${wire.smuggled()}`),
      [400, 413, 431],
    )
  })

  it('cannot change request headers by a trailer', async () => {
    const sent = `2\r\n{}\r\n0\r\nAuthorization: Bearer x\r\nX-Request-Id: mine\r\n\r\n`
    const { responses } = await wire.send([chunked(sent)], 1)
    expect(responses.map(({ status }) => status)).toEqual([200])
    expect(responses[0]!.headers).not.toMatch(/: mine\r/)
  })
})
