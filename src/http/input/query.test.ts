import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Fault } from '../../values/errors.ts'
import { Type } from '../../values/json-schema.ts'
import { coerce, parseQuery } from './query.ts'

const limits = { jsonDepth: 32 }
const parse = (queryString: string, schema: unknown = {}) => parseQuery(queryString, limits, schema)

function refusedPath(queryString: string, schema?: unknown): string | undefined {
  try {
    parse(queryString, schema)
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    expect([error.refusal.code, error.refusal.status]).toEqual(['invalid_parameter', 400])
    expect(error.refusal.details).toHaveLength(1)
    return error.refusal.details[0]!.path
  }
  throw new Error(`${queryString} was not refused`)
}

it('nests brackets, makes arrays of indexes in any order, and reads every leaf as a string', () => {
  expect(
    parse(
      'first_name=Ada&attribute_values[city]=Rome&cursor_configuration[size]=10&consents[1][channel]=sms&consents[0][channel]=email',
    ),
  ).toEqual({
    first_name: 'Ada',
    attribute_values: { city: 'Rome' },
    cursor_configuration: { size: '10' },
    consents: [{ channel: 'email' }, { channel: 'sms' }],
  })
})

it('reads a plus as a space, decodes escapes once, and accepts escaped brackets', () => {
  expect(parse('a=1+2%2B3&b=%2541&attribute_values%5Bn%C3%A4me%5D=%F0%9F%98%80&c=x=y&d&e=&&')).toEqual({
    a: '1 2+3',
    b: '%41',
    attribute_values: { näme: '😀' },
    c: 'x=y',
    d: '',
    e: '',
  })
})

it('reads no query as an empty object and keeps the top level and mixed keys as objects', () => {
  expect(parse('')).toEqual({})
  expect(parse('0=a&1=b')).toEqual({ 0: 'a', 1: 'b' })
  expect(parse('a[0]=x&a[city]=y&b[01]=z')).toEqual({ a: { 0: 'x', city: 'y' }, b: { '01': 'z' } })
  expect(parse('constructor[prototype]=1&toString=2')).toEqual(
    JSON.parse('{"constructor":{"prototype":"1"},"toString":"2"}'),
  )
})

describe('an array of plain values', () => {
  const schema = Type.Object({
    tag: Type.Optional(Type.Array(Type.Enum(['a', 'b']))),
    size: Type.Optional(Type.Array(Type.Integer())),
    consents: Type.Optional(Type.Array(Type.Object({ channel: Type.String() }))),
    name: Type.Optional(Type.String()),
  })

  it('repeats its name or has indexes', () => {
    expect(parse('tag=a&name=x&tag=b&size=1', schema)).toEqual({ tag: ['a', 'b'], name: 'x', size: ['1'] })
    expect(parse('tag[1]=a&tag[0]=b', schema)).toEqual({ tag: ['b', 'a'] })
    expect(coerce(schema, parse('size=1&size=x', schema))).toEqual({ size: [1, 'x'] })
  })

  it('is ambiguous if it has both, and no other name may repeat', () => {
    expect(refusedPath('tag[0]=a&tag=b', schema)).toBe('/tag/0')
    expect(refusedPath('name=a&name=b', schema)).toBe('/name')
    expect(refusedPath('consents=a&consents=b', schema)).toBe('/consents')
    expect(refusedPath('toString=a&toString=b', schema)).toBe('/toString')
  })
})

describe('an ambiguous or malformed query', () => {
  const refused: [string, string][] = [
    ['a=1&a=1', '/a'],
    ['a=1&%61=2', '/a'],
    ['l[0]=1&l[0]=2', '/l/0'],
    ['a=1&a[b]=2', '/a/b'],
    ['a[b]=2&a=1', '/a'],
    ['a[b]=1&a[b][c]=2', '/a/b/c'],
    ['l[0]=1&l[2]=2', '/l'],
    ['l[1]=1', '/l'],
    ['o[x][99999999999999999999]=1', '/o/x'],
    ['a[]=1', '/a[]'],
    ['[a]=1', '/[a]'],
    ['=1', '/'],
    ['a[b=1', '/a[b'],
    ['a]b=1', '/a]b'],
    ['a[b]c=1', '/a[b]c'],
    ['a[[b]]=1', '/a[[b]]'],
    ['a[b]]=1', '/a[b]]'],
    ['a=%', '/a'],
    ['a=%zz', '/a'],
    ['a=%ff', '/a'],
    ['a=%ed%a0%80', '/a'],
    ['a=%c0%80', '/a'],
    ['%zz=1', '/%zz'],
    ['a=\u00e8', '/a'],
    ['a[b]=x%00', '/a/b'],
    ['a%00=x', '/a\0'],
    ['__proto__=x', '/__proto__'],
    ['a[__proto__][b]=x', '/a/__proto__/b'],
  ]
  it.each(refused)('%s is refused with its path', (queryString, path) => {
    expect(refusedPath(queryString)).toBe(path)
  })

  it('is refused if it nests deeper than the limit', () => {
    expect(parse(`a${'[a]'.repeat(31)}=1`)).toBeTypeOf('object')
    expect(refusedPath(`a${'[a]'.repeat(32)}=1`)).toBeTypeOf('string')
  })
})

type Tree = string | Tree[] | { [key: string]: Tree }

function write(value: Tree, name: string): string[] {
  if (typeof value === 'string') return [`${name}=${encodeURIComponent(value)}`]
  return Object.entries(value).flatMap(([key, member]) => write(member, `${name}%5B${encodeURIComponent(key)}%5D`))
}

