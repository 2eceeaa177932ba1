import { setImmediate } from 'node:timers/promises'
import type { Context } from '../db/context.ts'
import { perDatabase } from '../db/per-database.ts'
import { FairPool, type Release } from '../process/fair-pool.ts'
import type { FollowingCall } from '../route/call.ts'
import { requireScope } from '../route/scopes.ts'
import { type Detail, throwBusy } from '../values/errors.ts'
import { eventOf, noteChanges, noteLines, printLines } from './change-json.ts'
import { closeChangeLines, closeEvents } from './closed-changes.ts'
import { followLog } from './log-tail.ts'
import { type Head, type LineRange, readLines, readRange } from './read-changes.ts'
import type { ChangesQuery } from './schema.ts'
import { isSelected, maySee, type Selection } from './selection.ts'

export type FeedCall = FollowingCall<ChangesQuery>

/** A stream to start: its selection, its position, and the head that was read before it. `release` frees its place. */
export type StreamStart = {
  selection: Selection
  warnings: readonly Detail[]
  after: number
  head: Head
  release: Release
}

const streams = perDatabase((_, max: number) => new FairPool({ share: max }))

/**
 * Counts a request of an organization that waits for changes or streams them. Throws a Fault of 503 if the organization
 * has `max` of them in this process. The returned function ends the count of the request.
 */
export const takeStream = ({ db, organization_id }: Context, max: number): Release =>
  streams(db, max).tryTake(organization_id) ??
  throwBusy(`The organization already has ${max} requests that wait for changes (KITH_LIMIT_CHANGE_STREAMS).`)

const commentMs = 15_000
/** A client that is behind reads portions of this size, so that 1,000 of them hold at most 64 MiB. */
const portionSize = { limit: 500, maxBytes: 64 * 1024 }

/** The time after which a client connects again. */
const opening = Buffer.from('retry: 1000\n\n')

/**
 * Streams the changes as server-sent events, for as long as the service runs, the token is valid and the log keeps its
 * numbering. Every 15 seconds a comment has the number up to which the log was read. A client that connects again then
 * skips the changes that did not match.
 */
export async function* streamEvents(
  call: FeedCall,
  { selection, after, head, release }: StreamStart,
): AsyncGenerator<Buffer> {
  const { context, signal, within } = call
  const subscriber = followLog(context, head, call, selection)
  let last = after
  let commentDueMs = performance.now() + commentMs
  try {
    yield opening
    for (;;) {
      const next = await subscriber.next(last, commentDueMs)
      if (next === 'over') return
      if (next === 'behind') {
        const request = { after: last, selection, ...portionSize }
        const range = await within(() => readRange(context, request, signal))
        last = range.last
        noteChanges(call.shown, range.changes)
        if (range.changes.length > 0) yield closeEvents(Buffer.from(range.changes.map(eventOf).join('')), selection)
      } else if (next === 'due') last = subscriber.position
      else {
        last = next.part.last
        const events = next.part.eventsOf(selection)
        noteChanges(
          call.shown,
          next.part.changes.filter(change => isSelected(selection, change)),
        )
        if (events) yield closeEvents(events, selection)
      }
      if (performance.now() >= commentDueMs) {
        yield Buffer.from(`: the connection is alive\nid: ${last}\n\n`)
        commentDueMs = performance.now() + commentMs
      }
    }
  } finally {
    subscriber.close()
    release()
  }
}

/** One statement reads at most this much. */
const partSize = { limit: 1_000, maxBytes: 512 * 1024 }
/** The token is verified again after this time. */
const verifyMs = 1_000

/**
 * Streams the changes up to the head of the request's start as lines of JSON. Reads one part while it sends another.
 */
export async function* streamLines(
  call: FeedCall,
  { selection, after, head: { head: until, log_id }, release }: StreamStart,
): AsyncGenerator<Buffer> {
  const { context, signal, within } = call
  const read = (position: number): Promise<LineRange> => {
    const request = { after: position, until, selection, ...partSize }
    const reading = within(() => readLines(context, request, signal))
    // If the client disconnects, the part that is read ahead fails without a reader.
    reading.catch(() => {})
    return reading
  }
  let verifiedMs = performance.now()
  try {
    let reading = after < until ? read(after) : undefined
    while (reading) {
      const range: LineRange = await reading
      if (range.log_id !== log_id) throw new Error('the log got another numbering while it was streamed')
      reading = range.last < until ? read(range.last) : undefined
      // The next statement is sent in this event-loop turn, so PostgreSQL works on it while this part is printed.
      if (reading) await setImmediate()
      noteLines(call.shown, range.read)
      if (range.read.changes.length > 0) yield Buffer.from(closeChangeLines(printLines(range.read), selection))
      if (performance.now() - verifiedMs < verifyMs) continue
      verifiedMs = performance.now()
      const current = await call.following.authenticate()
      if (maySee(current, selection)) continue
      for (const scope of selection.scopes) requireScope(current, scope)
      throw new Error('the role of the caller changed while the changes were streamed')
    }
  } finally {
    release()
  }
}
