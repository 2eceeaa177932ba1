import { client } from '../app/client.ts'

/** The values of a person or record, in a type that the pages of both share. */
export type Values = Record<string, unknown>

/** A person or record in a type that the pages of both share. The profile fields of a person are among its members. */
export type Entity = Values & {
  id?: string
  record_id?: string
  external_id: string | null
  attribute_values: Values
  state: 'active' | 'placeholder'
  version: number
  created_at: string
  updated_at: string
  /** The display name, and those of the targets by relationship and identifier, if they were requested. */
  label?: string
  relationship_labels?: Record<string, Record<string, string>>
  as_of?: { at: string; version: number }
}

/** The internal identifier. */
export const idOf = ({ id, record_id }: { id?: string; record_id?: string }): string => id ?? record_id ?? ''

/**
 * The phone of a person for dialing: as it was written, but in E.164 if it was written with a 0 that the prefix
 * replaces. Empty without a phone.
 */
export function phoneOf({ mobile_prefix, mobile_number, mobile_e164 }: Values): string {
  const written = [mobile_prefix, mobile_number].filter(Boolean).join(' ')
  const isWhole = !mobile_prefix || !mobile_e164 || written.replaceAll(/[^\d+]/g, '') === mobile_e164
  return isWhole ? written : String(mobile_e164)
}

/** The endpoints of `people`, or of the records of a stack. */
export const entitiesOf = (owner: string) => client.entities(owner)

/** The member that is the internal identifier. */
export const idFieldOf = (owner: string): 'id' | 'record_id' => (owner === 'people' ? 'id' : 'record_id')

/** The scopes for reading and writing the entities of an owner. */
export const scopesOf = (owner: string): { read: string; write: string } =>
  owner === 'people' ? { read: 'people:read', write: 'people:write' } : { read: 'records:read', write: 'records:write' }
