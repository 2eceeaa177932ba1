import { readHeadSql, segmentsFollowerName } from '../changes/sql.ts'
import type { Transaction } from '../db/db.ts'
import { Fault } from '../errors.ts'
import type { Condition } from '../filters/grammar.ts'
import {
  hashOfCondition,
  type Matches,
  type RelationshipLevel,
  readMatchesOf,
  readNextMatches,
  relationshipLevels,
} from '../filters/membership.ts'
import { parseFilter } from '../filters/parse.ts'
import type { Follower, Progress, Task } from '../followers/follower.ts'
import { currentDefinitions, type Definitions, peopleStackId } from '../organizations/definitions.ts'
import { type Affected, affectedPeople, type Batch, defaultSourcesPerRead, readBatch } from './affected-people.ts'
import {
  beginSegmentsSql,
  deleteChecksSql,
  deleteMembersSql,
  finishSegmentsSql,
  forgetSegmentChangesSql,
  forgetSegmentMembersSql,
  insertMembersSql,
  insertSegmentChangesSql,
  markForgottenSql,
  readMembersBetweenSql,
  readMembershipsSql,
  readSegmentStatesSql,
} from './sql.ts'

export type SegmentOptions = {
  nowMs?: () => number
  /** One statement reads at most so many links to changed entities. */
  sourcesPerRead?: number
}

/** The pause between two runs for an organization: it limits what the follower costs, and how late the feed is. */
const pauseMs = 250
/** The members of a new or changed segment are computed for so many people at a time. */
const peoplePerSet = 1_000
const rowsPerDeletion = 10_000
const [firstId, lastId] = ['00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff']

/**
 * The follower that keeps who is in a segment, and tells the change log who entered or left. A page of people commits together with
 * what it tells, and the last page of a batch with the position, so that the feed shows a batch as a whole.
 */
export function segmentFollower(options: SegmentOptions = {}): Follower {
  return {
    name: segmentsFollowerName,
    isForEveryOrganization: false,
    maxConcurrent: 2,
    work: task => work(task, options),
  }
}

async function work(task: Task, options: SegmentOptions): Promise<Progress> {
  const { nowMs = Date.now, sourcesPerRead = defaultSourcesPerRead } = options
  const { db, organization_id, head, signal } = task
  let sequence = task.after
  let segments: TestedSegments | undefined
  while (!signal.aborted && sequence < head) {
    const batch = await readBatch(db, organization_id, sequence, head)
    // The definitions are at least as new as the batch. So when they change, the members are computed anew before the position passes
    // the change, and every client is before the change from which on the log tells of them.
    const definitions = await currentDefinitions(db, organization_id, signal)
    if (segments?.definitions.version !== definitions.version) segments = await prepareSegments(task, definitions)
    if (!segments) break
    sequence = await followBatch(task, segments, batch, sourcesPerRead)
  }
  return signal.aborted ? { sequence } : { sequence, notBeforeMs: nowMs() + pauseMs }
}

/** The segments with valid filters. The log tells of each after the change `since`. */
type TestedSegments = {
  definitions: Definitions
  ids: number[]
  conditions: Condition[]
  levels: RelationshipLevel[]
  since: Map<number, number>
}

type Computed = { id: number; condition: Condition; hash: string }

/** All segments under the definitions. `invalid` are those whose filters the definitions no longer allow. */
type ParsedSegments = Omit<TestedSegments, 'since'> & { tested: Computed[]; invalid: number[] }

const parsedSegments = new WeakMap<Definitions, ParsedSegments>()

function parseSegments(definitions: Definitions): ParsedSegments {
  const known = parsedSegments.get(definitions)
  if (known) return known
  const tested: Computed[] = []
  const invalid: number[] = []
  for (const { id, key, filter } of definitions.segments) {
    const condition = conditionOf(filter, key, definitions)
    if (condition) tested.push({ id, condition, hash: hashOfCondition(condition, definitions) })
    else invalid.push(id)
  }
  const ids = tested.map(({ id }) => id)
  const conditions = tested.map(({ condition }) => condition)
  const levels = relationshipLevels(conditions, definitions)
  const parsed = { definitions, ids, conditions, levels, tested, invalid }
  parsedSegments.set(definitions, parsed)
  return parsed
}

