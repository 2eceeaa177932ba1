import type { TSchema } from 'typebox'
import type { ErrorWord } from '../errors.ts'
import type { Call, ParameterKind } from '../http/pipeline/route.ts'

type Scope = 'people:read' | 'people:write' | 'records:read' | 'records:write'

/** What tells people from records: where they live, and what they are called. All else is shared. */
export type EntityKind = {
  noun: 'person' | 'record'
  /** As operation ids spell it: `createPerson`, `listPeople`. */
  singular: string
  plural: string
  /** `/v1/people`, `/v1/stacks/{stack_key}`. */
  path: string
  params: Record<string, ParameterKind>
  /** The internal identifier: its name in paths, reads and batches, and the uuid that stands for it. */
  identifier: {
    name: 'uuid' | 'record_id'
    kind: ParameterKind
    field: 'id' | 'record_id'
    toUuid(text: string): string
    fromUuid(uuid: string): string
  }
  reads: Scope
  writes: Scope
  body: TSchema
  /** What a read of one answers. */
  answer: TSchema
  /** Quirks of the contract, at the PATCH by external identifier. */
  patchStatuses: Partial<Record<ErrorWord, number>>
  /** The stack a request is about, at once where no definitions are looked up; a Fault of 404 where there is none. */
  stackOf(call: Call): number | Promise<number>
}
