import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { Type } from '../src/values/json-schema.ts'
import { root } from './source.ts'
import { generated, typeOf } from './wire.ts'

it.each(Object.keys(generated))('%s matches the service; if not, run npm run wire', path => {
  const present = readFileSync(join(root, path), 'utf8')
  expect(present).toBe(generated[path]!(present))
})

describe('the type of a schema', () => {
  it.each([
    ['a text', Type.String(), 'string'],
    ['an integer', Type.Integer({ minimum: 1 }), 'number'],
    ['an enum', Type.Enum(['a', "it's"]), String.raw`'a' | 'it\'s'`],
    ['a value or null', Type.Union([Type.Boolean(), Type.Null()]), 'boolean | null'],
    ['an array of a union', Type.Array(Type.Union([Type.String(), Type.Null()])), '(string | null)[]'],
    ['an array of an enum', Type.Array(Type.Enum(['a', 'b'])), `('a' | 'b')[]`],
    ['a record', Type.Record(Type.String(), Type.Unknown()), 'Record<string, unknown>'],
    ['an object', Type.Object({ a: Type.String(), b: Type.Optional(Type.Null()) }), '{\n  a: string\n  b?: null\n}'],
  ])('is generated for %s', (_, schema, type) => expect(typeOf(schema as never)).toBe(type))

  it('throws for a schema without a TypeScript type', () => {
    expect(() => typeOf({ type: 'bigint' })).toThrow('no TypeScript type')
  })
})
