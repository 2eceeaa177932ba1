import { type Context, contextOf, type Reading, type Within } from '../../db/context.ts'
import type { Database } from '../../db/db.ts'
import { insertTombstonesSql } from '../../entities/write/store/store-sql.ts'
import { type ErasureFacts, readCertificate, signCertificate } from '../../ledger/certificate.ts'
import { readLedgerSigner } from '../../ledger/keys.ts'
import { readOrigin } from '../../ledger/ledger.ts'
import { type Author, changeOrganization, type Locked } from '../../organizations/change-organization.ts'
import { ownerOf, peopleStackId, reloadDefinitions } from '../../organizations/definitions.ts'
import type { Signal } from '../../process/signal.ts'
import type { Written } from '../../route/call.ts'
import { buildOtherVersionRefusal, type IfMatch, meetsIfMatch } from '../../route/entity-tag.ts'
import { Fault } from '../../values/errors.ts'
import { recordIdOf } from '../../values/formats.ts'
import { throwIfHeld } from '../holds/holds.ts'
import {
  addCount,
  type Erased,
  type ErasureTarget,
  eraseEntities,
  eraseRows,
  lockFollowers,
  planErasures,
  type RemovedRows,
} from './erase-entities.ts'
import { deleteLinkSetSql, measureSql, readEndOfSetSql } from './erased-tables-sql.ts'
import {
  claimErasureSql,
  completeErasureSql,
  findToEraseSql,
  insertErasuresSql,
  listUnfinishedOrganizationsSql,
  nextErasureIdSql,
  readErasedWithSql,
  readErasureOfSql,
  readErasureSql,
  readLinkedRecordsSql,
  readMergedSql,
  renewDefinitionsSql,
  storeProgressSql,
} from './erasure-sql.ts'

/** The places that kith does not erase, as every certificate names them. */
export const notRemoved = [
  'the write-ahead log and dead row versions of PostgreSQL, until it reuses their space, and its statistics, until the next ANALYZE',
  'backups, dumps, archives and replicas of the database',
  'what webhooks have delivered, what exports, feeds and reads have returned, and what their receivers hold',
  'the log files of proxies, which may have paths of requests, and of PostgreSQL, which may quote statements',
  'the plain values of other entities, such as a name in a note',
]

/**
 * The log and the links to the person beyond these numbers are erased in later transactions. The first transaction
 * locks the head, which delays other writes by a tenth of a second. The later ones do not lock it.
 */
const maxAtOnce = { changes: 5_000, links: 5_000 }
const changesPerSet = 20_000
const linksPerSet = 20_000

type ErasureRequest = {
  /**
   * The person, or a function that finds it under the lock of the head, because a rename, a merge or an unmerge may
   * give the name to another person. Undefined if there is no person to erase.
   */
  person_id: string | ((locked: Locked) => Promise<string | undefined>)
  reason: string
  records: 'keep' | 'linked'
  /** Further entities to erase, linked or not. */
  also?: readonly ErasureTarget[]
  dry_run?: boolean
  /** Whether to erase the person despite a legal hold. Without it, the erasure of a held person is refused. */
  override_hold?: boolean
  /** Stores further rows in the transaction of the erasure. */
  onErased?(locked: Locked): Promise<unknown>
  /** The versions that the person may have, or `*` for any. A deleted or erased person has no version. */
  if_match?: IfMatch
} & Author

/** The organization, and the beginning of its ledger's origin. */
export type ErasureContext = Context & {
  originName: string
  signal?: Signal | undefined
  /** Receives the number of a change up to which the log includes the erasure. */
  written?: Written
  /** The number of changes beyond which the log is erased in several transactions. Tests set it. */
  maxChanges?: number
  /** The number of links to the person that one transaction deletes. Tests set it. */
  maxLinks?: number
  /** An erasure in several transactions starts no further one after this time. Undefined means no limit. */
  maxMs?: number
}

/** `certificate` is null in a dry run, and until the log and the links have been erased. */
export type ErasureResult = {
  certificate: string | null
  completed: boolean
  dry_run: boolean
  erasure: ErasureFacts | (Omit<ErasureFacts, 'id'> & { id: null })
}

