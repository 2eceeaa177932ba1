import type { Database, Transaction } from '../../db/db.ts'
import { Fault, type Refusal } from '../../errors.ts'
import type { Target } from '../entity-row.ts'
import { fillingRefusal } from '../match-keys.ts'
import type { MatchKind } from '../write-request.ts'
import { ambiguityRefusal, type MatchPlan, maxCandidates, missingKeysRefusal } from './match-plan.ts'
import { findMatchesSql, readIsFillingSql } from './match-sql.ts'
import { type Item, referenceKey } from './plan-write.ts'

/** A person who has a key. */
type Match = Target & { kind: MatchKind }
type MatchRow = Match & { number: number }

/** The items of a set, addressed to the people whom they recognize, and the refused ones. */
export type MatchedItems = {
  items: Item[]
  refused: Map<Item, Refusal>
}

/**
 * Match stage: finds the people whom writes with `match` recognize. Issues no statement for items without `match`. Items that may
 * concern the same person as an earlier one are left out, and belong to a later set.
 */
export async function matchItems(tx: Transaction, organization_id: number, items: Item[]): Promise<MatchedItems> {
  const refused = new Map<Item, Refusal>()
  for (const item of items)
    if (item.match?.tried.length === 0) refused.set(item, missingKeysRefusal(item.write.match!, item.write.body))
  const rest = items.filter(item => !refused.has(item))
  const { matches, isFilling } = await findMatches(tx, organization_id, rest)
  const resolved: Item[] = []
  for (const item of takeUnrelated(rest, matches)) {
    const recognition = item.match && recognize(item.match, matches.get(item) ?? [], isFilling)
    if (!recognition) resolved.push(item)
    else if ('refusal' in recognition) refused.set(item, recognition.refusal)
    else resolved.push(addressTo(item, recognition.match))
  }
  return { items: resolved, refused }
}

/**
 * Returns the items without those that may concern the same person as an earlier item with `match`: they share a key or a name, or
 * anybody whom one of their keys finds. Only after the earlier one is stored can such an item find its person. The imports that link
 * to its name are left out too, because it may become an alias, and so are those that touch unique values after one that does. Items of
 * a batch that follow a left out one are left out as well, because they may address its person by another identifier.
 */
function takeUnrelated(items: Item[], matches: ReadonlyMap<Item, Match[]>): Item[] {
  const touched = new Set<string>()
  const leftOut = new Set<string>()
  const unrelated: Item[] = []
  let leavesOutUnique = false
  for (const item of items) {
    const { match, name, plan } = item
    const followsUnique = leavesOutUnique && plan.uniques !== undefined
    const own = match ? [...match.names, ...(matches.get(item) ?? []).map(({ id }) => id)] : []
    if (match && name !== undefined) own.push(name)
    if (!own.some(key => touched.has(key)) && !linksToAny(item, leftOut) && !followsUnique) unrelated.push(item)
    else if (item.write.operation !== 'import') break
    else {
      if (name !== undefined) leftOut.add(name)
      leavesOutUnique ||= plan.uniques !== undefined
    }
    for (const key of own) touched.add(key)
  }
  return unrelated
}

function linksToAny({ plan }: Item, names: ReadonlySet<string>): boolean {
  if (names.size === 0) return false
  return [...plan.links.values()].some(planned =>
    planned.references.some(reference => names.has(referenceKey(reference))),
  )
}

/** Reads the ids of the people whom the keys of items with `match` find now. Issues no statement for items without. */
export async function readRecognized(
  db: Pick<Database, 'query'>,
  organization_id: number,
  items: Item[],
): Promise<string[]> {
  const { matches } = await findMatches(db, organization_id, items)
  return [...matches.values()].flatMap(found => found.map(({ id }) => id))
}

async function findMatches(tx: Pick<Transaction, 'query'>, organization_id: number, items: Item[]) {
  const keys = items.flatMap(({ match }, number) =>
    match ? [{ number, ...Object.fromEntries(match.tried.map(({ kind, key }) => [kind, key])) }] : [],
  )
  if (keys.length === 0) return { matches: new Map<Item, Match[]>(), isFilling: false }
  const values = [organization_id, JSON.stringify(keys), maxCandidates + 1]
  const rows = await tx.query<MatchRow>(findMatchesSql, values)
  const matches = new Map<Item, Match[]>()
  for (const { number, ...match } of rows)
    if (number >= 0) matches.set(items[number]!, [...(matches.get(items[number]!) ?? []), match])
  return { matches, isFilling: rows.some(({ number }) => number < 0) }
}

type Recognition = { refusal: Refusal } | { match: Match | undefined }

/** The first key that anybody has decides. */
function recognize({ tried }: MatchPlan, found: readonly Match[], isFilling: boolean): Recognition {
  for (const { kind } of tried) {
    if (isFilling && kind !== 'external_id') return { refusal: fillingRefusal() }
    const candidates = found.filter(candidate => candidate.kind === kind)
    if (candidates.length > 1) return { refusal: ambiguityRefusal(kind, candidates) }
    if (candidates[0]) return { match: candidates[0] }
  }
  return { match: undefined }
}

/** Throws the 503 of {@link fillingRefusal} while it applies. */
export async function requireKeys(db: Pick<Database, 'query'>, organization_id: number): Promise<void> {
  const [row] = await db.query<{ is_filling: boolean }>(readIsFillingSql, [organization_id])
  if (row!.is_filling) throw new Fault(fillingRefusal())
}

/**
 * Addresses an item to the person whom it recognizes by email or phone. Its external identifier is then a further one of that
 * person, or the first.
 */
function addressTo(item: Item, match: Match | undefined): Item {
  const { write } = item
  if (!match) return write.match!.includes('external_id') ? item : { ...item, write: { ...write, unrecognized: true } }
  if (match.kind === 'external_id') return item
  const { external_id, ...body } = write.body
  const addressed = { ...write, address: { id: match.id } }
  if (external_id && match.external_id === null) return { ...item, name: undefined, write: addressed }
  const isOther = external_id && external_id !== match.external_id
  return { ...item, name: undefined, write: { ...addressed, body, ...(isOther && { alias: external_id }) } }
}
