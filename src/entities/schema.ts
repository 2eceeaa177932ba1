import type { TSchema } from 'typebox'
import type { Limits } from '../config.ts'
import { Type } from '../json-schema.ts'
import { examplesOf, nullable, times } from '../organizations/definition-schema.ts'
import { matchKinds } from './write-request.ts'

/** The page at /docs sends example bodies with one click. This one renames, overwrites and opts in no one. */
export const harmlessBody = { attribute_values: {} }

/** The identifier in the examples of bodies that need one. */
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

/** Custom attribute values by key: any JSON. The value of a declared attribute has its type. */
export function attributeValues({ requestKeys }: Limits) {
  return Type.Optional(
    nullable(
      Type.Record(Type.String(), Type.Unknown(), {
        maxProperties: requestKeys,
        description: 'Custom attribute values. The value of a relationship is the external identifier of its target.',
      }),
    ),
  )
}

/** `match` in the body of an upsert or a batch of people. */
export const matchBody = Type.Optional(
  Type.Array(Type.Enum(matchKinds), {
    minItems: 1,
    maxItems: 3,
    description:
      'What the person is recognized by, in this order; the first that anybody has decides. The default is the external ' +
      'identifier alone. Email is compared in lower case, and `mobile` is the phone number with its country.',
  }),
)

/** The fields that every read of a person or record has in common, besides identifiers. */
export const entityFields = {
  attribute_values: Type.Record(Type.String(), Type.Unknown(), {
    description:
      'The value of a relationship is the external identifier of its target, or an array of them for `many`.',
  }),
  state: Type.Enum(['active', 'placeholder'], {
    description:
      'A relationship to a missing entity creates a placeholder. A create, or the first write that changes it, makes it active.',
  }),
  version: Type.Integer({ minimum: 1, description: 'Incremented by every write that changes something.' }),
  ...times,
  as_of: Type.Optional(
    Type.Object(
      {
        at: Type.String({ format: 'date-time' }),
        sequence: Type.Integer({ minimum: 1 }),
        version: Type.Integer({ minimum: 1 }),
      },
      {
        description:
          'Only in a read with `at` or `version`: the time, the number of the last change until then, and the version of the entity.',
      },
    ),
  ),
}

/** The response of list, filter and related. `has_more` is false on the last page. */
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
  status: Type.Integer({ minimum: 400, maximum: 599, description: 'The status of the same request on its own.' }),
  error: Type.String({ description: 'The error code.' }),
  message: Type.String(),
  details: Type.Array(
    Type.Object({ path: Type.String({ description: 'A JSON Pointer into the whole body.' }), message: Type.String() }),
  ),
  reason: Type.Optional(Type.Literal('erased', { description: 'A value belonged to a person who was erased.' })),
  outcome: Type.Optional(Type.Literal('unknown', { description: 'The outcome of the write is unknown.' })),
})

/** The response of a batch: one item for each operation, in the same order. */
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
