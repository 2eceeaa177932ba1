import { currentDefinitions, type Definitions, peopleKey, peopleStackId } from '../organizations/definitions.ts'
import { yieldIfDue } from '../process/event-loop.ts'
import type { Call } from '../route/call.ts'
import type { HandlerResult } from '../route/result.ts'
import { refuseValues } from '../values/errors.ts'
import { recordIdOf } from '../values/formats.ts'
import { type AccessFilter, type FoundEntry, type Place, readEntries } from './read-entries.ts'
import type { AccessEntry, AccessesQuery } from './schema.ts'

const defaultLimit = 50
/** A page ends after this time, because a filter may leave hardly any entry. */
const searchMs = 2_000
/** The approximate size of the parts in which lines are sent. */
const partCharacters = 64 * 1024

/** Responds with entries, newest first, as a page or as lines. `entities` are internal identifiers. */
export async function answerEntries(
  call: Call<AccessesQuery>,
  entities: readonly string[] | undefined,
): Promise<HandlerResult> {
  const { context, body, mediaType, signal } = call
  const { subject, kind, from, to, limit = defaultLimit, cursor } = body
  const filter = { entities, subject, kind, fromMs: msOf(from), toMs: msOf(to) }
  const definitions = await currentDefinitions(context, signal)
  const before = cursor === undefined ? undefined : parseCursor(cursor)
  if (mediaType !== undefined) return { status: 200, stream: linesOf(call, filter, before, definitions) }
  const items: AccessEntry[] = []
  const untilMs = performance.now() + searchMs
  let last: Place | undefined
  for await (const found of readEntries(context, filter, before, signal)) {
    const isOver = 'entry' in found ? items.length === limit : performance.now() >= untilMs
    if (isOver) return pageOf(items, last ?? found.place)
    last = found.place
    if ('entry' in found) items.push(toEntry(found, definitions))
  }
  return pageOf(items, undefined)
}

const pageOf = (items: readonly AccessEntry[], next: Place | undefined): HandlerResult => ({
  status: 200,
  data: { items, has_more: next !== undefined, next_cursor: next ? printCursor(next) : null },
})

async function* linesOf(
  { context, body, signal, within }: Call<AccessesQuery>,
  filter: AccessFilter,
  before: Place | undefined,
  definitions: Definitions,
): AsyncGenerator<string> {
  let part = ''
  // Each batch has a separate time limit, because reading a long log takes longer than a request may.
  const entries = readEntries(context, filter, before, signal)
  for (let left = body.limit ?? Number.POSITIVE_INFINITY; left > 0; ) {
    const { value: found, done } = await within(() => entries.next())
    if (done) break
    await yieldIfDue()
    if ('entry' in found) {
      part += `${JSON.stringify(toEntry(found, definitions))}\n`
      left -= 1
    }
    if (part.length < partCharacters) continue
    yield part
    part = ''
  }
  if (part !== '') yield part
}

const msOf = (time: string | undefined) => (time === undefined ? undefined : Date.parse(time))

/** The entry as responses show it. */
export function toEntry({ kind, entry }: FoundEntry, { stacks }: Definitions): AccessEntry {
  const { at, context, ids, count, request_id } = entry
  const { event = null, target = null, subject, role, method, route, status, stack_id, ip } = context
  const isRecord = stack_id !== null && stack_id !== peopleStackId
  const stackKey = isRecord ? (stacks.find(({ id }) => id === stack_id)?.key ?? null) : null
  return {
    ...{ kind, at: new Date(at).toISOString(), event, target, subject, role, method, route, status },
    owner: stack_id === peopleStackId ? peopleKey : stackKey,
    ids: isRecord ? ids.map(recordIdOf) : [...ids],
    ...{ count, ip, request_id },
  }
}

const printCursor = ({ id, index }: Place) => Buffer.from(`${id}.${index}`).toString('base64url')

function parseCursor(cursor: string): Place {
  const [, id, index] = /^(\d{1,16})\.(\d{1,7})$/.exec(Buffer.from(cursor, 'base64url').toString()) ?? []
  if (id !== undefined && Number.isSafeInteger(Number(id))) return { id: Number(id), index: Number(index) }
  refuseValues({ path: '/cursor', message: 'must be the next_cursor of a page' })
}
