import type { Static } from 'typebox'
import { attributeValues, entityFields, externalId, harmlessBody } from '../entities/schema.ts'
import type { Limits } from '../process/config.ts'
import { closedObject, nullable, Type, text } from '../values/json-schema.ts'

/** Body of create, PUT and PATCH of a record. Every field is optional, and null clears it. */
export function recordBody(limits: Limits) {
  return closedObject(
    { external_id: externalId(limits), attribute_values: attributeValues(limits) },
    {
      title: 'RecordBody',
      description: 'The body of a create, PUT, PATCH or upsert of a record. A null clears the field.',
      examples: [harmlessBody],
    },
  )
}

export const record = Type.Object(
  {
    record_id: Type.String({ format: 'object-id', description: 'The internal identifier: 24 hexadecimal digits.' }),
    external_id: nullable(text()),
    stack_key: text(),
    ...entityFields,
  },
  {
    title: 'StackRecord',
    description: 'A record of a stack as reads return it.',
    examples: [
      {
        record_id: '01936f3e0a5c7c3e9d0a5b6f',
        external_id: 'o1',
        stack_key: 'orders',
        attribute_values: { total: 40, buyer: 'ada' },
        state: 'active',
        version: 1,
        created_at: '2026-01-01T12:00:00.000Z',
        updated_at: '2026-01-01T12:00:00.000Z',
      },
    ],
  },
)
export type StackRecord = Static<typeof record>
