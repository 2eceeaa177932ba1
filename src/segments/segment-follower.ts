import { readHeadSql, segmentsFollowerName } from '../changes/sql.ts'
import type { Statement, Transaction } from '../db/db.ts'
import { deleteInSteps } from '../db/delete-in-steps.ts'
import type { Follower, Progress, Task } from '../followers/follower.ts'
import { currentDefinitions, type Definitions } from '../organizations/definitions.ts'
import { readMatchesOf } from '../queries/plan/membership.ts'
import { firstId, lastId } from '../values/formats.ts'
import {
  type Affected,
  affectedPeople,
  type Batch,
  defaultSourcesPerRead,
  noteCause,
  readBatch,
} from './affected-people.ts'
import { type ClockedSegment, type ClockMoves, logClockMoves, nextTickMs } from './clock.ts'
import {
  compare,
  compareNext,
  type Differences,
  type Membership,
  partsOf,
  peoplePerSet,
  storeMembers,
  tell,
} from './members.ts'
import {
  beginSegmentsSql,
  deleteChecksSql,
  finishSegmentsSql,
  forgetSegmentChangesSql,
  forgetSegmentMembersSql,
  markForgottenSql,
  readMembershipsSql,
  readSegmentStatesSql,
  readUnfinishedMergeSql,
} from './sql.ts'
import { type ConditionsAt, conditionsAt, parseSegments, type TestedSegment } from './tested-segments.ts'

export type SegmentOptions = {
  nowMs?: () => number
  /** The maximum number of links to changed entities that one statement reads. */
  sourcesPerRead?: number
  /** The time between two moves of the clock. */
  clockMs?: number
}

const defaultClockMs = 3_600_000

/** The pause between two runs for an organization. It limits the cost of the follower and the delay of the feed. */
const pauseMs = 250
const rowsPerDeletion = 10_000

/**
 * The follower that stores the members of segments, and reports entries and exits. A page of people commits together
 * with its reports. The position commits after the last page of a batch, so that the feed shows each batch as a whole.
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
  const { nowMs = Date.now, sourcesPerRead = defaultSourcesPerRead, clockMs = defaultClockMs } = options
  const { db, organization_id, signal } = task
  let sequence = task.after
  let segments: PreparedSegments | undefined
  let moves: ClockMoves = new Map()
  // A filter over links does not count the links that a merge has not moved yet, and the log does not show when the
  // merge moves them.
  const [merge] = await db.query(readUnfinishedMergeSql, [organization_id])
  if (merge) return progress(nowMs() + pauseMs)
  if (!(await followTo(task.head))) return { sequence }
  // The clock also wakes the follower without a change.
  segments ??= await prepareSegments(task, await currentDefinitions(task, signal), nowMs())
  if (!segments) return { sequence }
  const dueMs = nextTickOf(segments, clockMs)
  if (dueMs === undefined || dueMs > nowMs()) return progress(dueMs)
  const before = segments.definitions.version
  const logged = await logClockMoves(task, segments, { nowMs: nowMs(), intervalMs: clockMs }, async () => {
    return (await followTo(await readHead(task))) && segments?.definitions.version === before
  })
  if (!logged) return progress(nowMs())
  moves = logged
  segments = undefined
  await followTo(await readHead(task))
  return progress(nextTickMs(nowMs(), clockMs))

  function progress(wakeAtMs: number | undefined): Progress {
    return signal.aborted ? { sequence } : { sequence, notBeforeMs: nowMs() + pauseMs, wakeAtMs }
  }

  /** Follows the log up to a number. Returns false if the signal aborted. */
  async function followTo(head: number): Promise<boolean> {
    while (!signal.aborted && sequence < head) {
      const batch = await readBatch(task, sequence, head)
      // The definitions are at least as new as the batch. If they change, the members are computed again before the
      // position passes the change, and the feed reports only later moves.
      const definitions = await currentDefinitions(task, signal)
      if (segments?.definitions.version !== definitions.version)
        segments = await prepareSegments(task, definitions, nowMs())
      if (!segments) break
      sequence = await followBatch(task, segments, batch, moves, sourcesPerRead)
    }
    return !signal.aborted
  }
}

