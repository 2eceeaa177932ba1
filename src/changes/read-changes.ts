import type { Context, Reading } from '../db/context.ts'
import { perDatabase } from '../db/per-database.ts'
import type { Operation } from '../organizations/logged-changes.ts'
import { yieldIfDue } from '../process/event-loop.ts'
import { FairPool } from '../process/fair-pool.ts'
import type { Signal } from '../process/signal.ts'
import { createRefusal, Fault, type Refusal, refuse, retryInASecond } from '../values/errors.ts'
import { type ChangePage, type LoggedChange, parseChanges, type ReadChanges, readNamed } from './change-json.ts'
import { filterValuesOf, type Selection } from './selection.ts'
import {
  findFirstBearerSql,
  readChangesOfSql,
  readChangesSql,
  readHeadSql,
  readIndexSql,
  readSegmentHeadSql,
  readSequenceAtSql,
} from './sql.ts'

/**
 * The newest number of an organization's log, and the id of its numbering. If segments are selected, `head` is the
 * number up to which they are known, and `newest` the newest number.
 */
export type Head = { head: number; log_id: string; newest?: number }

/**
 * The changes of a range of numbers that are in a selection. `last` is the number up to which the statement has read.
 * `isBounded`: the statement ended because it had tested the maximum number of changes.
 */
export type LineRange = Head & { read: ReadChanges; last: number; isBounded: boolean }

export type ChangeRange = Head & { changes: LoggedChange[]; last: number; isBounded: boolean }

/** One statement scans at most this many changes, with any filter. That takes PostgreSQL 7 ms. */
const maxScanned = 20_000

/**
 * The maximum number of concurrent statements of an organization's feeds. The rest of its share of the connections
 * stays free for its other requests.
 */
const maxConcurrent = 2
const reads = perDatabase(() => new FairPool({ share: maxConcurrent }))

export type RangeRequest = {
  after: number
  /** The last number to read; the default is the head. */
  until?: number
  selection: Selection
  limit: number
  /** The range ends after the change with which it reaches this size. */
  maxBytes: number
}

/** Reads the next range of a log: up to a limit of changes, of bytes or of scanned changes. */
export async function readRange(context: Context, request: RangeRequest, signal?: Signal): Promise<ChangeRange> {
  const { read, ...range } = await readLines(context, request, signal)
  await yieldIfDue()
  return { ...range, changes: parseChanges(read) }
}

/** As {@link readRange}, without parsing the changes. */
export async function readLines(
  context: Context,
  { after, until = Number.MAX_SAFE_INTEGER, selection, limit, maxBytes }: RangeRequest,
  signal?: Signal,
): Promise<LineRange> {
  const { db, organization_id } = context
  const index = indexOf(selection)
  const statement = index ? readIndexSql[index] : readChangesSql
  const end = index ? until : Math.min(until, after + maxScanned)
  const values = [organization_id, after, end, limit, maxBytes, ...filterValuesOf(selection)]
  const { page, read } = await reads(db).run(organization_id, signal, async () => {
    const [row] = await db.query<Head & ChangePage & { cut?: number | null; since?: number | null }>(
      statement,
      values,
      signal,
    )
    const page = row ?? throwMissing()
    return { page, read: await readNamed(context, page, { form: selection.links, signal }) }
  })
  const { head, log_id, newest, matched, count, last, cut, since } = page
  if (selection.segments && since !== selection.segments.since) throw new Fault(computingRefusal())
  const isCut = matched === limit || count < matched
  const scannedUntil = Math.max(after, Math.min(cut ?? end, end, head))
  return {
    head,
    log_id,
    ...(newest !== undefined && { newest }),
    last: isCut ? last! : scannedUntil,
    isBounded: !isCut && scannedUntil < Math.min(until, head),
    read,
  }
}

/** The index that has all changes of a selection, and few others. */
function indexOf({ subjects, operations, segments, entity_ids }: Selection): keyof typeof readIndexSql | undefined {
  if (segments) return 'segments'
  if (entity_ids) return 'entities'
  if (!subjects.includes('person') && !subjects.includes('record')) return 'definitions'
  return operations?.every(isRare) ? 'rare operations' : undefined
}

const isRare = (operation: Operation) => operation !== 'create' && operation !== 'update'

/**
 * Reads the changes with these numbers, in their order, until their sizes add up to the limit. Returns at least one
 * change, if any exists.
 */
export async function readChangesOf(context: Context, sequences: number[], maxBytes: number): Promise<LoggedChange[]> {
  const { db, organization_id } = context
  const [page] = await db.query<ChangePage>(readChangesOfSql, [organization_id, sequences, maxBytes])
  return parseChanges(await readNamed(context, page!))
}

export async function readHead(
  { db, organization_id }: Context,
  { segments }: Pick<Selection, 'segments'>,
  signal?: Signal,
): Promise<Head> {
  const statement = segments ? readSegmentHeadSql : readHeadSql
  const [row] = await db.query<Omit<Head, 'head'> & { sequence: number }>(statement, [organization_id], signal)
  const { sequence, log_id, newest = sequence } = row ?? throwMissing()
  return { head: sequence, log_id, newest }
}

/** Reads the highest number of a change whose time is not after `at`, RFC 3339 in UTC. Returns 0 if there is none. */
export async function readSequenceAt({ db: reader, organization_id }: Reading, at: string): Promise<number> {
  const [found] = await reader.query<{ sequence: number }>(readSequenceAtSql, [organization_id, at])
  return found?.sequence ?? 0
}

/** The refusal of a request that needs the members of a segment while they are computed. */
export const computingRefusal = (): Refusal =>
  createRefusal(
    'operation_failed',
    'The people of the segment are being computed. Retry after 1 second.',
    retryInASecond,
  )

const throwMissing = () => refuse('unauthorized', 'The organization of the token was deleted.')

/** The person whose log has the beginning of an alias's past, before any merge. Undefined if the name is no alias. */
export async function findFirstBearer(
  { db: reader, organization_id }: Reading,
  alias: string,
): Promise<string | undefined> {
  const [first] = await reader.query<{ id: string }>(findFirstBearerSql, [organization_id, alias])
  return first?.id
}
