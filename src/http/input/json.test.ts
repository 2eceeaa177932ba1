import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Fault, type Refusal } from '../../values/errors.ts'
import { readsBackEqual } from '../../values/scalars.ts'
import { parseJson, parseLargeJson } from './json.ts'

const limits = { jsonDepth: 32, jsonMembers: 10_000, bodyBytes: 1_048_576 }
const parse = (text: string) => parseJson(Buffer.from(text), limits)

function refusalOf(body: string | Buffer): Refusal {
  try {
    parseJson(Buffer.from(body as string), limits)
  } catch (error) {
    if (error instanceof Fault) return error.refusal
    throw error
  }
  throw new Error('the body was not refused')
}

const summary = ({ code, status, details }: Refusal) => [code, status, ...details.map(({ path }) => path)]

describe('a body that is not JSON', () => {
  const broken = [
    '',
    ' ',
    '\n\t',
    '{',
    '{"a"}',
    '{"a":1,}',
    '[1,]',
    '{"a":01}',
    '{"a":1.}',
    '{"a":+1}',
    '{"a":.5}',
    '{a:1}',
  ]
  const strings = [
    "{'a':1}",
    '{"a":"\n"}',
    '{"a":"\\x"}',
    '{"a":"\\u12g4"}',
    '{"a":"',
    '{"a":NaN}',
    '{}{}',
    '{}\u{feff}',
    '\0',
  ]
  it.each([...broken, ...strings].map(text => [text]))('%j fails to bind', text => {
    expect(summary(refusalOf(text))).toEqual(['failed_binding_json', 400])
  })

  it('is refused with the position and without its text', () => {
    expect(refusalOf('{\n  "name": secret\n}').message).toBe(
      'The body is not JSON: unexpected character at line 2, column 11.',
    )
    expect(refusalOf('{"a": [1').message).toBe('The body is not JSON: unexpected end at line 1, column 9.')
    expect(refusalOf('{"a":\u00a01}').message).toBe(
      'The body is not JSON: unexpected character U+00A0 NO-BREAK SPACE at line 1, column 6.',
    )
    expect(refusalOf('\u200b{}').message).toContain('unexpected character U+200B ZERO WIDTH SPACE at line 1, column 1.')
  })

  it('is refused with the first byte that is not UTF-8, even after a real replacement character', () => {
    const body = Buffer.concat([Buffer.from('{"a":"\u{fffd}è'), Buffer.from([0xc3, 0x22]), Buffer.from('}')])
    expect(refusalOf(body).code).toBe('failed_binding_json')
    expect(refusalOf(body).message).toContain('byte 11 ')
  })

  it('fails to bind even if an earlier value breaks another rule', () => {
    expect(refusalOf('{"a":1e400,"a":2,').code).toBe('failed_binding_json')
    expect(refusalOf('['.repeat(100)).code).toBe('failed_binding_json')
  })
})

describe('a body of the wrong shape', () => {
  it.each(['[]', '1', '"a"', 'null', 'true', ' [{}] '].map(text => [text]))('%s is not an object', text => {
    expect(summary(refusalOf(text))).toEqual(['invalid_json', 400, ''])
  })

  it('has a duplicate key, reported at any depth and with any escapes', () => {
    expect(summary(refusalOf('{"a":1,"b":2,"a":1}'))).toEqual(['invalid_json', 400, '/a'])
    expect(summary(refusalOf('{"l":[0,{"x/y":{"a":1,"\\u0061":1}}]}'))).toEqual(['invalid_json', 400, '/l/1/x~1y/a'])
    expect(parse('{"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}]}')).toEqual({ a: { a: { a: 1 } }, b: [{ a: 1 }, { a: 1 }] })
  })

  it('is reported before a value that breaks a rule', () => {
    expect(summary(refusalOf('{"n":1e400,"a":1,"a":1}'))).toEqual(['invalid_json', 400, '/a'])
  })
})