async function readHead({ db, organization_id }: Task): Promise<number> {
  const [head] = await db.query<{ sequence: number }>(readHeadSql, [organization_id])
  return head!.sequence
}

/** The segments with their current conditions. The feed reports the moves of a segment after the change `sinceOf`. */
type PreparedSegments = ConditionsAt & { sinceOf: (segment_id: number) => number; clocked: ClockedSegment[] }

/** The next time at which the clock moves people. Undefined if no segment has relative times. */
function nextTickOf({ clocked }: PreparedSegments, clockMs: number): number | undefined {
  const evaluated = clocked.map(({ evaluatedMs }) => evaluatedMs)
  return evaluated.length === 0 ? undefined : nextTickMs(Math.min(...evaluated), clockMs)
}

type SegmentState = {
  id: number
  is_left_over: boolean
  members_condition: string | null
  since: number | null
  evaluated_ms: number | null
}

/**
 * Computes the members of the segments whose filter has changed its meaning. Returns the segments under these
 * definitions, or undefined if the signal aborted.
 */
async function prepareSegments(
  task: Task,
  definitions: Definitions,
  nowMs: number,
): Promise<PreparedSegments | undefined> {
  const { db, organization_id, signal } = task
  const states = await db.query<SegmentState>(readSegmentStatesSql, [organization_id])
  const { tested, invalid } = parseSegments(definitions)
  const stateById = new Map(states.map(state => [state.id, state]))
  const isComputed = ({ segment, hash }: TestedSegment) => {
    const state = stateById.get(segment.id)
    return typeof state?.since === 'number' && state.members_condition === hash
  }
  const leftOver = states.filter(({ is_left_over }) => is_left_over).map(({ id }) => id)
  if (leftOver.length > 0) await forget(task, leftOver)
  const ended = invalid.filter(id => stateById.get(id)?.since !== null)
  if (ended.length > 0) await update(task, tx => tx.query(beginSegmentsSql, [organization_id, ended]))
  const missing = tested.filter(segment => !isComputed(segment))
  if (missing.length > 0 && !(await computeMembers(task, missing, definitions, nowMs))) return undefined
  if (signal.aborted) return undefined
  if (missing.length > 0)
    for (const state of await db.query<SegmentState>(readSegmentStatesSql, [organization_id]))
      stateById.set(state.id, state)
  const sinceOf = (id: number) => stateById.get(id)?.since ?? Infinity
  const clocked = tested
    .filter(({ isRelative }) => isRelative)
    .map(each => ({ ...each, evaluatedMs: stateById.get(each.segment.id)?.evaluated_ms ?? nowMs }))
  return { ...conditionsAt(tested, definitions, nowMs), sinceOf, clocked }
}

/**
 * Computes the members of the segments, in sets of people. They are at least as new as the newest change at the
 * beginning, so the feed reports only entries and exits by later changes. Returns false if the signal aborted.
 */
async function computeMembers(
  task: Task,
  segments: readonly TestedSegment[],
  definitions: Definitions,
  nowMs: number,
): Promise<boolean> {
  const { organization_id, signal } = task
  const conditions = conditionsAt(segments, definitions, nowMs)
  const { ids } = conditions
  await update(task, tx => tx.query(beginSegmentsSql, [organization_id, ids]))
  const newest = await readHead(task)
  await deleteRows(task, forgetSegmentChangesSql, ids)
  for (let after = firstId; after !== lastId; ) {
    if (signal.aborted) return false
    after = await update(task, async tx => {
      const { until, ...differences } = await compareNext(tx, conditions, after)
      await storeMembers({ tx, organization_id }, differences)
      return until
    })
  }
  const stored = JSON.stringify(segments.map(({ segment: { id }, hash }) => ({ id, condition: hash })))
  const values = [organization_id, stored, newest, new Date(nowMs).toISOString()]
  await update(task, tx => tx.query(finishSegmentsSql, values))
  return true
}

/**
 * Runs the work in a transaction under the lease of the follower, so that no other process runs it and an erasure waits
 * for it.
 */
