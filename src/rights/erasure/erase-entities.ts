import { segmentsFollowerName } from '../../changes/sql.ts'
import { awaitPipelined, type Transaction } from '../../db/db.ts'
import type { Change } from '../../entities/decide/decide.ts'
import type { Profile, StoredRow } from '../../entities/entity-row.ts'
import { recordIdOf } from '../../entities/identifiers.ts'
import { eraseSearchWords } from '../../entities/indexes/search-index.ts'
import { searchFollowerName } from '../../entities/indexes/search-index-sql.ts'
import { emailKey, mobileKey } from '../../entities/match-keys.ts'
import { readRowsSql } from '../../entities/write/load-sql.ts'
import { type PlannedChange, storeChanges } from '../../entities/write/store.ts'
import { rememberNamesSql } from '../../entities/write/store-sql.ts'
import { insertFollowerSql, insertPausedFollowersSql } from '../../followers/sql.ts'
import { keepUnsealedLeaves } from '../../ledger/seal.ts'
import { followerName as ledgerFollower } from '../../ledger/sql.ts'
import { deleteObservedOfSql, followerName as observedFollower } from '../../observed/sql.ts'
import { type Definitions, peopleStackId } from '../../organizations/definitions.ts'
import { lockHead } from '../../organizations/head.ts'
import { followerName as webhookFollower } from '../../webhooks/sql.ts'
import {
  blankChangesSql,
  blankDeliveriesSql,
  blankFilledSql,
  blankMergesSql,
  blankQuotingDeliveriesSql,
  deleteAliasesSql,
  deleteAnswersSql,
  deleteLinksOfSql,
  deleteLinksToSql,
  deleteMembershipsSql,
  deleteOwnLinksSql,
  deleteResponsesSql,
  deleteToldSql,
  dropDeliveriesSql,
  eraseSaltsSql,
  insertLeavingSql,
  insertSegmentChecksSql,
  lockFollowersSql,
  readAliasesOfSql,
  readLastChangesSql,
  readLoggedIdentifiersSql,
} from './erased-tables-sql.ts'

/** An entity to erase, existing, deleted or merged. */
export type ErasureTarget = { stack_id: number; id: string }

export type ErasureOptions = {
  actor: string
  request_id: string
  /** RFC 3339, UTC, milliseconds. */
  at: string
  /** Whether the log of the entities stays for {@link blankLog}, because it is long. */
  keepsLog?: boolean
  /** Whether the links of others stay for {@link deleteLinkSet}, because there are many. */
  keepsLinks?: boolean
  /** Whether stored responses are searched. The search reads all responses of a day. */
  searchesResponses?: boolean
}

/** The identifiers that the entities ever had. `names` are external identifiers by stack. */
export type ErasedIdentifiers = {
  names: Map<number, Set<string>>
  emails: Set<string>
  mobiles: Set<string>
}

/** The number of rows that were deleted or blanked, by table. */
export type RemovedRows = Record<string, number>

export type Erased = {
  /** The entities that were erased. One that was erased before, or never existed, is not among them. */
  entities: (ErasureTarget & { version: number })[]
  identifiers: ErasedIdentifiers
  removed: RemovedRows
}

/** A range of an entity's versions: those after `after` up to `until`. */
export type LogRange = { id: string; after: number; until: number }

const allVersions = { after: 0, until: 2 ** 31 - 1 }

type LastChange = ErasureTarget & { version: number; operation: string }

/**
 * Erases entities in a transaction that has written nothing: rows, links, index keys, their log, their answers, and what stored responses and
 * deliveries have of them. The log of others has their ids alone. Logs one change `erase` for each. The transaction has locked the head.
 */
