import { type Static, Type } from 'typebox'
import { definition_key, definition_name } from '../organizations/definition-schema.ts'

/** Body of POST /v1/schema/stacks. */
export const new_stack = Type.Object(
  {
    key: definition_key,
    kind: Type.Enum(['item', 'event'], { description: 'Records of an event stack are immutable. Never changes.' }),
    name: Type.Optional(definition_name),
  },
  { additionalProperties: false },
)
export type NewStack = Static<typeof new_stack>

/** Body of PATCH /v1/schema/stacks/{stack_key}: the key and the kind never change. */
export const stack_patch = Type.Object({ name: Type.Optional(definition_name) }, { additionalProperties: false })
export type StackPatch = Static<typeof stack_patch>
