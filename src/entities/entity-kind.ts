import type { TSchema } from 'typebox'
import type { Call } from '../route/call.ts'
import type { ParameterKind } from '../route/route.ts'
import type { ErrorCode } from '../values/errors.ts'

type Scope = 'people:read' | 'people:write' | 'records:read' | 'records:write'

/** The differences between people and records: paths, names, identifiers and scopes. They share everything else. */
export type EntityKind = {
  noun: 'person' | 'record'
  /** Used in operation ids: `createPerson`, `listPeople`. */
  singular: string
  plural: string
  /** `/v1/people`, `/v1/stacks/{stack_key}`. */
  path: string
  params: Record<string, ParameterKind>
  /** The internal identifier: its names in paths and bodies, and the conversion to and from the stored uuid. */
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
  /** The response of a read. */
  answer: TSchema
  /** Exceptional statuses that the contract gives to PATCH by external identifier. */
  patchStatuses: Partial<Record<ErrorCode, number>>
  /**
   * Returns the stack of a request, synchronously if no definitions are needed. Throws a 404 Fault if it is missing.
   */
  stackOf(call: Call): number | Promise<number>
}
