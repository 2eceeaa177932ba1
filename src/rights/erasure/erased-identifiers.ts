import type { Transaction } from '../../db/db.ts'
import type { Profile, StoredRow } from '../../entities/entity-row.ts'
import { emailKey, mobileKey } from '../../entities/match-keys.ts'
import { peopleStackId } from '../../organizations/definitions.ts'
import { readAliasesOfSql, readLoggedIdentifiersSql } from './erased-tables-sql.ts'

/** The identifiers that the entities ever had. `names` are external identifiers by stack. */
export type ErasedIdentifiers = {
  names: Map<number, Set<string>>
  emails: Set<string>
  mobiles: Set<string>
}

export const noIdentifiers = (): ErasedIdentifiers => ({ names: new Map(), emails: new Set(), mobiles: new Set() })

type Identifiers = Pick<Profile, 'email' | 'mobile_prefix' | 'mobile_number'> & { external_id: string | null }
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
 * the other person. `texts` are those that a response may have, as JSON and URLs print them.
 */
export async function readIdentifiers(
  tx: Transaction,
  organization_id: number,
  { ids, people, rows }: Known,
): Promise<{ identifiers: ErasedIdentifiers; texts: string[] }> {
  const logged = await tx.query<LoggedIdentifiers>(readLoggedIdentifiersSql, [organization_id, ids])
  const aliases =
    people.length === 0 ? [] : await tx.query<{ external_id: string }>(readAliasesOfSql, [organization_id, people])
  const identifiers = noIdentifiers()
  const texts = new Set<string>()
  const addName = (stack_id: number, name: string | null) => {
    if (name === null) return
    identifiers.names.set(stack_id, (identifiers.names.get(stack_id) ?? new Set()).add(name))
    for (const text of printedForms(name)) texts.add(text)
  }
  const addContact = ({ email, mobile_prefix, mobile_number }: Omit<Identifiers, 'external_id'>) => {
    const [mailKey, phoneKey] = [emailKey(email), mobileKey(mobile_prefix, mobile_number)]
    if (mailKey !== null) identifiers.emails.add(mailKey)
    if (phoneKey !== null) identifiers.mobiles.add(phoneKey)
    for (const text of [email, mobile_number]) for (const printed of printedForms(text ?? '')) texts.add(printed)
  }
  const [given, own] = [new Set<string>(), new Set<string>()]
  let mobile = { id: '', mobile_prefix: null as string | null, mobile_number: null as string | null }
  for (const { stack_id, id, before, after, ...is } of logged) {
    if (mobile.id !== id) mobile = { id, mobile_prefix: null, mobile_number: null }
    for (const values of [before, after]) {
      addName(stack_id, values.external_id)
      const mobile_prefix = values.mobile_prefix ?? mobile.mobile_prefix
      if (is.is_given) for (const key of contactKeys({ ...values, mobile_prefix })) given.add(key)
      else addContact(values)
    }
    if (is.is_given) continue
    if (is.is_own) for (const key of contactKeys(after)) own.add(key)
    // A change logs only what it changes, so a number may belong to a prefix that an earlier change wrote.
    mobile.mobile_prefix = after.mobile_prefix ?? mobile.mobile_prefix
    mobile.mobile_number = after.mobile_number ?? mobile.mobile_number
    if (!is.is_mobile_written) continue
    addContact({ email: null, ...mobile })
    if (is.is_own) for (const key of contactKeys({ email: null, ...mobile })) own.add(key)
  }
  for (const key of given.difference(own)) {
    identifiers.emails.delete(key)
    identifiers.mobiles.delete(key)
  }
  for (const row of rows) {
    addName(row.stack_id, row.external_id)
    addContact(row)
  }
  for (const { external_id } of aliases) addName(peopleStackId, external_id)
  return { identifiers, texts: [...texts] }
}

/** The keys of an email and a phone. No email has the key of a phone. */
const contactKeys = ({ email, mobile_prefix, mobile_number }: Omit<Identifiers, 'external_id'>): string[] =>
  [emailKey(email), mobileKey(mobile_prefix, mobile_number)].filter(key => key !== null)

/** An identifier of fewer characters is searched only as a whole value, because every response may have it as part of another. */
const minSearched = 6

/** A text as JSON prints it, and as a URL does. */
function printedForms(text: string): string[] {
  if (text === '') return []
  const printed = JSON.stringify(text)
  const path = encodeURIComponent(text)
  return text.length < minSearched ? [printed, `/${path}"`] : [printed.slice(1, -1), path]
}
