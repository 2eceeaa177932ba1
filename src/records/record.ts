import { recordIdOf } from '../entities/identifiers.ts'
import { shownAttributes } from '../entities/represent.ts'
import type { Standing } from '../entities/row.ts'
import type { Definitions } from '../organizations/definitions.ts'

/** A record as a read shows it. `record_id` is an ObjectId of 24 hexadecimal digits. */
export type StackRecord = {
  record_id: string
  external_id: string | null
  stack_key: string
  attribute_values: Record<string, unknown>
  state: 'active' | 'placeholder'
  version: number
  created_at: string
  updated_at: string
}

export function toRecord({ row, links }: Standing, definitions: Definitions): StackRecord {
  return {
    record_id: recordIdOf(row.id),
    external_id: row.external_id,
    stack_key: definitions.stacks.find(stack => stack.id === row.stack_id)!.key,
    attribute_values: shownAttributes({ row, links }, definitions),
    state: row.active ? 'active' : 'placeholder',
    version: row.version,
    created_at: row.created_at,
    updated_at: row.updated_at,
  }
}
