import type { Static } from 'typebox'
import { definitionKey, definitionName, times } from '../organizations/definition-schema.ts'
import { nullable, Type } from '../values/json-schema.ts'

const kind = Type.Enum(['item', 'event'], {
  description: 'Records of an event stack are immutable. The kind never changes.',
})

const retention_days = nullable(
  Type.Integer({
    minimum: 1,
    maximum: 36_500,
    description:
      'Only for an event stack: kith erases each record this many days after its creation. Null, the default: never.',
  }),
)

const label = nullable(
  Type.String({
    minLength: 1,
    maxLength: 200,
    description:
      'The template of the names of its records: `{key}` is the value of an attribute, `{relationship}` the name of its target, and `{relationship.key}` an attribute of the target. `{{` and `}}` are braces. Null, the default: records are named by their identifier.',
  }),
)

/** Body of POST /v1/schema/stacks. */
export const newStack = Type.Object(
  {
    key: definitionKey,
    kind,
    name: Type.Optional(definitionName),
    retention_days: Type.Optional(retention_days),
    label: Type.Optional(label),
  },
  { additionalProperties: false, title: 'StackBody', examples: [{ key: 'your_key', kind: 'item' }] },
)
export type StackBody = Static<typeof newStack>

/** Body of PATCH /v1/schema/stacks/{stack_key}. The key and the kind never change. */
export const stackPatch = Type.Object(
  {
    name: Type.Optional(definitionName),
    retention_days: Type.Optional(retention_days),
    label: Type.Optional(label),
  },
  { additionalProperties: false, title: 'StackPatch', examples: [{}] },
)
export type StackPatch = Static<typeof stackPatch>

/** A stack as a read shows it. */
export const stack = Type.Object(
  { key: Type.String(), name: Type.String(), kind, retention_days, label, ...times },
  {
    title: 'Stack',
    description: 'A stack as reads return it.',
    examples: [
      {
        key: 'orders',
        name: 'orders',
        kind: 'item',
        retention_days: null,
        label: null,
        created_at: '2026-01-01T12:00:00.000Z',
        updated_at: '2026-01-01T12:00:00.000Z',
      },
    ],
  },
)