/** The row of an erasure. `removed.pending` is the state of an incomplete one. */
export type ErasureRow = {
  id: number
  stack_id: number
  entity_id: string
  at: string
  actor: string
  reason: string
  records: 'keep' | 'linked'
  completed_at: string | null
  removed: RemovedRows | { pending: Pending }
  certificate: string | null
  /** The number of the newest change. Set when one erasure is read. */
  sequence?: number
}

/**
 * The state of an unfinished erasure: whether links to the entities are left, the log that is left, and the facts for
 * its certificate. `next` is the index of the entity whose log is left after the version `after`.
 */
type Pending = { facts: ErasureFacts; entities: string[]; next: number; after: number; hasLinks: boolean }

/**
 * Erases a person and the people who were merged into it. For a person who was erased before, returns the same
 * certificate. Returns undefined if there is no data of the person. Throws a Fault of 412 if the version of the person
 * does not meet `if_match`. Changes beyond 5,000 and links of others beyond 5,000 are erased in several transactions.
 * If `maxMs` or the signal stops them, {@link completeErasures} or the next request continues.
 */
export async function erasePerson(
  context: ErasureContext,
  request: ErasureRequest,
): Promise<ErasureResult | undefined> {
  const { db, organization_id, signal, written, maxMs = Number.POSITIVE_INFINITY } = context
  const endMs = performance.now() + maxMs
  const sign = await prepareSigning(context)
  let person_id: string | undefined
  const { actor, request_id, dry_run: isDryRun = false } = request
  const call = { actor, request_id, signal, isDryRun }
  const erased = await changeOrganization<ErasureFacts | undefined>(context, call, async locked => {
    person_id = typeof request.person_id === 'string' ? request.person_id : await request.person_id(locked)
    const facts =
      person_id === undefined ? undefined : await eraseInTransaction(locked, context, { ...request, person_id }, sign)
    if (facts) await request.onErased?.(locked)
    return { ...(facts === undefined && { changes: [] }), result: facts }
  })
  if (erased && isDryRun)
    return { certificate: null, completed: false, dry_run: true, erasure: { ...erased, id: null } }
  // The version informs the other processes.
  if (erased) await reloadDefinitions(context, signal)
  const [row] = erased
    ? await db.query<ErasureRow>(readErasureSql, [organization_id, erased.id], signal)
    : await db.query<ErasureRow>(readErasureOfSql, [organization_id, person_id ?? null], signal)
  if (!row) return undefined
  if (written) written.sequence = row.sequence!
  return row.completed_at === null ? continueErasure(context, row, sign, endMs) : resultOf(row)
}

/** Returns the person that an identifier leads to, see {@link findToEraseSql}. Undefined if there never was one. */
export async function findToErase(
  { db, organization_id }: Reading,
  { by, identifier }: { by: keyof typeof findToEraseSql; identifier: string },
): Promise<string | undefined> {
  const [found] = await db.query<{ id: string | null }>(findToEraseSql[by], [organization_id, identifier])
  return found!.id ?? undefined
}

/** The result of an erasure. */
function resultOf({ certificate, removed }: ErasureRow): ErasureResult {
  const erasure =
    certificate === null ? (removed as { pending: Pending }).pending.facts : readCertificate(certificate).erasure
  return { certificate, completed: certificate !== null, dry_run: false, erasure }
}

type Signing = (facts: ErasureFacts) => Promise<string>

async function prepareSigning(context: ErasureContext): Promise<Signing> {
  const { db, originName, signal } = context
  const signer = await readLedgerSigner(db, signal)
  const origin = await readOrigin(context, originName, signal)
  return facts => signCertificate(origin, facts, signer)
}

type FoundRequest = Omit<ErasureRequest, 'person_id'> & { person_id: string }

