import { Type } from 'typebox'
import type { Limits } from '../config.ts'
import { nullable } from '../organizations/definition-schema.ts'

/** The client's own identifier of a person or record. */
export function externalId({ profile_characters }: Limits) {
  return Type.Optional(
    nullable(
      Type.String({
        format: 'external-id',
        maxLength: profile_characters,
        description: "The client's own identifier; on update, the new one.",
      }),
    ),
  )
}

/** Custom attribute values by key: any JSON, of a declared attribute's type where the key is declared. */
export function attributeValues({ request_keys }: Limits) {
  return Type.Optional(
    nullable(
      Type.Record(Type.String(), Type.Unknown(), {
        maxProperties: request_keys,
        description: 'Custom attribute values; a relationship is given the external identifier of its target.',
      }),
    ),
  )
}
