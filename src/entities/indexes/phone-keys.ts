import { showAddresses } from '../../consents/address-answers.ts'
import type { Context } from '../../db/context.ts'
import { awaitPipelined, type Transaction } from '../../db/db.ts'
import { changeOrganization, ownAuthor } from '../../organizations/change-organization.ts'
import type { Definitions } from '../../organizations/definitions.ts'
import { yieldIfDue } from '../../process/event-loop.ts'
import type { Signal } from '../../process/signal.ts'
import { channels, channelTable } from '../../values/channels.ts'
import { mobileKey } from '../../values/phone-numbers.ts'
import {
  advancePhoneKeysSql,
  insertPhoneChecksSql,
  readPhoneKeysSql,
  scanMergedPhonesSql,
  scanPhonesSql,
  storeMergedPhoneKeysSql,
  storePhoneKeysSql,
} from './index-keys-sql.ts'
import { reindexPeople } from './search-index.ts'

/** A step locks the head for this many people. A phone takes 14 µs, and the words of a person 100 µs. */
const peoplePerStep = 200

const phoneChannels = channels.filter(channel => channelTable[channel].key === 'mobile_key')

type Phone = { mobile_prefix: string | null; mobile_number: string | null; mobile_key: string | null }

/**
 * Recomputes the keys of stored phones after `default_country` has changed, in steps that resume where this or another
 * process stopped. Each step locks the head as a writer does, so it never stores a key of an outdated number or
 * country. The change log has an entry for the setting only. Returns the number of scanned people.
 */
export async function computePhoneKeys(
  context: Context,
  { signal, peoplePerStep: limit = peoplePerStep }: { signal?: Signal | undefined; peoplePerStep?: number } = {},
): Promise<number> {
  const { db, organization_id } = context
  const [due] = await db.query<{ after_id: string }>(readPhoneKeysSql, [organization_id])
  if (!due) return 0
  let people = 0
  let scanned: number | undefined
  do {
    scanned = await computeStep(context, limit)
    people += scanned ?? 0
  } while (scanned === limit && !signal?.aborted)
  return people
}

/** Returns the number of scanned people. Undefined if all keys match the setting. */
const computeStep = (context: Context, limit: number): Promise<number | undefined> =>
  changeOrganization<number | undefined>(context, ownAuthor(), async ({ tx, organization_id, definitions }) => {
    const [position] = await tx.query<{ after_id: string }>(readPhoneKeysSql, [organization_id])
    if (!position) return { changes: [], result: undefined }
    const range = [organization_id, position.after_id, limit]
    const people = await tx.query<Phone & { id: string }>(scanPhonesSql, range)
    const last = people.length < limit ? null : people.at(-1)!.id
    const ids = await storeKeys(tx, definitions, people)
    if (ids.length > 0) {
      await reindexPeople(tx, definitions, ids)
      if (definitions.last_segment_id > 0) await tx.query(insertPhoneChecksSql, [organization_id, ids])
    }
    return {
      statements: [tx.query(advancePhoneKeysSql, [organization_id, last])],
      changes: [],
      result: people.length,
    }
  })

/** Stores the keys that differ. Returns the people who can now be found by other phones. */
async function storeKeys(
  tx: Transaction,
  definitions: Definitions,
  people: readonly (Phone & { id: string })[],
): Promise<string[]> {
  const { organization_id, has_aliases, default_country } = definitions
  const keyOf = ({ mobile_prefix, mobile_number }: Phone) => mobileKey(mobile_prefix, mobile_number, default_country)
  const keys = new Map<string, string | null>()
  const changed = new Set<string>()
  for (const person of people) {
    await yieldIfDue()
    const { id, mobile_prefix, mobile_key } = person
    // The country applies only to numbers without a prefix.
    keys.set(id, mobile_prefix ? mobile_key : keyOf(person))
    if (keys.get(id) !== mobile_key) changed.add(id)
  }
  const own = [...changed].map(id => ({ id, mobile_key: keys.get(id) }))
  if (own.length > 0) await tx.query(storePhoneKeysSql, [organization_id, JSON.stringify(own)])
  const given = own.flatMap(({ mobile_key: address }) =>
    address == null ? [] : phoneChannels.map(channel => ({ channel, address })),
  )
  await awaitPipelined(showAddresses(tx, definitions, given))
  if (!has_aliases || people.length === 0) return [...changed]
  type Merged = Phone & { id: number; person_id: string }
  const found = await tx.query<Merged>(scanMergedPhonesSql, [organization_id, people.map(({ id }) => id)])
  const led = found.flatMap(merged => {
    const key = keyOf(merged)
    // A merge adds no key for a phone that the survivor has itself.
    const mobile_key = key === keys.get(merged.person_id) ? null : key
    if (mobile_key === merged.mobile_key) return []
    changed.add(merged.person_id)
    return [{ id: merged.id, mobile_key }]
  })
  if (led.length > 0) await tx.query(storeMergedPhoneKeysSql, [organization_id, JSON.stringify(led)])
  return [...changed]
}