/** Returns undefined if the person was erased before or never existed. */
async function eraseInTransaction(
  locked: Locked,
  { maxChanges = maxAtOnce.changes, maxLinks = maxAtOnce.links }: ErasureContext,
  request: FoundRequest,
  sign: Signing,
): Promise<ErasureFacts | undefined> {
  const { tx, organization_id, definitions, at } = locked
  const { person_id, reason, records, actor, request_id } = request
  const { also = [], dry_run = false, if_match = null, override_hold = false } = request
  const merged = await tx.query<{ id: string }>(readMergedSql, [organization_id, person_id])
  const people = [person_id, ...merged.map(({ id }) => id)]
  if (!override_hold) await throwIfHeld(locked, people, at)
  const linked =
    records === 'linked' ? await tx.query<ErasureTarget>(readLinkedRecordsSql, [organization_id, people]) : []
  const hasNotes = definitions.stacks.some(({ erased_with }) => erased_with !== null)
  const notes = hasNotes ? await tx.query<ErasureTarget>(readErasedWithSql, [organization_id, people]) : []
  const named = [...people.map(id => ({ stack_id: peopleStackId, id })), ...linked, ...notes, ...also]
  const targets = [...new Map(named.map(target => [target.id, target])).values()]
  const planned = await planErasures(locked, targets)
  const version = planned.find(({ change }) => change.id === person_id)?.row?.version
  if (!meetsIfMatch(if_match, version)) throwOtherVersion(if_match, version !== undefined)
  const measured = [targets.map(({ id }) => id), maxChanges + 1, maxLinks + 1]
  const [size] = await tx.query<{ changes: number; links: number }>(measureSql, [organization_id, ...measured])
  const [keepsLog, keepsLinks] = [size!.changes > maxChanges, size!.links > maxLinks]
  const isComplete = !keepsLog && !keepsLinks
  const erased = await eraseEntities(locked, planned, { actor, request_id, keepsLog, keepsLinks })
  const { entities } = erased
  // A backup may contain people who were merged later, but not the person itself.
  const principal = entities.find(({ id }) => id === person_id) ?? entities[0]
  if (!principal) return undefined
  const facts = await buildFacts(locked, request, erased, principal)
  if (dry_run) return facts
  const next = keepsLog ? 0 : entities.length
  const pending: Pending = { facts, entities: entities.map(({ id }) => id), next, after: 0, hasLinks: keepsLinks }
  const state = isComplete
    ? { removed: facts.removed, certificate: await sign(facts) }
    : { removed: { pending }, certificate: null }
  // The row of the person is the erasure. The rows of the others only record that they were erased with it.
  const ordered = [principal, ...entities.filter(({ id }) => id !== principal.id)]
  const rows = ordered.map(({ stack_id, id }, index) => ({
    ...{ id: facts.id + index, stack_id, entity_id: id },
    ...(index === 0 ? state : { removed: {}, certificate: null }),
  }))
  const stored = [JSON.stringify(rows), at, actor, request_id, reason, records, isComplete]
  await tx.query(insertErasuresSql, [organization_id, ...stored])
  await tx.query(renewDefinitionsSql, [organization_id])
  return facts
}

function throwOtherVersion(if_match: IfMatch, exists: boolean): never {
  const message = exists
    ? 'The version of the person does not match If-Match. Read the person and retry with its ETag.'
    : 'The person is deleted or erased, so no If-Match matches. Send the request without If-Match.'
  throw new Fault(buildOtherVersionRefusal(exists ? if_match : null, message))
}

/** Stores the tombstones, and returns the facts for the certificate. */
async function buildFacts(
  { tx, organization_id, definitions, at }: Locked,
  { person_id, reason, records }: FoundRequest,
  { entities, identifiers, removed }: Erased,
  principal: ErasureTarget,
): Promise<ErasureFacts> {
  const [next] = await tx.query<{ id: number }>(nextErasureIdSql, [organization_id])
  const tombstones = await tx.query(insertTombstonesSql, [organization_id, [...identifiers.values], next!.id])
  const isPerson = ({ stack_id }: ErasureTarget) => stack_id === peopleStackId
  return {
    id: next!.id,
    at,
    person_id: isPerson(principal) ? principal.id : person_id,
    merged_ids: entities.filter(entity => isPerson(entity) && entity.id !== principal.id).map(({ id }) => id),
    record_ids: entities
      .filter(entity => !isPerson(entity))
      .map(({ stack_id, id }) => ({ stack_key: ownerOf(definitions, stack_id), record_id: recordIdOf(id) })),
    reason,
    records,
    removed: sorted(removed),
    tombstones: tombstones.length,
    not_removed: notRemoved,
  }
}

