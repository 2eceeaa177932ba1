import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeJwt, parseObject } from './decode-jwt.ts'

const parse = (text: string) => parseObject(Buffer.from(text))

describe('the JSON of a token', () => {
  it('is parsed as JSON.parse does if it is an object without duplicate names', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue()), fc.boolean(), (value, spaced) => {
        const text = JSON.stringify(value, null, spaced ? 2 : 0)
        expect(parse(text)).toEqual(JSON.parse(text))
      }),
    )
  })

  it('is rejected if any object in it contains a duplicate name, also an escaped one', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.jsonValue(), fc.nat(5), (name, value, depth) => {
        const escaped = [...Array(name.length)].map(
          (_, index) => `\\u${name.charCodeAt(index).toString(16).padStart(4, '0')}`,
        )
        const twice = `{${JSON.stringify(name)}:${JSON.stringify(value)},"${escaped.join('')}":1}`
        expect(parse(`{"outer":${'['.repeat(depth)}${twice}${']'.repeat(depth)}}`)).toBeUndefined()
      }),
    )
  })

  it('is rejected if it is not valid UTF-8 or begins with a byte order mark', () => {
    expect(parseObject(Buffer.from([...Buffer.from('{"a":"'), 0xff, ...Buffer.from('"}')]))).toBeUndefined()
    expect(parseObject(Buffer.from([0xef, 0xbb, 0xbf, ...Buffer.from('{}')]))).toBeUndefined()
  })

  it('may be nested 30,000 levels deep', () => {
    expect(parse(`{"a":${'['.repeat(30_000)}${']'.repeat(30_000)}}`)).toBeDefined()
  })
})

it('decoding an arbitrary text never throws', () => {
  const part = fc.oneof(
    fc.base64String(),
    fc.string(),
    fc.json().map(text => Buffer.from(text).toString('base64url')),
  )
  fc.assert(fc.property(fc.array(part, { maxLength: 6 }), parts => void decodeJwt(parts.join('.'))))
})