type SegmentState = {
  id: number
  is_left_over: boolean
  members_condition: string | null
  since: number | null
}

/**
 * Computes the members of the segments whose filter means something else than before. Returns the segments under these definitions;
 * undefined if the signal aborted.
 */
async function prepareSegments(task: Task, definitions: Definitions): Promise<TestedSegments | undefined> {
  const { db, organization_id, signal } = task
  const states = await db.query<SegmentState>(readSegmentStatesSql, [organization_id])
  const parsed = parseSegments(definitions)
  const stateById = new Map(states.map(state => [state.id, state]))
  const isComputed = ({ id, hash }: Computed) => {
    const { since = null, members_condition = null } = stateById.get(id) ?? {}
    return since !== null && members_condition === hash
  }
  const leftOver = states.filter(({ is_left_over }) => is_left_over).map(({ id }) => id)
  if (leftOver.length > 0) await forget(task, leftOver)
  const ended = parsed.invalid.filter(id => stateById.get(id)?.since !== null)
  if (ended.length > 0) await update(task, tx => tx.query(beginSegmentsSql, [organization_id, ended]))
  const missing = parsed.tested.filter(segment => !isComputed(segment))
  if (missing.length > 0 && !(await computeMembers(task, missing, definitions))) return undefined
  if (signal.aborted) return undefined
  const known = missing.length > 0 ? await db.query<SegmentState>(readSegmentStatesSql, [organization_id]) : states
  return { ...parsed, since: new Map(known.map(({ id, since }) => [id, since ?? Number.MAX_SAFE_INTEGER])) }
}

/** The condition of a segment. Undefined if its filter is not valid any more. */
function conditionOf(filter: unknown, key: string, definitions: Definitions): Condition | undefined {
  try {
    return parseFilter(filter, definitions, peopleStackId, 'body', key).condition
  } catch (error) {
    if (error instanceof Fault) return undefined
    throw error
  }
}

/**
 * Computes who is in the segments, in sets of people. The log tells of those who enter or leave by the changes after the newest one at
 * the beginning, because the members are at least as new. Returns false if the signal aborted.
 */
async function computeMembers(task: Task, segments: Computed[], definitions: Definitions): Promise<boolean> {
  const { db, organization_id, signal } = task
  const ids = segments.map(({ id }) => id)
  const conditions = segments.map(({ condition }) => condition)
  await update(task, tx => tx.query(beginSegmentsSql, [organization_id, ids]))
  const [newest] = await db.query<{ sequence: number }>(readHeadSql, [organization_id])
  await forgetRows(task, forgetSegmentChangesSql, ids)
  for (let after = firstId; after !== lastId; ) {
    if (signal.aborted) return false
    after = await update(task, async tx => {
      const people = await readNextMatches(tx, definitions, conditions, { after, limit: peoplePerSet })
      const until = people.length < peoplePerSet ? lastId : people.at(-1)!.id
      const members = await tx.query<Membership>(readMembersBetweenSql, [organization_id, ids, after, until])
      await storeMembers(tx, organization_id, compare(ids, people, members))
      return until
    })
  }
  const stored = JSON.stringify(segments.map(({ id, hash }) => ({ id, condition: hash })))
  const values = [organization_id, stored, newest!.sequence]
  await update(task, tx => tx.query(finishSegmentsSql, values))
  return true
}

/** Runs the work in a transaction that no other process can have taken over, and that an erasure waits for. */
function update<T>({ db, hold }: Task, run: (tx: Transaction) => Promise<T>): Promise<T> {
  return db.transaction(async tx => {
    await hold(tx)
    return run(tx)
  })
}

