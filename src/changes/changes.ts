import type { HandlerResult } from '../route/result.ts'
import { NotArrived, refuse, refuseValues, warningHeader } from '../values/errors.ts'
import { jsonOfEvent, noteChanges } from './change-json.ts'
import { type FeedCall, type StreamStart, streamEvents, streamLines, takeStream } from './change-streams.ts'
import { changeCloser } from './closed-changes.ts'
import type { Part } from './kept-changes.ts'
import { followLog } from './log-tail.ts'
import { type Head, readHead, readRange } from './read-changes.ts'
import { defaultLimit } from './schema.ts'
import { type FindSegments, isSelected, type Selection, selectionOf, warningsOf } from './selection.ts'

/** The media types of the feed besides JSON. */
export const linesType = 'application/x-ndjson'
export const eventsType = 'text/event-stream'

/** A page ends after the change with which it reaches this size. */
const maxPageBytes = 1_048_576
/** Memory reserved for a stream of lines: the part that is sent, and the one that is read meanwhile. */
const streamBytes = 1_048_576

/** GET /v1/changes in the form that the client asks for. */
export async function feedChanges(call: FeedCall, findSegments: FindSegments): Promise<HandlerResult> {
  const { body, mediaType } = call
  if (mediaType === undefined) return answerPage(call, await selectionOf(call, findSegments))
  for (const name of ['limit', 'wait'] as const)
    if (body[name] !== undefined)
      refuseValues({ path: `/${name}`, message: `applies to pages of JSON only, not to ${mediaType}` })
  return mediaType === eventsType ? answerEvents(call, findSegments) : answerLines(call, findSegments)
}

async function answerEvents(call: FeedCall, findSegments: FindSegments): Promise<HandlerResult> {
  const { lastEventId } = call.following
  const after = readLastEventId(lastEventId) ?? call.body.after
  const start = await beginStream(call, findSegments, { after, path: lastEventId ? '/Last-Event-ID' : '/after' })
  // nginx would otherwise collect events before it passes them on.
  const headers = { ...headersOf(start), 'X-Accel-Buffering': 'no' }
  return { status: 200, headers, stream: streamEvents(call, start), contentType: eventsType }
}

async function answerLines(call: FeedCall, findSegments: FindSegments): Promise<HandlerResult> {
  const start = await beginStream(call, findSegments, { after: call.body.after, path: '/after' })
  const releaseMemory = await call
    .within(() => call.memory.take(streamBytes))
    .catch(error => {
      start.release()
      throw error
    })
  const release = () => {
    releaseMemory()
    start.release()
  }
  const stream = streamLines(call, { ...start, release })
  return { status: 200, headers: headersOf(start), stream, contentType: linesType }
}

/** A stream can show warnings only in its headers. */
const headersOf = ({ head: { head, log_id }, warnings }: StreamStart) => ({
  'Kith-Log-Id': log_id,
  'Kith-Log-Head': `${head}`,
  ...(warnings.length > 0 && warningHeader(warnings)),
})

/**
 * Counts the request as a stream before it reads the head. Otherwise an organization's clients that connect at the same
 * time exceed its share of concurrent requests: 467 of 1,000 were refused.
 */
async function beginStream(
  call: FeedCall,
  findSegments: FindSegments,
  { after: given, path }: { after: number | undefined; path: string },
): Promise<StreamStart> {
  const { context, body, limits, signal } = call
  const release = takeStream(context, limits.changeStreams)
  call.following.begin()
  try {
    return await call.within(async () => {
      const selection = await selectionOf(call, findSegments)
      const warnings = warningsOf(call, selection)
      const after = startOf(selection, given, path)
      const head = await readHead(context, selection, signal)
      throwIfGone(call, head, { after, path, log_id: body.log_id })
      return { selection, warnings, after, head, release }
    })
  } catch (error) {
    release()
    throw error
  }
}

/**
 * The position to begin after: `given`, or the beginning of the log, or of its part that covers the segments. Throws a
 * Fault of 410 for an earlier position.
 */
function startOf({ segments }: Selection, given: number | undefined, path: string): number {
  const { since } = segments ?? { since: 0 }
  if (given === undefined || given >= since) return given ?? since
  return refuse(
    'invalid_parameter',
    'The people of the segment were computed anew. Read them again, and follow from there: see docs/changes.md.',
    {
      status: 410,
      details: [
        { path, message: `must be at least ${since}, the first change since which the log includes the segment` },
      ],
    },
  )
}

/** A client of server-sent events that has not received any event sends no header or an empty one. */
function readLastEventId(text: string | undefined): number | undefined {
  if (text === undefined || text === '') return undefined
  const number = Number(text)
  if (/^\d{1,16}$/.test(text) && Number.isSafeInteger(number)) return number
  return refuseValues({ path: '/Last-Event-ID', message: 'must be the number of a change' })
}