const sorted = (removed: RemovedRows): RemovedRows => Object.fromEntries(Object.entries(removed).sort())

/**
 * Continues an unfinished erasure until it is complete, the time is over or the signal aborts. Erases at least one set.
 */
async function continueErasure(
  context: ErasureContext,
  row: ErasureRow,
  sign: Signing,
  endMs: number,
): Promise<ErasureResult> {
  const { db, organization_id, signal } = context
  for (;;) {
    const isOver = await eraseSet(context, row.id, sign, signal)
    const [current] = await db.query<ErasureRow>(readErasureSql, [organization_id, row.id], signal)
    // Another process that has locked the erasure continues it.
    if (isOver || current!.completed_at !== null || performance.now() >= endMs) return resultOf(current!)
  }
}

/** Erases one set of the remaining rows of an erasure. Returns whether this process has nothing left to do. */
function eraseSet(
  { db, organization_id, maxLinks = linksPerSet }: Context & Pick<ErasureContext, 'maxLinks'>,
  erasure: number | null,
  sign: Signing,
  signal: Signal | undefined,
): Promise<boolean> {
  return db.transaction(
    async tx => {
      const [row] = await tx.query<ErasureRow>(claimErasureSql, [organization_id, erasure])
      if (!row) return true
      const { pending } = row.removed as { pending: Pending }
      const { facts, entities, hasLinks } = pending
      if (!hasLinks && entities[pending.next] === undefined) {
        const certificate = await sign(facts)
        const values = [row.id, new Date().toISOString(), JSON.stringify(facts.removed), certificate, entities]
        await tx.query(completeErasureSql, [organization_id, ...values])
        return true
      }
      await lockFollowers({ tx, organization_id }, false)
      const removed = { ...facts.removed }
      const left = hasLinks
        ? { hasLinks: await deleteLinkSet({ tx, organization_id }, { entities, maxLinks }, removed) }
        : await blankLogSet({ tx, organization_id }, pending, removed)
      const progress: Pending = { ...pending, facts: { ...facts, removed: sorted(removed) }, ...left }
      await tx.query(storeProgressSql, [organization_id, row.id, JSON.stringify({ pending: progress })])
      return false
    },
    { signal },
  )
}

/** Deletes one set of the links to the entities, and adds to `removed`. Returns whether links are left. */
async function deleteLinkSet(
  { tx, organization_id }: Within,
  { entities, maxLinks }: { entities: string[]; maxLinks: number },
  removed: RemovedRows,
): Promise<boolean> {
  const [deleted] = await tx.query<{ count: number }>(deleteLinkSetSql, [organization_id, entities, maxLinks])
  addCount(removed, 'links', deleted!.count)
  return deleted!.count === maxLinks
}

/** Erases one set of the entities' own log, and adds to `removed`. Returns where the log continues. */
async function blankLogSet(
  within: Within,
  { entities, next, after }: Pending,
  removed: RemovedRows,
): Promise<Pick<Pending, 'next' | 'after'>> {
  const { tx, organization_id } = within
  const id = entities[next]!
  const [end] = await tx.query<{ version: number | null }>(readEndOfSetSql, [organization_id, id, after, changesPerSet])
  const until = end!.version
  if (until === null) return { next: next + 1, after: 0 }
  await eraseRows(within, { log: [JSON.stringify([{ id, after, until }])] }, removed)
  return { next, after: until }
}

/** Continues the erasures of all organizations that a process or a deadline left unfinished. */
export async function completeErasures(
  db: Database,
  originName: string,
  { signal }: { signal?: Signal } = {},
): Promise<void> {
  const organizations = await db.query<{ organization_id: number }>(listUnfinishedOrganizationsSql, [])
  for (const { organization_id } of organizations) {
    const context = contextOf(db, organization_id)
    const sign = await prepareSigning({ ...context, originName })
    while (!signal?.aborted && !(await eraseSet(context, null, sign, undefined)));
  }
}
