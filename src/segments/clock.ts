import type { Task } from '../followers/follower.ts'
import { changeOrganization, ownAuthor } from '../organizations/change-organization.ts'
import type { Definitions } from '../organizations/definitions.ts'
import { readMatchesOf } from '../queries/plan/membership.ts'
import { firstId, lastId } from '../values/formats.ts'
import { compareNext, type Membership, partsOf, peoplePerSet } from './members.ts'
import { setEvaluatedSql } from './sql.ts'
import { conditionsAt, type TestedSegment } from './tested-segments.ts'

/** A segment with relative times. Its members are those at `evaluatedMs`. */
export type ClockedSegment = TestedSegment & { evaluatedMs: number }

/** People whom the clock has moved into or out of a segment, by the number of the change that reports the moves. */
export type ClockMoves = Map<number, readonly string[]>

/**
 * The next time at which the clock moves people: a multiple of the interval. The beginning of a day is one in most time
 * zones.
 */
export const nextTickMs = (ms: number, intervalMs: number): number => (Math.floor(ms / intervalMs) + 1) * intervalMs

/**
 * Finds the people whom the passing of time has moved into or out of segments. Appends a change of the segment to the
 * log for each time at which people moved. After a pause of the service, this is the time at which they should have
 * moved. The follower of the log then moves them. `follow` follows the log after each page of people, and returns false
 * to give up. The result is then undefined.
 */
export async function logClockMoves(
  task: Task,
  { definitions, clocked: segments }: { definitions: Definitions; clocked: readonly ClockedSegment[] },
  { nowMs, intervalMs }: { nowMs: number; intervalMs: number },
  follow: () => Promise<boolean>,
): Promise<ClockMoves | undefined> {
  const differences = await findDifferences(task, definitions, segments, nowMs, follow)
  if (!differences) return undefined
  const moves: { segment: ClockedSegment; timeMs: number; people: string[] }[] = []
  for (const segment of segments) {
    const people = differences.filter(({ segment_id }) => segment_id === segment.segment.id)
    const times = ticksAfter(segment.evaluatedMs, nowMs, intervalMs)
    for (const move of await locate(task, definitions, segment, people, times)) moves.push({ segment, ...move })
  }
  moves.sort((a, b) => a.timeMs - b.timeMs)
  return appendMoves(task, segments, moves, nowMs)
}

/** The ticks after a time. The last one is the current time. */
function ticksAfter(ms: number, nowMs: number, intervalMs: number): number[] {
  const ticks: number[] = []
  for (let tick = nextTickMs(ms, intervalMs); tick < nowMs; tick += intervalMs) ticks.push(tick)
  return [...ticks, nowMs]
}

/** A person whose stored membership differs from the current one, `isIn`. */
type Difference = Membership & { isIn: boolean }

async function findDifferences(
  { db }: Task,
  definitions: Definitions,
  segments: readonly ClockedSegment[],
  nowMs: number,
  follow: () => Promise<boolean>,
): Promise<Difference[] | undefined> {
  const conditions = conditionsAt(segments, definitions, nowMs)
  const found: Difference[] = []
  for (let after = firstId; after !== lastId; ) {
    if (!(await follow())) return undefined
    const { entered, left, until } = await db.transaction(tx => compareNext(tx, conditions, after))
    for (const membership of entered) found.push({ ...membership, isIn: true })
    for (const membership of left) found.push({ ...membership, isIn: false })
    after = until
  }
  return found
}

/** Finds for each person, by bisection, the first time at which its membership was the current one. */
async function locate(
  task: Task,
  definitions: Definitions,
  segment: TestedSegment,
  people: readonly Difference[],
  times: readonly number[],
): Promise<{ timeMs: number; people: string[] }[]> {
  if (people.length === 0) return []
  if (times.length === 1) return [{ timeMs: times[0]!, people: people.map(({ person_id }) => person_id) }]
  const middle = Math.floor((times.length - 1) / 2)
  const { conditions } = conditionsAt([segment], definitions, times[middle]!)
  const matching = new Set<string>()
  for (const part of partsOf(people, peoplePerSet)) {
    const ids = part.map(({ person_id }) => person_id)
    const matches = await task.db.transaction(tx => readMatchesOf(tx, definitions, conditions, ids))
    for (const each of matches) if (each.matches[0]) matching.add(each.id)
  }
  const byState = Map.groupBy(people, ({ person_id, isIn }) => matching.has(person_id) === isIn)
  return [
    ...(await locate(task, definitions, segment, byState.get(true) ?? [], times.slice(0, middle + 1))),
    ...(await locate(task, definitions, segment, byState.get(false) ?? [], times.slice(middle + 1))),
  ]
}

/** Appends the changes, and stores the time of evaluation. It locks the head before the follower, like an erasure. */
function appendMoves(
  task: Task,
  segments: readonly ClockedSegment[],
  moves: readonly { segment: ClockedSegment; timeMs: number; people: string[] }[],
  nowMs: number,
): Promise<ClockMoves> {
  const { organization_id, hold } = task
  return changeOrganization<ClockMoves>(task, ownAuthor(), async ({ tx, head }) => {
    await hold(tx)
    const evaluated = (ms: number) => ({ evaluated_at: new Date(ms).toISOString() })
    const ids = segments.map(({ segment }) => segment.id)
    return {
      statements: [tx.query(setEvaluatedSql, [organization_id, ids, new Date(nowMs).toISOString()])],
      changes: moves.map(({ segment: { segment, evaluatedMs }, timeMs }) => ({
        subject: 'segment',
        id: segment.id,
        operation: 'update',
        before: evaluated(evaluatedMs),
        after: evaluated(timeMs),
      })),
      result: new Map(moves.map(({ people }, index) => [head.sequence + index + 1, people])),
    }
  })
}