type Position = { after: number; path: string; log_id: string | undefined }

const restoredMessage =
  'The position belongs to another numbering of the change log, as after a restore from a backup. Begin again: see docs/changes.md.'

/**
 * Throws a Fault of 410 for a position that is not in this log, or of 503 on a standby, because the position may come
 * from a newer log.
 */
function throwIfGone({ isReader }: FeedCall, { head, newest = head, log_id }: Head, position: Position): void {
  const refuseAt = (path: string, message: string) =>
    refuse('invalid_parameter', restoredMessage, { status: 410, details: [{ path, message }] })
  if (position.log_id !== undefined && position.log_id.toLowerCase() !== log_id)
    refuseAt('/log_id', `the log is ${log_id} now`)
  if (position.after > newest && isReader)
    throw new NotArrived('The position has not arrived at this database yet. Retry after 1 second.', {
      path: position.path,
      message: `the newest change is ${newest} here`,
    })
  if (position.after > newest) refuseAt(position.path, `is beyond the newest change, which has the number ${newest}`)
}

type FeedPage = Head & { items: string[]; last: number }

async function answerPage(call: FeedCall, selection: Selection): Promise<HandlerResult> {
  const { wait = 0, log_id } = call.body
  const after = startOf(selection, call.body.after, '/after')
  const untilMs = performance.now() + wait * 1_000
  const warnings = warningsOf(call, selection)
  const page = await readPage(call, selection, after)
  throwIfGone(call, page, { after, path: '/after', log_id })
  const isAnswer = page.items.length > 0 || wait === 0 || page.last < page.head
  const { items, last, head } = isAnswer ? page : await waitForPage(call, selection, page, untilMs)
  const notes = warnings.length === 0 ? '' : `,"warnings":${JSON.stringify(warnings)}`
  const close = changeCloser(call.caller)
  const shown = close ? items.map(close) : items
  const json = `{"items":[${shown.join()}],"last":${last},"head":${Math.max(head, last)},"log_id":"${page.log_id}"${notes}}`
  return { status: 200, json }
}

/**
 * Reads until the page is full, the log ends, a statement has tested the maximum number of changes, or half of the
 * request's time is over. `last` is the position up to which it has read, so the next page skips changes that do not
 * match.
 */
async function readPage(
  { context, body, limits, signal, shown }: FeedCall,
  selection: Selection,
  after: number,
): Promise<FeedPage> {
  const { limit = defaultLimit } = body
  const untilMs = performance.now() + limits.requestMs / 2
  const items: string[] = []
  let last = after
  let bytes = 0
  for (;;) {
    const request = { after: last, selection, limit: limit - items.length, maxBytes: maxPageBytes - bytes }
    const range = await readRange(context, request, signal)
    noteChanges(shown, range.changes)
    for (const { json } of range.changes) {
      items.push(json)
      bytes += json.length
    }
    last = range.last
    const isFull = items.length >= limit || bytes >= maxPageBytes
    if (isFull || range.isBounded || last >= range.head || performance.now() >= untilMs)
      return { ...range, items, last }
  }
}

/** Waits until a change matches, at most until `untilMs`. */
async function waitForPage(call: FeedCall, selection: Selection, page: FeedPage, untilMs: number): Promise<FeedPage> {
  const { context, limits } = call
  const release = takeStream(context, limits.changeStreams)
  const subscriber = followLog(context, page, call, selection)
  call.following.begin()
  let { last, head } = page
  try {
    for (;;) {
      const next = await subscriber.next(last, untilMs)
      if (subscriber.refusal) throw subscriber.refusal
      call.signal.throwIfAborted()
      if (next === 'behind') {
        const read = await call.within(() => readPage(call, selection, last))
        if (read.items.length > 0 || read.last < read.head || performance.now() >= untilMs) return read
        ;({ last, head } = read)
      } else if (typeof next === 'string')
        return { ...page, items: [], last: Math.max(last, subscriber.position), head }
      else {
        const items = takeItems(call, next.part, selection)
        if (items) return { ...page, ...items, head: next.part.last }
        last = next.part.last
        head = last
      }
    }
  } finally {
    subscriber.close()
    release()
  }
}

/** The selected changes of a part, up to the limit of the page; undefined if there are none. */
function takeItems({ body, shown }: FeedCall, { changes, last }: Part, selection: Selection) {
  const selected = changes.filter(change => isSelected(selection, change))
  if (selected.length === 0) return undefined
  const taken = selected.slice(0, body.limit ?? defaultLimit)
  noteChanges(shown, taken)
  const items = taken.map(({ event }) => jsonOfEvent(event))
  return { items, last: taken.length < selected.length ? taken.at(-1)!.sequence : last }
}
