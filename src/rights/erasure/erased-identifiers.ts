import type { Transaction } from '../../db/db.ts'
import { erasableText } from '../../entities/decide/erasable-values.ts'
import type { Profile, StoredRow } from '../../entities/entity-row.ts'
import { emailKey } from '../../entities/match-keys.ts'
import { peopleStackId } from '../../organizations/definitions.ts'
import { mobileKey } from '../../phone-numbers.ts'
import { readAliasesOfSql, readLoggedIdentifiersSql } from './erased-tables-sql.ts'

/** The identifiers that the entities ever had. */
export type ErasedIdentifiers = {
  /** The external identifiers, by stack. */
  names: Map<number, Set<string>>
  /** The values that get tombstones: the names, emails and phones of people, as {@link erasableText} has them. */
  values: Set<string>
  /** The texts that a response may have, as JSON and URLs print them. */
  texts: Set<string>
}

export const noIdentifiers = (): ErasedIdentifiers => ({ names: new Map(), values: new Set(), texts: new Set() })

type Contact = Pick<Profile, 'email' | 'mobile_prefix' | 'mobile_number'>
type Identifiers = Contact & { external_id: string | null }
type LoggedIdentifiers = {
  stack_id: number
  id: string
  before: Identifiers
  after: Identifiers
  is_given: boolean
  is_own: boolean
  is_mobile_written: boolean
}

type Known = { ids: string[]; people: string[]; rows: readonly StoredRow[] }

/**
 * Reads every identifier that the entities ever had. An email or phone that an entity had only by a merge, until it was undone, belongs to
 * the other person.
 */
export async function readIdentifiers(
  tx: Transaction,
  organization_id: number,
  { ids, people, rows }: Known,
): Promise<ErasedIdentifiers> {
  const logged = await tx.query<LoggedIdentifiers>(readLoggedIdentifiersSql, [organization_id, ids])
  const aliases =
    people.length === 0 ? [] : await tx.query<{ external_id: string }>(readAliasesOfSql, [organization_id, people])
  const { names, values, texts } = noIdentifiers()
  const addName = (stack_id: number, name: string | null) => {
    if (name === null) return
    names.set(stack_id, (names.get(stack_id) ?? new Set()).add(name))
    if (stack_id === peopleStackId) values.add(erasableText('external_id', name))
    for (const text of printedForms(name)) texts.add(text)
  }
  const addContact = (contact: Contact) => {
    for (const value of contactValues(contact)) values.add(value)
    for (const text of [contact.email, contact.mobile_number])
      for (const printed of printedForms(text ?? '')) texts.add(printed)
  }
  const [given, own] = [new Set<string>(), new Set<string>()]
  let mobile = { id: '', mobile_prefix: null as string | null, mobile_number: null as string | null }
  for (const { stack_id, id, before, after, ...is } of logged) {
    if (mobile.id !== id) mobile = { id, mobile_prefix: null, mobile_number: null }
    for (const side of [before, after]) {
      addName(stack_id, side.external_id)
      const mobile_prefix = side.mobile_prefix ?? mobile.mobile_prefix
      if (is.is_given) for (const value of contactValues({ ...side, mobile_prefix })) given.add(value)
      else addContact(side)
    }
    if (is.is_given) continue
    if (is.is_own) for (const value of contactValues(after)) own.add(value)
    // A change logs only what it changes, so a number may belong to a prefix that an earlier change wrote.
    mobile.mobile_prefix = after.mobile_prefix ?? mobile.mobile_prefix
    mobile.mobile_number = after.mobile_number ?? mobile.mobile_number
    if (!is.is_mobile_written) continue
    addContact({ email: null, ...mobile })
    if (is.is_own) for (const value of contactValues({ email: null, ...mobile })) own.add(value)
  }
  for (const value of given.difference(own)) values.delete(value)
  for (const row of rows) {
    addName(row.stack_id, row.external_id)
    addContact(row)
  }
  for (const { external_id } of aliases) addName(peopleStackId, external_id)
  return { names, values, texts }
}

/** The email and the phone as tombstones have them. */
function contactValues({ email, mobile_prefix, mobile_number }: Contact): string[] {
  const [mailKey, phoneKey] = [emailKey(email), mobileKey(mobile_prefix, mobile_number)]
  return [
    ...(mailKey === null ? [] : [erasableText('email', mailKey)]),
    ...(phoneKey === null ? [] : [erasableText('mobile', phoneKey)]),
  ]
}

/** An identifier of fewer characters is searched only as a whole value, because every response may have it as part of another. */
const minSearched = 6

/** A text as JSON prints it, and as a URL does. */
function printedForms(text: string): string[] {
  if (text === '') return []
  const printed = JSON.stringify(text)
  const path = encodeURIComponent(text)
  return text.length < minSearched ? [printed, `/${path}"`] : [printed.slice(1, -1), path]
}
