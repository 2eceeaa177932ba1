import fc from 'fast-check'
import { Type as TypeBox } from 'typebox'
import { expect, it } from 'vitest'
import { Type } from './json-schema.ts'

type Builders = typeof Type

const options = fc.record(
  { description: fc.string(), default: fc.jsonValue(), examples: fc.array(fc.jsonValue()), minLength: fc.nat() },
  { requiredKeys: [] },
)
const bare = fc.constantFrom('String', 'Number', 'Integer', 'Boolean', 'Null', 'Unknown')
const literal = fc.oneof(fc.string(), fc.integer(), fc.boolean())
const name = fc.constantFrom('a', 'b', 'c', 'd')

/** Generates functions that build the same schema with the builders of either module. */
const { schema } = fc.letrec<{ schema: (builders: Builders) => object }>(tie => {
  const inner = tie('schema') as fc.Arbitrary<(builders: Builders) => never>
  return {
    schema: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.tuple(bare, options).map(
        ([kind, given]) =>
          (builders: Builders) =>
            builders[kind as 'String'](given),
      ),
      fc.tuple(literal, options).map(
        ([value, given]) =>
          (builders: Builders) =>
            builders.Literal(value as string, given),
      ),
      fc.tuple(fc.array(fc.string()), options).map(
        ([values, given]) =>
          (builders: Builders) =>
            builders.Enum(values, given),
      ),
      fc.tuple(inner, options).map(
        ([items, given]) =>
          (builders: Builders) =>
            builders.Array(items(builders), given),
      ),
      fc.tuple(inner, options).map(
        ([value, given]) =>
          (builders: Builders) =>
            builders.Record(builders.String(), value(builders), given),
      ),
      fc.tuple(fc.array(inner, { maxLength: 3 }), options).map(
        ([branches, given]) =>
          (builders: Builders) =>
            builders.Union(
              branches.map(branch => branch(builders)),
              given,
            ),
      ),
      fc
        .tuple(fc.dictionary(name, fc.tuple(inner, fc.boolean()), { noNullPrototype: true }), options)
        .map(([members, given]) => (builders: Builders) => {
          const properties = Object.entries(members).map(([key, [build, isOptional]]) => {
            const member = build(builders)
            return [key, isOptional ? builders.Optional(member) : member]
          })
          return builders.Object(Object.fromEntries(properties), given)
        }),
      inner.map(build => (builders: Builders) => builders.Optional(build(builders))),
      // A copy of an optional schema is a separate schema, which is required.
      inner.map(build => (builders: Builders) => builders.Unsafe({ ...(build(builders) as object) })),
    ),
  }
})

it('builds the schemas that TypeBox builds', () => {
  fc.assert(
    fc.property(schema, build => {
      // The texts also have the keywords in the same order.
      expect(JSON.stringify(build(Type))).toBe(JSON.stringify(build(TypeBox)))
    }),
    { numRuns: 100 },
  )
})
