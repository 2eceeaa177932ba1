import type { Within } from '../../../db/context.ts'
import { createRefusal, type Detail, pointer, type Refusal, throwBrokenRule } from '../../../values/errors.ts'
import { notANumber } from '../../../values/phone-numbers.ts'
import type { Target } from '../../entity-row.ts'
import type { EntityBody, MatchKind } from '../../write-request.ts'
import { addressKey, type Item, type MatchPlan } from '../plan.ts'
import { findMatchesSql } from './load-sql.ts'

/**
 * Returns the kinds of values by which a request recognizes people, or undefined if that is the external identifier
 * alone. Throws a Fault of 400 if a kind is named twice.
 */
export function readMatch(match: readonly MatchKind[] | undefined): readonly MatchKind[] | undefined {
  const repeated = match?.findIndex((kind, index) => match.indexOf(kind) !== index) ?? -1
  if (repeated !== -1) throwBrokenRule(pointer('match', repeated), 'is named twice')
  return match && (match.length > 1 || match[0] !== 'external_id') ? match : undefined
}

const fieldOf = { external_id: 'external_id', email: 'email', mobile: 'mobile_number' } as const

/** The refusal of a write that has no value by which a person could be recognized. */
function missingKeysRefusal(match: readonly MatchKind[], body: EntityBody): Refusal {
  const details = match.map((kind): Detail => {
    const path = pointer(fieldOf[kind])
    const isNoNumber = kind === 'mobile' && body.mobile_number
    return { path, message: isNoNumber ? notANumber : `is required for a match by ${kind}` }
  })
  return createRefusal(
    'invalid_parameter',
    'The request has no value to find a person by. Give one of those in `match`.',
    {
      details,
    },
  )
}

export const maxCandidates = 10

type Candidate = { id: string; external_id: string | null }

/** The refusal of a write if several people have its key. */
function ambiguityRefusal(kind: MatchKind, candidates: readonly Candidate[]): Refusal {
  const path = pointer(fieldOf[kind])
  const details = candidates.slice(0, maxCandidates).map(({ id, external_id }) => ({
    path,
    message: `is also that of the person with the ${external_id === null ? `id ${id}` : `external_id ${external_id}`}`,
  }))
  const count = candidates.length > maxCandidates ? `More than ${maxCandidates}` : `${candidates.length}`
  return createRefusal(
    'duplicate_entry',
    `${count} people have this ${kind}. Name one by external_id, or merge them.`,
    { details },
  )
}

/** A person who has a key. `is_merged`: the key comes from a merge, and the person itself has another one or none. */
type Match = Target & { kind: MatchKind; is_merged: boolean }
type MatchRow = { number: number } & Match

/**
 * The items, addressed to the people that they recognize, and the refusals of those that recognize no person for
 * certain.
 */
export type MatchedItems = {
  items: Item[]
  refused: Map<Item, Refusal>
}

/** Match stage: finds the people that writes with `match` recognize. */
export async function matchItems(within: Within, items: Item[]): Promise<MatchedItems> {
  const refused = new Map<Item, Refusal>()
  const matches = await findMatches(within, items)
  const resolved = items.map(item => {
    const recognition = item.match && recognize(item, item.match, matches.get(item) ?? [])
    if (recognition && 'match' in recognition) return addressTo(item, recognition.match, matches.get(item) ?? [])
    if (recognition) refused.set(item, recognition.refusal)
    return item
  })
  return { items: resolved, refused }
}

async function findMatches({ tx, organization_id }: Within, items: Item[]) {
  const keys = items.flatMap(({ match }, number) =>
    match
      ? [{ number, ...Object.fromEntries([...match.others, ...match.tried].map(({ kind, key }) => [kind, key])) }]
      : [],
  )
  const values = [organization_id, JSON.stringify(keys), maxCandidates + 1]
  const rows = await tx.query<MatchRow>(findMatchesSql, values)
  return Map.groupBy(rows, ({ number }) => items[number]!)
}

type Recognition = { refusal: Refusal } | { match: Match | undefined }

/** The first key that a person has decides. */
function recognize({ write }: Item, { tried }: MatchPlan, found: readonly Match[]): Recognition {
  if (tried.length === 0) return { refusal: missingKeysRefusal(write.match!, write.body) }
  for (const { kind } of tried) {
    const candidates = found.filter(candidate => candidate.kind === kind)
    if (candidates.length > 1) return { refusal: ambiguityRefusal(kind, candidates) }
    if (candidates[0]) return { match: candidates[0] }
  }
  return { match: undefined }
}

/**
 * Addresses an item to the person that it recognizes by email or phone. The item's external identifier becomes an alias
 * of the person, or its external identifier if it has none. An email or phone that a merge leads to the person is not
 * written, because it would replace the person's own one.
 */
function addressTo(given: Item, match: Match | undefined, found: readonly Match[]): Item {
  if (!match) {
    const { write } = given
    return write.match!.includes('external_id') ? given : { ...given, write: { ...write, unrecognized: true } }
  }
  const merged = found.filter(({ id, is_merged }) => is_merged && id === match.id).map(({ kind }) => kind)
  const item =
    merged.length === 0 ? given : { ...given, write: { ...given.write, body: without(given.write.body, merged) } }
  const { write } = item
  if (match.kind === 'external_id') return item
  const { external_id, ...body } = write.body
  const addressed = { ...write, address: { id: match.id } }
  const key = addressKey(addressed)
  if (external_id && match.external_id === null) return { ...item, key, write: addressed }
  const isOther = external_id && external_id !== match.external_id
  return { ...item, key, write: { ...addressed, body, ...(isOther && { alias: external_id }) } }
}

/** A body without the fields of these kinds. */
function without(body: EntityBody, kinds: readonly MatchKind[]): EntityBody {
  const { email, mobile_prefix, mobile_number, ...rest } = body
  return {
    ...rest,
    ...(!kinds.includes('email') && email !== undefined && { email }),
    ...(!kinds.includes('mobile') && mobile_prefix !== undefined && { mobile_prefix }),
    ...(!kinds.includes('mobile') && mobile_number !== undefined && { mobile_number }),
  }
}