/** Deletes what is left of deleted segments. */
async function forget(task: Task, ids: number[]): Promise<void> {
  await forgetRows(task, forgetSegmentChangesSql, ids)
  await forgetRows(task, forgetSegmentMembersSql, ids)
  if (!task.signal.aborted) await update(task, tx => tx.query(markForgottenSql, [task.organization_id, ids]))
}

async function forgetRows(task: Task, statement: typeof forgetSegmentChangesSql, ids: number[]): Promise<void> {
  const { db, organization_id, signal } = task
  for (let count = rowsPerDeletion; count === rowsPerDeletion && !signal.aborted; ) {
    const [deleted] = await db.query<{ count: number }>(statement, [organization_id, ids, rowsPerDeletion])
    count = deleted!.count
  }
}

/** Tells who entered or left by the next changes. Returns the new position. */
async function followBatch(
  task: Task,
  segments: TestedSegments,
  batch: Batch,
  sourcesPerRead: number,
): Promise<number> {
  const { db, organization_id, signal, advance } = task
  if (segments.ids.length > 0)
    for await (const page of affectedPeople(db, organization_id, batch, segments.levels, sourcesPerRead)) {
      if (signal.aborted) return task.after
      await update(task, tx => followPage(tx, segments, page))
    }
  await db.transaction(async tx => {
    await advance(tx, batch.last)
    if (batch.checked.length > 0) await tx.query(deleteChecksSql, [organization_id, batch.checked])
  })
  return batch.last
}

async function followPage(tx: Transaction, segments: TestedSegments, page: Affected[]) {
  const { definitions, ids, conditions, since } = segments
  const { organization_id } = definitions
  const causes = new Map<string, number>()
  for (const { id, cause } of page) causes.set(id, Math.max(cause, causes.get(id) ?? 0))
  const people = [...causes.keys()]
  const matches = await readMatchesOf(tx, definitions, conditions, people)
  const members = await tx.query<Membership>(readMembershipsSql, [organization_id, people])
  // The members of a segment are as new as `since`. Only later changes are told.
  const isTold = ({ segment_id, person_id }: Membership) => causes.get(person_id)! > (since.get(segment_id) ?? Infinity)
  const { entered, left } = compare(ids, matches, members)
  const differences = { entered: entered.filter(isTold), left: left.filter(isTold) }
  await storeMembers(tx, organization_id, differences)
  const told = [...differences.entered, ...differences.left]
  if (told.length > 0)
    await tx.query(insertSegmentChangesSql, [
      ...columnsOf(organization_id, told),
      told.map(({ person_id }) => causes.get(person_id)!),
      told.map((_, index) => index < differences.entered.length),
    ])
}

type Membership = { segment_id: number; person_id: string }
type Differences = { entered: Membership[]; left: Membership[] }

/** Compares who satisfies the conditions of the segments with who is a member. A person who does not exist satisfies none. */
function compare(ids: readonly number[], people: readonly Matches[], members: readonly Membership[]): Differences {
  const keyOf = ({ segment_id, person_id }: Membership) => `${segment_id} ${person_id}`
  const before = new Set(members.map(keyOf))
  const now = new Set<string>()
  const entered: Membership[] = []
  for (const { id: person_id, matches } of people)
    for (const [index, segment_id] of ids.entries()) {
      if (!matches[index]) continue
      const membership = { segment_id, person_id }
      now.add(keyOf(membership))
      if (!before.has(keyOf(membership))) entered.push(membership)
    }
  return { entered, left: members.filter(membership => !now.has(keyOf(membership))) }
}

async function storeMembers(tx: Transaction, organization_id: number, { entered, left }: Differences): Promise<void> {
  if (entered.length > 0) await tx.query(insertMembersSql, columnsOf(organization_id, entered))
  if (left.length > 0) await tx.query(deleteMembersSql, columnsOf(organization_id, left))
}

const columnsOf = (organization_id: number, memberships: readonly Membership[]) => [
  organization_id,
  memberships.map(({ segment_id }) => segment_id),
  memberships.map(({ person_id }) => person_id),
]
