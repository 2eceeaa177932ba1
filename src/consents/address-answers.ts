import type { Transaction } from '../db/db.ts'
import type { Definitions } from '../organizations/definitions.ts'
import type { Channel } from '../values/channels.ts'
import {
  deleteShownAnswersSql,
  showAddressAnswersSql,
  showDeliverabilitySql,
  storeAddressAnswersSql,
} from './address-answers-sql.ts'
import { compareAnswers, methodRank, type NumberedAnswer, type Question } from './answers.ts'

// An answer belongs to the person, and also to the address that the person had when it was given. The last answer of an
// address to a purpose is in force, by the order of answers, no matter which person gave it. A refusal in force forbids
// to write to the address, until a later grant.

/**
 * An answer with the person's address at that time, as `email_key` or `mobile_key`. An unconfirmed grant is no answer.
 */
export type AddressAnswer = Question & {
  address: string
  /** Null if no person had the address. */
  person_id: string | null
  answer: NumberedAnswer & { sequence: number }
}

/**
 * Stores the last answer of each address to a purpose if it supersedes the stored one. Returns a row for each stored
 * answer.
 */
export function storeAddressAnswers(
  tx: Transaction,
  organization_id: number,
  answers: readonly AddressAnswer[],
): Promise<{ state: boolean }[]> {
  const latest = new Map<string, AddressAnswer>()
  for (const each of answers) {
    const key = `${each.consent_type_id}:${each.channel}:${each.address}`
    const other = latest.get(key)
    if (!other || compareAnswers(each.answer, other.answer) > 0) latest.set(key, each)
  }
  const rows = [...latest.values()].map(({ answer: { state, undated, answered_at, ...answer }, ...given }) => ({
    ...given,
    state,
    answered_at: undated ? '-infinity' : answered_at,
    text_version: answer.text_version ?? 0,
    method_rank: methodRank(answer),
    sequence: answer.sequence,
  }))
  return tx.query<{ state: boolean }>(storeAddressAnswersSql, [organization_id, JSON.stringify(rows)])
}

/** Restores the answers and events that an erasure has left under hashes, for addresses that people get. */
export function showAddresses(
  tx: Transaction,
  { organization_id, has_tombstones }: Pick<Definitions, 'organization_id' | 'has_tombstones'>,
  addresses: readonly { channel: Channel; address: string }[],
): Promise<unknown>[] {
  if (!has_tombstones || addresses.length === 0) return []
  const values = [organization_id, addresses.map(({ channel }) => channel), addresses.map(({ address }) => address)]
  return [
    tx.query(showAddressAnswersSql, values),
    tx.query(deleteShownAnswersSql, values),
    tx.query(showDeliverabilitySql, values),
  ]
}