export async function eraseEntities(
  tx: Transaction,
  definitions: Definitions,
  targets: readonly ErasureTarget[],
  options: ErasureOptions,
): Promise<Erased> {
  const { organization_id } = definitions
  const { actor, request_id, at, keepsLog = false, keepsLinks = false, searchesResponses = true } = options
  const removed: RemovedRows = {}
  const changes = await readTargets(tx, definitions, targets)
  const rows = changes.flatMap(({ row }) => row ?? [])
  const entities = changes.map(({ stack_id, change: { id, version } }) => ({ stack_id, id, version }))
  const people = entities.filter(({ stack_id }) => stack_id === peopleStackId).map(({ id }) => id)
  const ids = entities.map(({ id }) => id)
  if (ids.length === 0) return { entities, identifiers: noIdentifiers(), removed }
  await lockFollowers(tx, organization_id, people.length > 0)
  const { sequence: head } = await lockHead(tx, organization_id)
  const { identifiers, texts } = await readIdentifiers(tx, organization_id, { ids, people, rows })
  const run = createCounter(tx, organization_id, removed)

  for (const id of people) await run.deliveries(await run.changes(blankFilledSql, [id]), { drops: false })
  const hasSegments = definitions.last_segment_id > 0
  if (hasSegments) await tx.query(insertSegmentChecksSql, [organization_id, ids])
  const documents = await eraseSearchWords(tx, organization_id, entities)
  if (documents > 0) removed.search_documents = documents
  await rememberErasedNames(tx, organization_id, entities, identifiers.names)
  await run.rows('links', keepsLinks ? deleteOwnLinksSql : deleteLinksOfSql, [ids])
  await run.rows('observed_keys', deleteObservedOfSql, [ids])
  if (people.length > 0) {
    await run.rows('aliases', deleteAliasesSql, [people])
    await run.rows('merges', blankMergesSql, [people])
  }
  const ranges = ids.map(id => ({ id, ...allVersions }))
  if (people.length > 0) {
    await keepUnsealedLeaves(tx, organization_id, people)
    await run.rows('ledger_entries', eraseSaltsSql, [people])
    await run.rows('consent_history', deleteAnswersSql, [people])
  }
  if (!keepsLog) await blankLog(tx, organization_id, ranges, removed)
  const searched = [...texts, ...ids, ...ids.map(recordIdOf)]
  if (searchesResponses) {
    await run.rows('idempotency_keys', deleteResponsesSql, [searched])
    await run.rows('webhook_deliveries', blankQuotingDeliveriesSql, [searched])
  }

  await storeChanges(tx, definitions, at, { actor, request_id }, changes)
  removed.entities = rows.length
  if (hasSegments && people.length > 0) await forgetSegments(tx, organization_id, { people, head }, removed)
  return { entities, identifiers, removed }
}

/** Removes which segments the people were in, and adds to `removed`. The feed has told nothing after `head`. */
async function forgetSegments(
  tx: Transaction,
  organization_id: number,
  { people, head }: { people: string[]; head: number },
  removed: RemovedRows,
) {
  const values = [organization_id, people]
  const leaving = tx.query(insertLeavingSql, values)
  const telling = tx.query<{ count: number }>(deleteToldSql, [...values, head])
  const removing = tx.query<{ count: number }>(deleteMembershipsSql, values)
  await awaitPipelined([leaving, telling, removing])
  const [[told], [members]] = [await telling, await removing]
  if (members!.count > 0) removed.segment_members = (removed.segment_members ?? 0) + members!.count
  if (told!.count > 0) removed.segment_changes = (removed.segment_changes ?? 0) + told!.count
}

/** Takes the values of a part of the log of erased entities, and the texts of its deliveries. Adds to `removed`. */
export async function blankLog(
  tx: Transaction,
  organization_id: number,
  ranges: readonly LogRange[],
  removed: RemovedRows,
): Promise<void> {
  const run = createCounter(tx, organization_id, removed)
  const parameter = JSON.stringify(ranges)
  const sequences = await run.changes(blankChangesSql, [parameter])
  await run.deliveries(sequences, { drops: true })
}

/** Deletes so many links to erased entities, and adds to `removed`. Returns whether others are left. */
export async function deleteLinkSet(
  tx: Transaction,
  organization_id: number,
  { ids, size }: { ids: readonly string[]; size: number },
  removed: RemovedRows,
): Promise<boolean> {
  const before = removed.links ?? 0
  await createCounter(tx, organization_id, removed).rows('links', deleteLinksToSql, [ids, size])
  return (removed.links ?? 0) - before === size
}

type Counted = Parameters<Transaction['query']>[0]

