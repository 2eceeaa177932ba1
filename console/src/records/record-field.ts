import type { Attribute } from '@kith/client'

/** A value of a record: of its own field, or of an attribute. */
export type RecordField = {
  group: 'field' | 'attribute'
  key: string
  name: string
  attribute: Attribute | undefined
  value: unknown
  /** Its name stands beside it. */
  isShownByName: boolean
}
