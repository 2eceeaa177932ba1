import { eventOf, noteChanges } from './change-json.ts'
import type { FeedCall, StreamStart } from './change-streams.ts'
import { closeEvents } from './closed-changes.ts'
import { followLog } from './log-tail.ts'
import { readRange } from './read-changes.ts'
import { isSelected } from './selection.ts'

const commentMs = 15_000
/** A client that is behind reads portions of this size, so that 1,000 of them hold at most 64 MiB. */
const portionSize = { limit: 500, maxBytes: 64 * 1024 }

/** The time after which a client connects again. */
const opening = Buffer.from('retry: 1000\n\n')

/**
 * Streams the changes as server-sent events, for as long as the service runs, the token is valid and the log keeps its
 * numbering. Every 15 seconds a comment follows, with the number that was read up to: a client that connects again does
 * not read the changes again that did not match.
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
