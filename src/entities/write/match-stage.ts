import { createHash } from 'node:crypto'
import { awaitPipelined, type Database, type Transaction } from '../../db/db.ts'
import { Fault, type Refusal } from '../../errors.ts'
import type { Definitions } from '../../organizations/definitions.ts'
import type { DecidedSet } from '../decide/decide-set.ts'
import type { LockedRow } from '../entity-row.ts'
import { fillingRefusal } from '../match-keys.ts'
import type { MatchKind } from '../write-request.ts'
import { ambiguityRefusal, type MatchPlan, maxCandidates, missingKeysRefusal } from './match-plan.ts'
import { checkMatchesSql, findMatchesSql, lockMatchKeysSql, readIsFillingSql } from './match-sql.ts'
import { type Item, referenceKey } from './plan-write.ts'
import { LostRace } from './read-stage.ts'
import { DefinitionsChanged } from './store-stage.ts'

/** A person who has a key, with the fields that the keys follow from. */
type Match = Pick<LockedRow, 'id' | 'external_id' | 'email' | 'mobile_prefix' | 'mobile_number'> & { kind: MatchKind }
type MatchRow = Match & { number: number }

/** The items of a set, addressed to the people whom they recognize, and the refused ones. */
export type MatchedItems = {
  items: Item[]
  refused: Map<Item, Refusal>
  /** Throws LostRace if a locked row is not the person who was recognized. */
  check(rows: ReadonlyMap<Item, LockedRow>): void
}

/**
 * Match stage: finds the people whom writes with `match` recognize. The emails and phones of a small set are locked, so of two
 * writes with a new email, the second one finds the person whom the first one creates. {@link checkMatches} finds what the locks
 * do not cover. Issues no statement for items without `match`. Items that may concern the same person as an earlier one are left
 * out, and belong to a later set.
 */
export async function matchItems(tx: Transaction, definitions: Definitions, items: Item[]): Promise<MatchedItems> {
  const refused = new Map<Item, Refusal>()
  for (const item of items)
    if (item.match?.tried.length === 0) refused.set(item, missingKeysRefusal(item.write.match!, item.write.body))
  const rest = items.filter(item => !refused.has(item))
  const locking = lockMatchKeys(tx, definitions.organization_id, rest)
  const finding = findMatches(tx, definitions.organization_id, rest)
  await awaitPipelined([locking, finding])
  const { matches, isFilling } = await finding
  const resolved: Item[] = []
  const recognized: Recognized[] = []
  for (const item of takeUnrelated(rest, matches)) {
    const recognition = item.match && recognize(item.match, matches.get(item) ?? [], isFilling)
    if (!recognition) resolved.push(item)
    else if ('refusal' in recognition) refused.set(item, recognition.refusal)
    else {
      const addressed = addressTo({ ...item, match: triedUntil(item.match!, recognition.match) }, recognition.match)
      resolved.push(addressed)
      recognized.push({ item: addressed, match: recognition.match })
    }
  }
  return { items: resolved, refused, check: rows => checkRecognized(definitions, recognized, rows) }
}

/** An item with the person whom it recognizes, if there is one. */
type Recognized = { item: Item; match: Match | undefined }

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

/** A set with more keys locks none, because the locks of PostgreSQL are limited. It is decided again after a conflict. */
const maxLockedKeys = 64

/** Locks the emails and phones of writes with `match`, before any row. All transactions lock in the same order. */
async function lockMatchKeys(tx: Transaction, organization_id: number, items: readonly Item[]): Promise<void> {
  const names = new Set(items.flatMap(({ match }) => match?.names ?? []))
  if (names.size === 0 || names.size > maxLockedKeys) return
  const numbers = [...names].map(name => lockNumberOf(organization_id, name)).sort((a, b) => (a < b ? -1 : 1))
  await tx.query(lockMatchKeysSql, [organization_id, numbers.map(String)])
}

const lockNumberOf = (organization_id: number, name: string): bigint =>
  createHash('sha256').update(`match\n${organization_id}\n${name}`).digest().readBigInt64BE()

/** The keys that decided, or that nobody had. */
function triedUntil(plan: MatchPlan, match: Match | undefined): MatchPlan {
  const index = plan.tried.findIndex(({ kind }) => kind === match?.kind)
  return index === -1 ? plan : { ...plan, tried: plan.tried.slice(0, index + 1) }
}

/**
 * Fails the transaction after apply if a concurrent write gave somebody else one of the keys that decided. It would have been found,
 * so the set is decided again.
 */
export function checkMatches(tx: Transaction, { definitions, accepted }: DecidedSet): Promise<unknown>[] {
  const keys = accepted.flatMap(({ item: { match }, change }) =>
    match && match.names.length > 0
      ? [{ id: change.id, ...Object.fromEntries(match.tried.map(({ kind, key }) => [kind, key])) }]
      : [],
  )
  return keys.length === 0 ? [] : [tx.query(checkMatchesSql, [definitions.organization_id, JSON.stringify(keys)])]
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

function checkRecognized(
  { has_aliases }: Definitions,
  recognized: readonly Recognized[],
  rows: ReadonlyMap<Item, LockedRow>,
): void {
  for (const { item, match } of recognized) {
    if (isStill(match, item, rows.get(item))) continue
    // The lock stage follows aliases only if the definitions say that there are some.
    if (match?.kind === 'external_id' && !has_aliases) throw new DefinitionsChanged('an alias is new')
    throw new LostRace(lostMessage)
  }
}

const lostMessage = 'the person whom a write recognized changed while it waited for the lock'

/** Whether the locked row is the person who was found by the key, with the same values. */
function isStill(match: Match | undefined, { write }: Item, row: LockedRow | undefined): boolean {
  if (!match) return row === undefined || write.unrecognized === true
  if (!row) return false
  if (match.kind === 'external_id') return row.id === match.id
  const fields = ['id', 'external_id', ...(match.kind === 'email' ? emailFields : mobileFields)] as const
  return fields.every(field => row[field] === match[field])
}

const emailFields = ['email'] as const
const mobileFields = ['mobile_prefix', 'mobile_number'] as const
