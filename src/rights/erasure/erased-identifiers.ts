import type { Profile, StoredRow } from '../../entities/entity-row.ts'
import { matchKeys } from '../../entities/match-keys.ts'
import { erasableText } from '../../entities/write/decide/erasable-values.ts'
import type { Locked } from '../../organizations/change-organization.ts'
import { peopleStackId } from '../../organizations/definitions.ts'
import { readAliasesOfSql, readLoggedIdentifiersSql, readMergedContactsSql } from './erased-tables-sql.ts'

/** All identifiers that the entities ever had. */
export type ErasedIdentifiers = {
  /** The external identifiers, by stack. */
  names: Map<number, Set<string>>
  /** The values that get tombstones: the names, emails and phones of people, in the form of {@link erasableText}. */
  values: Set<string>
  /** The texts to search for in responses, in the forms of JSON and of URLs. */
  texts: Set<string>
}

export const noIdentifiers = (): ErasedIdentifiers => ({ names: new Map(), values: new Set(), texts: new Set() })

type Contact = Pick<Profile, 'email' | 'mobile_prefix' | 'mobile_number'>
type Identifiers = Contact & { external_id: string | null }

/**
 * The identifiers that a change of an entity wrote, and those that they replaced. Members that it did not write are
 * absent.
 */
export type LoggedIdentifiers = {
  stack_id: number
  id: string
  before: Partial<Identifiers>
  after: Partial<Identifiers>
  is_given: boolean
  is_own: boolean
}

type Known = { ids: string[]; people: string[]; rows: readonly StoredRow[] }

/**
 * Reads all identifiers that the entities ever had. An email or phone that an entity had only between a merge and its
 * unmerge belongs to the other person.
 */
export async function readIdentifiers(
  { tx, organization_id, definitions: { default_country } }: Locked,
  { ids, people, rows }: Known,
): Promise<ErasedIdentifiers> {
  const logged = await tx.query<LoggedIdentifiers>(readLoggedIdentifiersSql, [organization_id, ids])
  const aliases =
    people.length === 0 ? [] : await tx.query<{ external_id: string }>(readAliasesOfSql, [organization_id, people])
  const merged = people.length === 0 ? [] : await tx.query<Contact>(readMergedContactsSql, [organization_id, people])
  const { names, values, texts } = noIdentifiers()
  const addName = (stack_id: number, name: string | null) => {
    if (name === null) return
    names.set(stack_id, (names.get(stack_id) ?? new Set()).add(name))
    if (stack_id === peopleStackId) values.add(erasableText('external_id', name))
    for (const text of printedForms(name)) texts.add(text)
  }
  const addContact = (contact: Contact) => {
    for (const value of contactValues(contact, default_country)) values.add(value)
    for (const text of [contact.email, contact.mobile_number])
      for (const printed of printedForms(text ?? '')) texts.add(printed)
  }
  for (const { stack_id, before, after } of logged)
    for (const side of [before, after]) addName(stack_id, side.external_id ?? null)
  const { had, given } = contactsIn(logged, default_country)
  for (const contact of had) addContact(contact)
  for (const value of given) values.delete(value)
  for (const row of rows) {
    addName(row.stack_id, row.external_id)
    addContact(row)
  }
  for (const contact of merged) addContact(contact)
  for (const { external_id } of aliases) addName(peopleStackId, external_id)
  return { names, values, texts }
}

const noContact: Contact = { email: null, mobile_prefix: null, mobile_number: null }

/**
 * The emails and phones that the entities had, from their changes in order of the versions, and the values that they
 * had only between a merge and its unmerge. A change logs only changed columns, so the prefix of a number may come from
 * an earlier change.
 */
export function contactsIn(
  logged: readonly LoggedIdentifiers[],
  country: string | null,
): { had: Contact[]; given: ReadonlySet<string> } {
  const valuesOf = (contact: Contact) => contactValues(contact, country)
  const had: Contact[] = []
  const [given, own] = [new Set<string>(), new Set<string>()]
  let state = { id: '', ...noContact }
  for (const { id, before, after, is_given, is_own } of logged) {
    if (state.id !== id) state = { id, ...noContact }
    const first = { ...state, ...before }
    const last = { ...first, ...after }
    if (is_given) {
      for (const value of [...valuesOf(written(first, before)), ...valuesOf(written(last, after))]) given.add(value)
    } else {
      had.push(first, last)
      state = last
    }
    if (is_own && !is_given) for (const value of valuesOf(written(last, after))) own.add(value)
  }
  return { had, given: given.difference(own) }
}

/** The email, if a change wrote it, and the phone, if the change wrote a part of it. */
function written(contact: Contact, side: Partial<Contact>): Contact {
  const isPhoneWritten = side.mobile_prefix !== undefined || side.mobile_number !== undefined
  return { ...noContact, ...(isPhoneWritten && contact), email: side.email === undefined ? null : contact.email }
}

/** The email and the phone in the form of tombstones. */
function contactValues(contact: Contact, country: string | null): string[] {
  const { email_key, mobile_key } = matchKeys(contact, country)
  return [
    ...(email_key === null ? [] : [erasableText('email', email_key)]),
    ...(mobile_key === null ? [] : [erasableText('mobile', mobile_key)]),
  ]
}

/**
 * A shorter identifier is searched only as a whole value, because almost every response has it as a part of other
 * values.
 */
const minSearched = 6

/** The forms of a text in JSON and in a URL. */
function printedForms(text: string): string[] {
  if (text === '') return []
  const printed = JSON.stringify(text)
  const path = encodeURIComponent(text)
  return text.length < minSearched ? [printed, `/${path}"`] : [printed.slice(1, -1), path]
}
