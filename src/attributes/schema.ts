import { type Static, Type } from 'typebox'
import {
  definition_description,
  definition_key,
  definition_name,
  definition_state,
  nullable,
} from '../organizations/definition-schema.ts'

const cardinality = Type.Enum(['one', 'many'], { description: '`one` may become `many`, never the other way.' })

/** Body of POST /v1/schema/attributes. */
export const new_attribute = Type.Object(
  {
    key: definition_key,
    owner: Type.String({ description: '`people`, or the key of a stack.' }),
    type: Type.Enum(['text', 'number', 'boolean', 'date', 'datetime', 'json', 'person', 'stack']),
    target_stack: Type.Optional(
      nullable(Type.String({ description: 'For type `stack`: the key of the target stack.' })),
    ),
    name: Type.Optional(definition_name),
    description: Type.Optional(definition_description),
    cardinality: Type.Optional(cardinality),
    indexed: Type.Optional(Type.Boolean({ description: 'Equality and ranges are answered by an index.' })),
  },
  { additionalProperties: false },
)
export type NewAttribute = Static<typeof new_attribute>

/** Body of PATCH /v1/schema/attributes/{id}: owner, key, type and target never change. */
export const attribute_patch = Type.Object(
  {
    name: Type.Optional(definition_name),
    description: Type.Optional(definition_description),
    cardinality: Type.Optional(cardinality),
    indexed: Type.Optional(Type.Boolean()),
    state: Type.Optional(definition_state),
  },
  { additionalProperties: false },
)
export type AttributePatch = Static<typeof attribute_patch>
