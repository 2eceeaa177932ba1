import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Type } from 'typebox'
import { describe, expect, it } from 'vitest'
import { root } from './source.ts'
import { typeOf, wireText } from './wire.ts'

it("the client's shapes are those of the schemas: if not, npm run wire", () => {
  expect(readFileSync(join(root, 'client/src/wire.ts'), 'utf8')).toBe(wireText())
})

describe('the type of a schema', () => {
  it.each([
    ['a text', Type.String(), 'string'],
    ['an integer', Type.Integer({ minimum: 1 }), 'number'],
    ['words', Type.Enum(['a', "it's"]), String.raw`'a' | 'it\'s'`],
    ['a value or null', Type.Union([Type.Boolean(), Type.Null()]), 'boolean | null'],
    ['a list of a choice', Type.Array(Type.Union([Type.String(), Type.Null()])), '(string | null)[]'],
    ['a list of words', Type.Array(Type.Enum(['a', 'b'])), `('a' | 'b')[]`],
    ['free keys', Type.Record(Type.String(), Type.Unknown()), 'Record<string, unknown>'],
    ['fields', Type.Object({ a: Type.String(), b: Type.Optional(Type.Null()) }), '{\n  a: string\n  b?: null\n}'],
  ])('%s', (_, schema, type) => expect(typeOf(schema as never)).toBe(type))

  it('is refused where a type cannot say it', () => {
    expect(() => typeOf({ type: 'bigint' })).toThrow('no type is known')
  })
})