it('reads back a value in bracket form, in any order of its parts', () => {
  const text = fc.string({ unit: 'binary' }).filter(value => !value.includes('\0'))
  const key = text.filter(value => value !== '' && !/[[\]]|^\d+$|^__proto__$/.test(value))
  const { tree } = fc.letrec<{ tree: Tree }>(tie => ({
    tree: fc.oneof(
      { maxDepth: 4 },
      text,
      fc.array(tie('tree'), { minLength: 1, maxLength: 3 }),
      fc.dictionary(key, tie('tree'), { minKeys: 1, maxKeys: 3 }),
    ),
  }))
  const written = fc.dictionary(key, tree, { minKeys: 1, maxKeys: 3 }).chain(value => {
    const pairs = Object.entries(value).flatMap(([name, member]) => write(member, encodeURIComponent(name)))
    return fc
      .shuffledSubarray(pairs, { minLength: pairs.length })
      .map(shuffled => ({ value, queryString: shuffled.join('&') }))
  })
  fc.assert(
    fc.property(written, ({ value, queryString }) => {
      expect(parse(queryString)).toEqual(value)
    }),
    { numRuns: 300 },
  )
})

it('parses any query or throws a Fault', () => {
  const piece = fc.constantFrom(
    'a',
    'b',
    '[',
    ']',
    '=',
    '&',
    '%',
    '%5B',
    '0',
    '1',
    '+',
    '%c3%a8',
    'è',
    '__proto__',
    '%00',
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 20 }), pieces => {
      try {
        parse(pieces.join(''))
      } catch (error) {
        expect(error).toBeInstanceOf(Fault)
      }
    }),
    { numRuns: 2000 },
  )
})

describe('keys that are all indexes', () => {
  const free = Type.Record(Type.String(), Type.Unknown())
  const schema = Type.Object({
    attribute_values: Type.Union([free, Type.Null()]),
    list: Type.Union([Type.Array(Type.Object({ free })), Type.Null()]),
    cursor_configuration: Type.Optional(Type.Object({ size: Type.Integer() })),
  })

  it.each([
    ['attribute_values[0]=x', { attribute_values: { 0: 'x' } }],
    ['attribute_values[2]=y&attribute_values[0]=x', { attribute_values: { 0: 'x', 2: 'y' } }],
    ['list[0][free][0]=x', { list: [{ free: { 0: 'x' } }] }],
    ['cursor_configuration[0]=x', { cursor_configuration: { 0: 'x' } }],
  ])('stay keys if the schema requires an object: %s', (queryString, value) => {
    expect(parse(queryString, schema)).toEqual(value)
  })

  it.each([
    ['list[1][a]=y&list[0][a]=x', { list: [{ a: 'x' }, { a: 'y' }] }],
    ['attribute_values[0][0]=x', { attribute_values: { 0: ['x'] } }],
    ['attribute_values[a][b][1]=y&attribute_values[a][b][0]=x', { attribute_values: { a: { b: ['x', 'y'] } } }],
    ['unknown[0]=x', { unknown: ['x'] }],
  ])('make an array if the schema requires one or names no type: %s', (queryString, value) => {
    expect(parse(queryString, schema)).toEqual(value)
  })

  it('must not have a gap in an array', () => {
    expect(refusedPath('list[1][a]=x', schema)).toBe('/list')
    expect(refusedPath('attribute_values[a][1]=x', schema)).toBe('/attribute_values/a')
  })
})

describe('coercion', () => {
  const schema = Type.Object({
    yes: Type.Boolean(),
    maybe: Type.Union([Type.Boolean(), Type.Null()]),
    size: Type.Unsafe<number | null>({ type: ['integer', 'null'] }),
    ratio: Type.Number(),
    name: Type.String(),
    either: Type.Union([Type.String(), Type.Integer()]),
    free: Type.Unknown(),
    list: Type.Union([Type.Array(Type.Object({ id: Type.Integer() })), Type.Null()]),
    attribute_values: Type.Record(Type.String(), Type.Unknown()),
  })
  const coerced = (value: unknown) => coerce(schema, value)

  it('converts declared booleans and numbers at every depth, and nothing else', () => {
    const sent = {
      yes: 'true',
      maybe: 'false',
      size: '-10',
      ratio: '1.50',
      name: '5',
      either: '5',
      free: 'true',
      list: [{ id: '1', other: '2' }],
      attribute_values: { size: '3' },
      constructor: '1',
    }
    expect(coerced(sent)).toEqual({
      ...sent,
      yes: true,
      maybe: false,
      size: -10,
      ratio: 1.5,
      list: [{ id: 1, other: '2' }],
    })
  })

  it('leaves a string that is not of the declared type, so that validation refuses it', () => {
    const sent = { yes: 'TRUE', maybe: 'null', size: '01', ratio: '1e400', list: 'x' }
    expect(coerced(sent)).toEqual(sent)
    for (const size of ['', ' 1', '0x10', '01', '9007199254740993', '+1', 'NaN'])
      expect(coerced({ size })).toEqual({ size })
    for (const ratio of ['', '.5', 'Infinity', '0.1000000000000000055']) expect(coerced({ ratio })).toEqual({ ratio })
  })

  it('reads a number like a body does: 1.0 becomes an integer, and 1.5 is left for validation to refuse', () => {
    expect(coerced({ size: '1.0', ratio: '1.50' })).toEqual({ size: 1, ratio: 1.5 })
    expect(coerced({ size: '1e2', ratio: '1e3' })).toEqual({ size: 100, ratio: 1000 })
    expect(coerced({ size: '1.5' })).toEqual({ size: 1.5 })
  })
})
