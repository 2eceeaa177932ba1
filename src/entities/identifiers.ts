import { ObjectId } from 'bson'
import { v7 } from 'uuid'
import { people_stack_id } from '../organizations/definitions.ts'

// A record's ObjectId of 12 bytes lies at the front of the uuid column; the rest is zero.
const object_id_padding = '00000000'

/** A fresh internal identifier, later ones sorting after earlier ones: a UUIDv7 for a person, a padded ObjectId for a record. */
export function newEntityId(stack_id: number): string {
  return stack_id === people_stack_id ? v7() : uuidOfRecord(new ObjectId().toHexString())
}

/** The uuid that stands for a `record_id` of 24 hexadecimal digits. */
export function uuidOfRecord(record_id: string): string {
  const digits = record_id.toLowerCase() + object_id_padding
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

/** The `record_id` of a record's uuid. */
export function recordIdOf(uuid: string): string {
  return uuid.replaceAll('-', '').slice(0, -object_id_padding.length)
}
