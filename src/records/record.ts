import { recordIdOf } from '../entities/identifiers.ts'
import { shownAttributes } from '../entities/represent.ts'
import type { Standing } from '../entities/row.ts'
import type { Definitions } from '../organizations/definitions.ts'
import type { StackRecord } from './schema.ts'

/** A record as a read shows it. */
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
