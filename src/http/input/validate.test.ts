import fc from 'fast-check'
import type { TSchema } from 'typebox'
import { describe, expect, it } from 'vitest'
import { Fault, type Refusal } from '../../values/errors.ts'
import { Type } from '../../values/json-schema.ts'
import { compile } from './validate.ts'

const nullable = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]))

const person = Type.Object(
  {
    name: nullable(Type.String({ minLength: 1, maxLength: 5 })),
    email: nullable(Type.String({ format: 'email' })),
    consents: nullable(
      Type.Array(
        Type.Object(
          {
            consent_type_id: Type.Integer({ minimum: 1 }),
            channel: Type.Enum(['email', 'sms']),
            state: Type.Boolean(),
          },
          { additionalProperties: false },
        ),
        { maxItems: 3 },
      ),
    ),
    order: nullable(Type.Union([Type.Literal('asc'), Type.Literal('desc')])),
    direction: Type.Optional(Type.String({ pattern: '^(up|down)$' })),
    code: Type.Optional(Type.String({ pattern: '^(a|b)+$' })),
    reference: Type.Optional(Type.Union([Type.String(), Type.Integer()])),
    shape: Type.Optional(Type.Union([Type.Object({ x: Type.Number() }), Type.Array(Type.String())])),
    // The names of these fields are keywords of JSON Schema.
    type: Type.Optional(Type.Number()),
    enum: nullable(Type.String()),
    attribute_values: nullable(Type.Record(Type.String(), Type.Unknown())),
  },
  { additionalProperties: false },
)
const validate = compile(person)

function refusalOf(value: unknown, boundFrom: 'body' | 'query' = 'body', check = validate): Refusal {
  try {
    check(value, boundFrom)
  } catch (error) {
    if (error instanceof Fault) return error.refusal
    throw error
  }
  throw new Error('the value was not refused')
}

const detailsOf = (value: unknown) => refusalOf(value).details.map(({ path, message }) => `${path} ${message}`)

it('accepts a valid value and does not change it', () => {
  const value = {
    name: '😀😀😀😀😀',
    email: null,
    consents: [{ consent_type_id: 1, channel: 'sms', state: false }],
    order: null,
    reference: 5,
    shape: ['a'],
    type: 1.5,
    enum: 'x',
    attribute_values: { constructor: 1, any: { thing: [null] } },
  }
  const copy = structuredClone(value)
  expect(validate(value, 'body')).toBeUndefined()
  expect(value).toEqual(copy)
})

describe('a value of the wrong type', () => {
  const wrong: [object, string][] = [
    [{ name: 5 }, '/name must be a string or null'],
    [{ consents: {} }, '/consents must be an array or null'],
    [{ order: 1 }, '/order must be a string or null'],
    [{ reference: true }, '/reference must be a string or an integer'],
    [{ shape: 'x' }, '/shape must be an object or an array'],
    [{ enum: [] }, '/enum must be a string or null'],
    [{ attribute_values: [] }, '/attribute_values must be an object or null'],
  ]
  it.each(wrong)('%j is invalid_json in a body and invalid_parameter in a query', (value, detail) => {
    expect(detailsOf(value)).toEqual([detail])
    expect(refusalOf(value).code).toBe('invalid_json')
    expect(refusalOf(value, 'query').code).toBe('invalid_parameter')
    expect(refusalOf(value, 'query').details).toEqual(refusalOf(value).details)
  })
})

describe('a value that breaks a rule', () => {
  const broken: [object, string][] = [
    [{ name: '' }, '/name must not be empty'],
    [{ name: '123456' }, '/name must be at most 5 characters'],
    [
      { email: 'nobody' },
      '/email must be an email address, such as ada@example.com, without quotes, comments and IP addresses',
    ],
    [{ order: 'up' }, '/order must be one of: asc, desc, null'],
    [{ direction: 'left' }, '/direction must be one of: up, down'],
    [{ code: 'c' }, '/code must match ^(a|b)+$'],
    [{ shape: { x: '1' } }, '/shape must have one of its documented forms'],
    [{ 'e/mail~': 1 }, '/e~1mail~0 unknown key: did you mean "email"?'],
    [
      { consents: [{ consent_type_id: 0, channel: 'sms', state: true }] },
      '/consents/0/consent_type_id must be at least 1',
    ],
    [
      { consents: [{ consent_type_id: 1, channel: 'fax', state: true }] },
      '/consents/0/channel must be one of: email, sms',
    ],
    [{ consents: [{ consent_type_id: 1, channel: 'sms' }] }, '/consents/0/state is required'],
    [
      { consents: Array(4).fill({ consent_type_id: 1, channel: 'sms', state: true }) },
      '/consents must have at most 3 elements',
    ],
  ]
  it.each(broken)('%j is invalid_parameter', (value, detail) => {
    expect(detailsOf(value)).toEqual([detail])
    expect(refusalOf(value).code).toBe('invalid_parameter')
  })
})

