import { Type } from 'typebox'
import type { Limits } from '../config.ts'
import { attributeValues, externalId } from '../entities/schema.ts'

/** The body of create, PUT and PATCH of a record. Every field is optional; null clears. */
export function recordBody(limits: Limits) {
  return Type.Object(
    { external_id: externalId(limits), attribute_values: attributeValues(limits) },
    { additionalProperties: false },
  )
}