/** Runs statements and adds what they removed, by table. */
function createCounter(tx: Transaction, organization_id: number, removed: RemovedRows) {
  const add = (table: string, count: number) => {
    if (count > 0) removed[table] = (removed[table] ?? 0) + count
  }
  const rows = async (table: string, statement: Counted, values: unknown[]) => {
    const [row] = await tx.query<{ count: number }>(statement, [organization_id, ...values])
    add(table, row!.count)
  }
  return {
    rows,
    /** Returns the numbers of the changes that the statement blanked. */
    changes: async (statement: Counted, values: unknown[]): Promise<number[]> => {
      const [row] = await tx.query<{ sequences: number[] }>(statement, [organization_id, ...values])
      add('changes', row!.sequences.length)
      return row!.sequences
    },
    deliveries: async (sequences: number[], { drops }: { drops: boolean }) => {
      if (sequences.length === 0) return
      if (drops) await rows('webhook_deliveries', dropDeliveriesSql, [sequences])
      await rows('webhook_deliveries', blankDeliveriesSql, [sequences])
    },
  }
}

/** Returns the versions by id of the entities that exist. */
export async function readVersions(
  tx: Transaction,
  { organization_id }: Definitions,
  targets: readonly ErasureTarget[],
): Promise<ReadonlyMap<string, number>> {
  const rows = await tx.query<StoredRow>(readRowsSql, [organization_id, JSON.stringify(targets)])
  return new Map(rows.map(({ id, version }) => [id, version]))
}

/** Reads the rows, and builds the changes. An entity without a row was deleted or merged; the log tells its version. */
async function readTargets(
  tx: Transaction,
  { organization_id }: Definitions,
  targets: readonly ErasureTarget[],
): Promise<PlannedChange[]> {
  const rows = await tx.query<StoredRow>(readRowsSql, [organization_id, JSON.stringify(targets)])
  const rowById = new Map(rows.map(row => [row.id, row]))
  const rowless = targets.filter(({ id }) => !rowById.has(id)).map(({ id }) => id)
  const last = rowless.length === 0 ? [] : await tx.query<LastChange>(readLastChangesSql, [organization_id, rowless])
  const lastById = new Map(last.map(change => [change.id, change]))
  return targets.flatMap(({ stack_id, id }) => {
    const row = rowById.get(id)
    const previous = row ?? lastById.get(id)
    if (!previous || previous.stack_id !== stack_id || (!row && lastById.get(id)!.operation === 'erase')) return []
    return [{ stack_id, change: eraseChange(id, previous.version + 1, row), row }]
  })
}

/** The log entry of an erasure has no values. */
function eraseChange(id: string, version: number, row: StoredRow | undefined): Change {
  return {
    operation: 'erase',
    id,
    external_id: null,
    version,
    columns: {},
    answers: [],
    before: null,
    after: {},
    changed: true,
    set: {},
    removed: Object.keys(row?.attributes ?? {}),
    relinked: [],
    missing: [],
    faults: [],
    keyCount: 0,
    isTooLarge: false,
  }
}

/**
 * Keeps other erasures of the organization from changing rows of the log at the same time, and the followers that have read answers, changes and rows from storing anything of them after the erasure: the ledger would store
 * a salt, a webhook the response of a receiver, the segments a member, the search the words, and the counts of observed keys a key
 * that nobody else has.
 */
export async function lockFollowers(tx: Transaction, organization_id: number, hasPeople: boolean): Promise<void> {
  if (hasPeople) await tx.query(insertFollowerSql, [organization_id, ledgerFollower])
  const onDemand = [observedFollower, searchFollowerName]
  await tx.query(insertPausedFollowersSql, [organization_id, onDemand])
  const names = [...onDemand, webhookFollower, ...(hasPeople ? [ledgerFollower, segmentsFollowerName] : [])]
  await tx.query(lockFollowersSql, [organization_id, names])
}

const noIdentifiers = (): ErasedIdentifiers => ({ names: new Map(), emails: new Set(), mobiles: new Set() })

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
async function readIdentifiers(
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

/**
 * Remembers the versions of the names that erased entities had, because their changes no longer tell them. The names of a stack share the
 * highest version.
 */
async function rememberErasedNames(
  tx: Transaction,
  organization_id: number,
  entities: readonly { stack_id: number; version: number }[],
  namesByStack: ReadonlyMap<number, ReadonlySet<string>>,
): Promise<void> {
  const highest = new Map<number, number>()
  for (const { stack_id, version } of entities) highest.set(stack_id, Math.max(highest.get(stack_id) ?? 0, version))
  const names = [...namesByStack].flatMap(([stack_id, held]) =>
    [...held].map(external_id => ({ stack_id, external_id, version: highest.get(stack_id) ?? 0 })),
  )
  if (names.length > 0) await tx.query(rememberNamesSql, [organization_id, JSON.stringify(names)])
}
