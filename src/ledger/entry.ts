import { hash } from 'node:crypto'
import { canonicalJson } from '../../client/src/ledger-text.ts'
import type { LedgerEntry } from './schema.ts'

/** The values of an entry. A member without a value is null or undefined. */
export type EntryValues = { [Name in keyof LedgerEntry]-?: LedgerEntry[Name] | null | undefined } & Pick<
  LedgerEntry,
  'organization' | 'sequence' | 'person_id' | 'consent_type_id' | 'channel' | 'state' | 'superseded' | 'at'
>

/** Builds an entry from the values that are not null or undefined. */
export function buildEntry(values: EntryValues): LedgerEntry {
  // Sealing builds thousands of entries a second. A loop takes a fifth of the time of Object.fromEntries.
  const entry: Record<string, unknown> = {}
  for (const name in values) {
    const value = values[name as keyof EntryValues]
    if (value !== null && value !== undefined) entry[name] = value
  }
  return entry as never
}

const saltBytes = 32

/** The data of a leaf: SHA-256(salt || JCS(entry)), with JCS of RFC 8785. The salt has 32 bytes. */
export function leafData(salt: Uint8Array, entry: object): Buffer {
  if (salt.length !== saltBytes) throw new RangeError(`a salt has ${saltBytes} bytes, not ${salt.length}`)
  return Buffer.from(hash('sha256', Buffer.concat([salt, Buffer.from(canonicalJson(entry))]), 'binary'), 'binary')
}
