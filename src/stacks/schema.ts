import { type Static, Type } from 'typebox'
import { definition_key, definition_name, times } from '../organizations/definition-schema.ts'

const kind = Type.Enum(['item', 'event'], {
  description: 'Records of an event stack are immutable. Never changes.',
})

/** Body of POST /v1/schema/stacks. */
export const new_stack = Type.Object(
  {
    key: definition_key,
    kind,
    name: Type.Optional(definition_name),
  },
  { additionalProperties: false, title: 'NewStack', examples: [{ key: 'your_key', kind: 'item' }] },
)
export type NewStack = Static<typeof new_stack>

/** Body of PATCH /v1/schema/stacks/{stack_key}: the key and the kind never change. */
export const stack_patch = Type.Object(
  { name: Type.Optional(definition_name) },
  { additionalProperties: false, title: 'StackPatch', examples: [{}] },
)
export type StackPatch = Static<typeof stack_patch>

/** A stack as a read shows it. */
export const stack = Type.Object(
  { key: Type.String(), name: Type.String(), kind, ...times },
  {
    title: 'Stack',
    examples: [
      {
        key: 'orders',
        name: 'orders',
        kind: 'item',
        created_at: '2026-01-01T12:00:00.000Z',
        updated_at: '2026-01-01T12:00:00.000Z',
      },
    ],
  },
)