it('names each invalid value once and returns invalid_json if one has the wrong type', () => {
  const value = { nmae: 'x', name: '', consents: [{ channel: 5, state: 'yes', extra: 1 }, 7] }
  expect(refusalOf(value).code).toBe('invalid_json')
  expect(detailsOf(value).toSorted()).toEqual([
    '/consents/0/channel must be a string',
    '/consents/0/consent_type_id is required',
    '/consents/0/extra unknown key',
    '/consents/0/state must be a boolean',
    '/consents/1 must be an object',
    '/name must not be empty',
    '/nmae unknown key: did you mean "name"?',
  ])
  const reversed = Object.fromEntries(Object.entries(value).reverse())
  expect(detailsOf(reversed).toSorted()).toEqual(detailsOf(value).toSorted())
})

it('limits the details to a hundred of half a million faults', () => {
  const refusal = refusalOf({ consents: Array(500_000).fill(1) })
  expect([refusal.code, refusal.details.length]).toEqual(['invalid_json', 100])
  const keys = Object.fromEntries(Array.from({ length: 100_000 }, (_, index) => [`k${index}`, 1]))
  expect(refusalOf(keys).details).toHaveLength(100)
  expect(refusalOf({ ...keys, name: 5 }).code).toBe('invalid_json')
})

it('accepts and refuses the same values after it merges unions', () => {
  const inner = { type: 'object', oneOf: [{ minProperties: 1 }, { minProperties: 2 }] }
  const check = compile(Type.Unsafe({ type: 'object', properties: { a: { anyOf: [inner, { type: 'null' }] } } }))
  expect(check({ a: null }, 'body')).toBeUndefined()
  expect(refusalOf({ a: {} }, 'body', check).code).toBe('invalid_parameter')
  const any = fc.oneof(fc.constantFrom('', 'asc', 'a@b.co', '123456'), fc.jsonValue({ maxDepth: 2 }))
  const keys = ['name', 'email', 'order', 'reference', 'shape', 'type', 'enum', 'attribute_values']
  fc.assert(
    fc.property(fc.constantFrom(...keys), any, (key, value) => {
      const fault = (() => {
        try {
          validate({ [key]: value }, 'body')
        } catch (error) {
          return error as Fault
        }
      })()
      expect(fault === undefined).toBe(isValidField(key, value))
      if (fault) expect(fault.refusal.details).toHaveLength(1)
    }),
    { numRuns: 1000 },
  )
})

const isPlain = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value)

/** The person's schema as handwritten code. */
function isValidField(key: string, value: unknown): boolean {
  const characters = typeof value === 'string' ? [...value].length : -1
  if (key === 'reference') return typeof value === 'string' || Number.isInteger(value)
  if (key === 'type') return typeof value === 'number'
  if (key === 'shape')
    return Array.isArray(value)
      ? value.every(element => typeof element === 'string')
      : isPlain(value) && typeof (value as { x?: unknown }).x === 'number'
  if (value === null) return true
  if (key === 'name') return characters >= 1 && characters <= 5
  if (key === 'email') return value === 'a@b.co'
  if (key === 'order') return value === 'asc' || value === 'desc'
  return key === 'enum' ? typeof value === 'string' : isPlain(value)
}

it('does not compile a schema with an unknown format, an unknown keyword or uniqueItems', () => {
  const faulty = [
    { type: 'string', format: 'nonsense' },
    { type: 'string', maxLenght: 1 },
    { type: 'array', uniqueItems: true },
  ]
  for (const schema of faulty) expect(() => compile(Type.Unsafe(schema))).toThrow()
})

it('compiles a schema with an identifier more than once', () => {
  const shared = () => Type.Object({ a: Type.String() }, { $id: 'Shared' })
  expect(compile(shared())).toBeTypeOf('function')
  expect(compile(shared())).toBeTypeOf('function')
})

it('looks for faults in no more elements of an array than a refusal has details', () => {
  const looked = new Set<number>()
  const consents = Array.from({ length: 10_000 }, (_, index) => ({
    get channel() {
      looked.add(index)
      return 'pigeon'
    },
    consent_type_id: 1,
    state: true,
  }))
  expect(detailsOf({ consents })).toHaveLength(100)
  expect(looked.size).toBe(101)
})

it('names a fault of an element that follows more than a thousand others', () => {
  const check = compile(Type.Object({ names: Type.Array(Type.String()) }))
  const names = [...Array<unknown>(5_000).fill('x'), 1]
  expect(refusalOf({ names }, 'body', check).details).toEqual([{ path: '/names/5000', message: 'must be a string' }])
})

it('names as many unknown keys as a refusal has details, however many there are', () => {
  const keys = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`k${index}`, 1]))
  expect(detailsOf({ ...keys, name: 5 })).toHaveLength(100)
  expect(refusalOf({ ...keys, name: 5 }).code).toBe('invalid_json')
})