function update<T>({ db, hold }: Task, run: (tx: Transaction) => Promise<T>): Promise<T> {
  return db.transaction(async tx => {
    await hold(tx)
    return run(tx)
  })
}

const deleteRows = ({ db, organization_id, signal }: Task, statement: Statement, ids: number[]) =>
  deleteInSteps(db, statement, [organization_id, ids, rowsPerDeletion], { limit: rowsPerDeletion, signal })

/** Deletes the remaining rows of deleted segments. */
async function forget(task: Task, ids: number[]): Promise<void> {
  await deleteRows(task, forgetSegmentChangesSql, ids)
  await deleteRows(task, forgetSegmentMembersSql, ids)
  if (!task.signal.aborted) await update(task, tx => tx.query(markForgottenSql, [task.organization_id, ids]))
}

/** Reports the entries and exits by the next changes. Returns the new position. */
async function followBatch(
  task: Task,
  segments: PreparedSegments,
  batch: Batch,
  moves: ClockMoves,
  sourcesPerRead: number,
): Promise<number> {
  const { db, organization_id, signal, advance } = task
  if (segments.ids.length > 0)
    for await (const page of affectedPeople(task, batch, segments, sourcesPerRead)) {
      if (signal.aborted) return task.after
      await update(task, tx => followPage(tx, segments, page))
    }
  for (const { sequence, segment_id } of batch.clock)
    if (!(await followClock(task, segments, { sequence, segment_id }, moves.get(sequence)))) return task.after
  await db.transaction(async tx => {
    await advance(tx, batch.last)
    if (batch.checked.length > 0) await tx.query(deleteChecksSql, [organization_id, batch.checked])
  })
  return batch.last
}

async function followPage(tx: Transaction, segments: PreparedSegments, page: Affected[]) {
  const { definitions, ids, conditions, sinceOf } = segments
  const { organization_id } = definitions
  const causes = new Map<string, number>()
  for (const { id, cause } of page) noteCause(causes, id, cause)
  const people = [...causes.keys()]
  const matches = await readMatchesOf(tx, definitions, conditions, people)
  const members = await tx.query<Membership>(readMembershipsSql, [organization_id, people])
  // The members of a segment are as new as `sinceOf`, so only later changes are reported.
  const isTold = ({ segment_id, person_id }: Membership) => causes.get(person_id)! > sinceOf(segment_id)
  const { entered, left } = compare(ids, matches, members)
  const differences = { entered: entered.filter(isTold), left: left.filter(isTold) }
  await tell({ tx, organization_id }, differences, ({ person_id }) => causes.get(person_id)!)
}

/**
 * Reports the people whom the passing of time has moved into or out of a segment. `moved` are the people whom this
 * process found when it logged the change. Another process does not know them, and tests all people. Returns false if
 * the signal aborted.
 */
async function followClock(
  task: Task,
  { definitions, ids, conditions, sinceOf }: PreparedSegments,
  { sequence, segment_id }: Batch['clock'][number],
  moved: readonly string[] | undefined,
): Promise<boolean> {
  const index = ids.indexOf(segment_id)
  // The filter has changed in the meantime, so the members are newer than this change.
  if (index === -1 || sequence <= sinceOf(segment_id)) return true
  const ofSegment = { definitions, ids: [segment_id], conditions: [conditions[index]!] }
  const { organization_id } = definitions
  const tellAll = (tx: Transaction, differences: Differences) =>
    tell({ tx, organization_id }, differences, () => sequence)
  for (const people of partsOf(moved ?? [], peoplePerSet)) {
    if (task.signal.aborted) return false
    await update(task, async tx => {
      const members = await tx.query<Membership>(readMembershipsSql, [organization_id, people])
      const before = members.filter(each => each.segment_id === segment_id)
      const now = await readMatchesOf(tx, definitions, ofSegment.conditions, people)
      await tellAll(tx, compare(ofSegment.ids, now, before))
    })
  }
  for (let after = moved ? lastId : firstId; after !== lastId; ) {
    if (task.signal.aborted) return false
    after = await update(task, async tx => {
      const { until, ...differences } = await compareNext(tx, ofSegment, after)
      await tellAll(tx, differences)
      return until
    })
  }
  return true
}
