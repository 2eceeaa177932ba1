import { type TSchema, Type } from 'typebox'
import type { Limits } from '../config.ts'
import { examplesOf, nullable, times } from '../organizations/definition-schema.ts'

/** The page at /docs fills bodies in with their examples: one click must rename, overwrite and opt in nobody. */
export const harmlessBody = { attribute_values: {} }

/** Stands for an identifier in the examples of bodies that need one. */
export const exampleName = 'your-external-id'

/** The client's own identifier of a person or record. */
export function externalId({ profileCharacters }: Limits) {
  return Type.Optional(
    nullable(
      Type.String({
        format: 'external-id',
        maxLength: profileCharacters,
        description: "The client's own identifier; on update, the new one.",
      }),
    ),
  )
}

/** Custom attribute values by key: any JSON, of a declared attribute's type where the key is declared. */
export function attributeValues({ requestKeys }: Limits) {
  return Type.Optional(
    nullable(
      Type.Record(Type.String(), Type.Unknown(), {
        maxProperties: requestKeys,
        description: 'Custom attribute values; a relationship is given the external identifier of its target.',
      }),
    ),
  )
}

/** What every read of an entity shows beside its identifiers and its own fields. */
export const entityFields = {
  attribute_values: Type.Record(Type.String(), Type.Unknown(), {
    description: 'A relationship shows the external identifier of its target, an array of them for `many`.',
  }),
  state: Type.Enum(['active', 'placeholder'], {
    description: 'A placeholder was born of a relationship; the first write addressed to it makes it active.',
  }),
  version: Type.Integer({ minimum: 1, description: 'One more with every write that changes something.' }),
  ...times,
}

/** The answer of list, filter and related: `has_more` is false on the last page. */
export function pageSchema(element: TSchema) {
  const { title } = element as { title?: string }
  return Type.Object(
    { items: Type.Array(element), has_more: Type.Boolean({ description: 'Whether another page follows.' }) },
    { ...(title && { title: `${title}Page` }), examples: [{ items: examplesOf(element), has_more: false }] },
  )
}

const batchDone = Type.Object({
  index: Type.Integer({ minimum: 0 }),
  status: Type.Enum([200, 201]),
  id: Type.String({ description: 'The internal identifier.' }),
  external_id: nullable(Type.String()),
})

const batchRefused = Type.Object({
  index: Type.Integer({ minimum: 0 }),
  status: Type.Integer({ minimum: 400, maximum: 599, description: 'As a request of its own would have it.' }),
  error: Type.String({ description: 'The error word.' }),
  message: Type.String(),
  details: Type.Array(
    Type.Object({ path: Type.String({ description: 'A JSON Pointer into the whole body.' }), message: Type.String() }),
  ),
  outcome: Type.Optional(Type.Literal('unknown', { description: 'As in an error of its own.' })),
})

/** The answer of a batch: one item for each operation, in their order. */
export const batchAnswer = Type.Object(
  { items: Type.Array(Type.Union([batchDone, batchRefused])), failed: Type.Integer({ minimum: 0 }) },
  {
    title: 'BatchAnswer',
    examples: [
      {
        items: [
          { index: 0, status: 201, id: '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f', external_id: 'ada' },
          { index: 1, status: 404, error: 'not_found', message: 'There is no such person.', details: [] },
        ],
        failed: 1,
      },
    ],
  },
)
