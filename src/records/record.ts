import { recordIdOf } from '../entities/identifiers.ts'
import { attributesText, stateText } from '../entities/represent.ts'
import type { Read } from '../entities/row.ts'
import type { Definitions } from '../organizations/definitions.ts'

/** A record as a read shows it, as JSON text. */
export function recordText(read: Read, definitions: Definitions): string {
  const stack_key = definitions.stacks.find(stack => stack.id === read.stack_id)!.key
  return (
    `{"record_id":"${recordIdOf(read.id)}","external_id":${JSON.stringify(read.external_id)},` +
    `"stack_key":${JSON.stringify(stack_key)},"attribute_values":${attributesText(read, definitions)},${stateText(read)}}`
  )
}