describe('a value that cannot be stored', () => {
  const values: [string, string][] = [
    ['{"a":[1,1e400]}', '/a/1'],
    ['{"a":1e-400}', '/a'],
    ['{"a":-9007199254740992}', '/a'],
    ['{"a":1e20}', '/a'],
    ['{"a":0.1000000000000000055}', '/a'],
    ['{"a":"\\u0000"}', '/a'],
    ['{"a":"\\ud83d"}', '/a'],
    ['{"a":{"\\udc00":1}}', '/a/\udc00'],
    ['{"a\\u0000":1}', '/a\0'],
    ['{"a":[{"__proto__":1}]}', '/a/0/__proto__'],
    ['{"__pr\\u006fto__":1}', '/__proto__'],
  ]
  it.each(values)('%s is refused', (text, path) => {
    expect(summary(refusalOf(text))).toEqual(['invalid_parameter', 400, path])
  })

  it('is refused with each value of its kind, at most 100 of them', () => {
    const { details } = refusalOf('{"a":1e400,"b":1,"c":[1e400,9007199254740993,{"d":"\\u0000"}]}')
    expect(details.map(({ path }) => path)).toEqual(['/a', '/c/0', '/c/1', '/c/2/d'])
    expect(refusalOf(`{"a":[${Array(1_000).fill('1e400').join()}]}`).details).toHaveLength(100)
  })

  it('is refused one level below the depth limit', () => {
    const nested = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`
    expect(parse(nested(32))).toBeTypeOf('object')
    expect(summary(refusalOf(nested(33)))).toEqual(['invalid_parameter', 400, '/a'.repeat(32)])
    expect(refusalOf(`{"a":${'['.repeat(32)}${']'.repeat(32)}}`).details[0]?.path).toBe(`/a${'/0'.repeat(31)}`)
  })
})

it('skips one byte order mark before a body of any size, and no other', async () => {
  const body = Buffer.from('\ufeff{"a":"\ufeff"}')
  expect(parseJson(body, limits)).toEqual({ a: '\ufeff' })
  expect(await parseLargeJson(body, limits)).toEqual({ a: '\ufeff' })
  for (const wrong of ['\ufeff\ufeff{}', '{}\ufeff', '{\ufeff}']) expect(() => parse(wrong)).toThrow()
})

it('reads keys such as constructor, and any number that a double holds, as plain data', () => {
  const parsed = parse('{"constructor":1.0,"toString":1e2,"hasOwnProperty":0.1,"":5e-324,"z":-0,"i":9007199254740991}')
  expect(parsed).toEqual(
    Object.assign(Object.create(Object.prototype), {
      constructor: 1,
      toString: 100,
      hasOwnProperty: 0.1,
      '': 5e-324,
      z: -0,
      i: Number.MAX_SAFE_INTEGER,
    }),
  )
  expect(parse('{"a":"\\ud83d\\ude00\\u00e8"}')).toEqual({ a: '😀è' })
})

const unicode = fc.string({ unit: 'binary' }).filter(text => !text.includes('\0') && text !== '__proto__')
const integerOrSmall = fc.oneof(
  fc.maxSafeInteger(),
  fc.double({ noNaN: true, noDefaultInfinity: true, max: Number.MAX_SAFE_INTEGER, min: Number.MIN_SAFE_INTEGER }),
)
const { value: anyValue } = fc.letrec(tie => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.oneof(unicode, integerOrSmall, fc.boolean(), fc.constant(null)),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(unicode, tie('value'), { maxKeys: 4 }),
  ),
}))

it('reads back any valid value that JSON.stringify writes', () => {
  fc.assert(
    fc.property(fc.dictionary(unicode, anyValue), fc.constantFrom(0, 2), (value, indent) => {
      const text = JSON.stringify(value, null, indent)
      expect(JSON.stringify(parse(text))).toBe(JSON.stringify(value))
    }),
    { numRuns: 500 },
  )
})

const fragments = [...'{ } [ ] : , "a" "\\u0061" " \\ \\u d800 1 - . e 0 null é'.split(' '), ' ']
const jsonLike = fc.array(fc.constantFrom(...fragments), { maxLength: 12 }).map(parts => parts.join(''))
const brokenJson = fc
  .tuple(fc.dictionary(unicode, anyValue), fc.nat(), fc.constantFrom(...fragments, ''))
  .map(([value, index, fragment]) => {
    const text = JSON.stringify(value)
    const at = index % text.length
    return text.slice(0, at) + fragment + text.slice(at + 1)
  })

it('reads any text like JSON.parse or refuses it, and fails to bind what JSON.parse refuses', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        jsonLike,
        jsonLike.map(text => `{"a":${text}}`),
        brokenJson,
      ),
      text => {
        const wellformed = text.toWellFormed()
        const expected = attempt(() => JSON.parse(wellformed))
        const found = attempt(() => parse(wellformed))
        if ('result' in found) expect(found).toEqual(expected)
        else {
          expect(found.error).toBeInstanceOf(Fault)
          expect((found.error as Fault).refusal.code === 'failed_binding_json').toBe('error' in expected)
        }
      },
    ),
    { numRuns: 3000 },
  )
})

function attempt(work: () => unknown): { result: unknown } | { error: unknown } {
  try {
    return { result: work() }
  } catch (error) {
    return { error }
  }
}

describe('a large body, which is parsed in pieces,', () => {
  const parseLarge = (text: string, pieceCharacters = 1) =>
    parseLargeJson(Buffer.from(text), limits, { pieceCharacters })
  const attemptLarge = (text: string) =>
    parseLarge(text).then(
      result => ({ result }),
      error => ({ error: error.refusal }),
    )
  const attemptWhole = (text: string) => {
    const found = attempt(() => parse(text))
    return 'error' in found ? { error: (found.error as Fault).refusal } : found
  }

  it('has the value or the refusal that it has if it is parsed whole', async () => {
    const arrays = fc.dictionary(unicode, fc.array(anyValue, { maxLength: 5 }), { maxKeys: 4 })
    const texts = fc
      .tuple(
        arrays,
        fc.constantFrom(0, 2),
        fc.nat(),
        fc.constantFrom(...fragments, ',', ',,', ']', '[', '1e400'),
        fc.boolean(),
      )
      .map(([value, indent, index, fragment, isBroken]) => {
        const text = JSON.stringify(value, null, indent)
        const at = index % text.length
        return isBroken ? text.slice(0, at) + fragment + text.slice(at + (index % 2)) : text
      })
    const lists = jsonLike.map(text => `{"a":[1,${text}],"b":[${text},2]}`)
    await fc.assert(
      fc.asyncProperty(fc.oneof(texts, lists, jsonLike, brokenJson), async text => {
        const wellformed = text.toWellFormed()
        const [large, whole] = [await attemptLarge(wellformed), attemptWhole(wellformed)]
        expect(large).toEqual(whole)
        expect(JSON.stringify(large)).toBe(JSON.stringify(whole))
      }),
      { numRuns: 3000 },
    )
  })

  it('is refused with the depth limit of a body', async () => {
    const nested = (depth: number) => `{"a":[1,${'['.repeat(depth)}${']'.repeat(depth)}]}`
    await expect(parseLarge(nested(30))).resolves.toBeDefined()
    await expect(parseLarge(nested(31))).rejects.toThrow()
  })

  it('is refused once it has more elements than its array may have, and the rest is not parsed', async () => {
    const text = `{"a":[${'1,'.repeat(200_000)} this is no JSON`
    const refused = parseLargeJson(Buffer.from(text), limits, { maxElements: key => (key === 'a' ? 1_000 : undefined) })
    await expect(refused.catch(error => error.refusal.details)).resolves.toEqual([
      { path: '/a', message: 'must have at most 1000 elements' },
    ])
  })

  it.each([
    ['/a/1', (value: string) => `{"a":[1,${value}]}`],
    ['', (value: string) => `{"a":${value}}`],
    ['', (value: string) => value],
  ])(
    'is refused for more keys, objects and arrays than may be in one element, or beside the elements: %s',
    async (path, around) => {
      const detail = { path, message: 'must have at most 10000 keys, objects and arrays' }
      const keys = (count: number) => `{${Array.from({ length: count }, (_, index) => `"${index}":1`)}}`
      const refused = { refusal: { code: 'invalid_parameter', status: 400, details: [detail] } }
      await expect(parseLarge(around(keys(9_990)))).resolves.toBeDefined()
      // kith refuses it without parsing, so it need not be JSON.
      await expect(parseLarge(`${around(keys(10_001))} this is no JSON`)).rejects.toMatchObject(refused)
      await expect(parseLarge(`{"a":[1,{"b":[${'[],'.repeat(10_001)} this is no JSON`)).rejects.toMatchObject({
        refusal: { details: [{ ...detail, path: '/a/1' }] },
      })
    },
  )

  it('takes many elements that have together more keys than one may have', async () => {
    const elements = Array.from({ length: 500 }, () =>
      Object.fromEntries(Array.from({ length: 100 }, (_, key) => [key, 1])),
    )
    await expect(parseLarge(JSON.stringify({ a: elements }))).resolves.toEqual({ a: elements })
  })

  it('is refused for an element that is longer than a body may be', async () => {
    const limited = { ...limits, bodyBytes: 1_000 }
    const parseLimited = (text: string) => parseLargeJson(Buffer.from(text), limited, { pieceCharacters: 1 })
    await expect(parseLimited(`{"a":[1,"${'x'.repeat(990)}","${'x'.repeat(990)}"]}`)).resolves.toBeDefined()
    for (const [path, text] of [
      ['/a/1', `{"a":[1,"${'x'.repeat(1_000)}"]}`],
      ['', `{"a":"${'x'.repeat(1_000)}"}`],
    ] as const)
      await expect(parseLimited(text)).rejects.toMatchObject({
        refusal: { code: 'invalid_parameter', details: [{ path, message: 'must have at most 1000 characters' }] },
      })
  })

  it('has any amount of white space beside its arrays', async () => {
    const limited = { ...limits, bodyBytes: 1_000 }
    const space = '\n \t\r'.repeat(50_000)
    const text = `${space}{${space}"a"${space}:${space}[1,2]${space},"b":${space}1${space}}${space}`
    await expect(parseLargeJson(Buffer.from(text), limited)).resolves.toEqual({ a: [1, 2], b: 1 })
    const broken = Buffer.from(text.replace('1,2]', '1,2] '.concat('3')))
    await expect(parseLargeJson(broken, limited)).rejects.toMatchObject({ refusal: { code: 'failed_binding_json' } })
  })

  it('names the byte that is not UTF-8 of a body that is decoded in steps', async () => {
    for (const offset of [1_048_575, 1_048_576, 2_097_153]) {
      const bytes = Buffer.from(`{"a":"${'é'.repeat(1_500_000)}"}`)
      bytes[offset] = 0xff
      const first = offset % 2 === 1 ? offset - 1 : offset
      const { message } = (await parseLargeJson(bytes, limits).catch(error => error)) as Error
      expect([`byte ${first}`, `byte ${offset}`].some(byte => message.includes(byte))).toBe(true)
    }
  })

  it('lets an event through while it is parsed, also if it is checked thoroughly', async () => {
    for (const number of ['1', '1e1']) {
      let hasEnded = false
      const parsing = parseLargeJson(Buffer.from(`{"a":[${`${number},`.repeat(400_000)}1]}`), limits)
      void parsing.then(() => (hasEnded = true))
      await new Promise(setImmediate)
      expect(hasEnded).toBe(false)
      await parsing
    }
  })
})

type Members = { members: [string, Members | number][] }

it('refuses a duplicate key exactly if a naive comparison finds one', () => {
  const { tree } = fc.letrec<{ tree: Members; member: Members | number }>(tie => ({
    tree: fc.record({
      members: fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c', 'd', '1'), tie('member')), { maxLength: 3 }),
    }),
    member: fc.oneof({ maxDepth: 3 }, fc.nat(9), tie('tree')),
  }))
  const write = (value: Members | number): string =>
    typeof value === 'number' ? `${value}` : `{${value.members.map(([key, member]) => `"${key}":${write(member)}`)}}`
  const repeats = ({ members }: Members): boolean =>
    members.some(([key], index) => members.findIndex(([other]) => other === key) !== index) ||
    members.some(([, member]) => typeof member !== 'number' && repeats(member))
  fc.assert(
    fc.property(tree, value => {
      if (repeats(value)) expect(refusalOf(write(value)).code).toBe('invalid_json')
      else expect(parse(write(value))).toEqual(JSON.parse(write(value)))
    }),
    { numRuns: 1000 },
  )
})

/** A decimal number as a fraction of big integers. */
function fractionOf(source: string): [bigint, bigint] {
  const [, sign, whole, fraction = '', power = '0'] = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(source)!
  const exponent = BigInt(power) - BigInt(fraction.length)
  const digits = BigInt(`${sign}${whole}${fraction}`)
  return exponent >= 0n ? [digits * 10n ** exponent, 1n] : [digits, 10n ** -exponent]
}

it('accepts a number exactly if it reads back equal by integer arithmetic', () => {
  const digits = fc.string({ unit: fc.constantFrom(...'0123456789'), minLength: 1, maxLength: 22 })
  const written = fc
    .tuple(
      fc.constantFrom('', '-'),
      fc.bigInt({ min: 0n, max: 10n ** 20n }),
      fc.option(digits),
      fc.option(fc.integer({ min: -340, max: 320 })),
    )
    .map(
      ([sign, whole, fraction, power]) =>
        `${sign}${whole}${fraction ? `.${fraction}` : ''}${power === null ? '' : `e${power}`}`,
    )
  const doubles = fc.double({ noNaN: true, noDefaultInfinity: true }).map(String)
  fc.assert(
    fc.property(fc.oneof(written, doubles, fc.maxSafeInteger().map(String)), source => {
      const number = Number(source)
      const isSafe = Math.abs(number) <= Number.MAX_SAFE_INTEGER
      const [a, b] = fractionOf(source)
      const [c, d] = isSafe ? fractionOf(String(number)) : [0n, 0n]
      expect(readsBackEqual(source)).toBe(isSafe && a * d === c * b)
      expect('result' in attempt(() => parse(`{"a":${source}}`))).toBe(readsBackEqual(source))
    }),
    { numRuns: 2000 },
  )
})

it('refuses hostile bodies of a mebibyte', () => {
  const size = 1 << 20
  expect(refusalOf('['.repeat(size)).code).toBe('invalid_json')
  expect(refusalOf(`{"a":${'['.repeat(size / 2)}${']'.repeat(size / 2)}}`).code).toBe('invalid_parameter')
  expect(refusalOf('{"":'.repeat(size / 4)).code).toBe('invalid_parameter')
  expect(refusalOf(`{"a":${'1'.repeat(size)}}`).code).toBe('invalid_parameter')
  expect(refusalOf(`{"a":0.${'0'.repeat(size)}1}`).code).toBe('invalid_parameter')
  expect(refusalOf(`{"a":[${'1e400,'.repeat(size / 6)}1]}`).details).toHaveLength(100)
  expect(refusalOf(`{${'"a":1,'.repeat(size / 6)}"a":1}`).code).toBe('invalid_json')
  expect(refusalOf(`{"a":"${'\\'.repeat(size)}`).code).toBe('failed_binding_json')
  expect(refusalOf(`{"a":"${'\u{fffd}'.repeat(size / 3)}`).code).toBe('failed_binding_json')
})
