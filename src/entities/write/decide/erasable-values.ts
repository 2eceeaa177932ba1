import { peopleStackId } from '../../../organizations/definitions.ts'
import { createRefusal, type Detail, pointer, type Refusal } from '../../../values/errors.ts'
import { mobileKey } from '../../../values/phone-numbers.ts'
import type { Columns, EntityRow } from '../../entity-row.ts'
import { changedMatchKeys, emailKey, matchKeys } from '../../match-keys.ts'
import { isCompleting, type Write } from '../../write-request.ts'
import type { PlannedMissing } from './attributes.ts'

/** A value of which an erasure keeps a keyed hash. `value` has its kind and text, such as `email:ada@example.com`. */
export type ErasableValue = { value: string; path: string }

/**
 * The text whose hash a tombstone has. An email is as in `email_key`, a phone number as in `mobile_key`. Another system
 * may type the same name with other code points, so a tombstone has the composed form (NFC). Elsewhere, external
 * identifiers are compared exactly.
 */
export const erasableText = (kind: 'external_id' | 'email' | 'mobile', value: string): string =>
  `${kind}:${value.normalize('NFC')}`

/** The parts of a change that may give a value to a person. */
export type Giving = {
  operation: string
  external_id: string | null
  columns: Columns
  missing: readonly PlannedMissing[]
  aliases?: readonly string[]
  /** Values that a returning person had when it left, although they already had tombstones. */
  kept?: ReadonlySet<string> | undefined
}

/** The members of a write that determine which values its change gives. */
type GivingWrite = Pick<Write, 'stack_id' | 'operation'>

/**
 * Returns the values that a change gives to people who do not have them yet, with their paths in the request. `row` is
 * the row before, and `country` that of phone numbers without a prefix.
 */
export function erasableValues(
  change: Giving,
  write: GivingWrite,
  row: EntityRow | undefined,
  country: string | null,
): ErasableValue[] {
  const values: ErasableValue[] = []
  const add = (kind: Parameters<typeof erasableText>[0], text: string, path: string) => {
    const value = erasableText(kind, text)
    if (!change.kept?.has(value)) values.push({ value, path })
  }
  for (const { name, pointer: path } of change.missing)
    if (name.stack_id === peopleStackId) add('external_id', name.external_id, path)
  if (write.stack_id !== peopleStackId || change.operation === 'delete' || change.operation === 'erase') return values
  const { columns } = change
  const name = columns.external_id ?? (isCompleting(write, row) ? change.external_id : null)
  if (name != null) add('external_id', name, pointer('external_id'))
  for (const alias of change.aliases ?? []) add('external_id', alias, pointer('external_id'))
  const { email_key, mobile_key } = row ? changedMatchKeys(row, columns, country) : matchKeys(columns, country)
  // The same email or phone number in another spelling is no new value.
  if (email_key != null && email_key !== emailKey(row?.email)) add('email', email_key, pointer('email'))
  if (mobile_key != null && mobile_key !== mobileKey(row?.mobile_prefix, row?.mobile_number, country))
    add('mobile', mobile_key, pointer('mobile_number'))
  return values
}

/** Refuses a change that gives these values to a person if one of them is erased. */
export function erasedRefusal(given: readonly ErasableValue[], erased: ReadonlySet<string>): Refusal | undefined {
  const details: Detail[] = given
    .filter(({ value }) => erased.has(value))
    .map(({ path }) => ({ path, message: 'belongs to a person who was erased' }))
  if (details.length === 0) return undefined
  const message = 'The person was erased. A request with `Prefer: erased=recreate` stores the person anew.'
  return createRefusal('duplicate_entry', message, { details, reason: 'erased' })
}
