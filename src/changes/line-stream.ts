import { setImmediate } from 'node:timers/promises'
import { requireScope } from '../route/scopes.ts'
import { noteLines, printLines } from './change-json.ts'
import type { FeedCall, StreamStart } from './change-streams.ts'
import { closeChangeLines } from './closed-changes.ts'
import { type LineRange, readLines } from './read-changes.ts'
import { maySee } from './selection.ts'

/** One statement reads at most this much. */
const partSize = { limit: 1_000, maxBytes: 512 * 1024 }
/** The token is verified again after this time. */
const verifyMs = 1_000

/** Streams the changes up to the head of the request's start as lines of JSON. Reads one part while it sends another. */
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
