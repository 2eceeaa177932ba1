import { yieldIfDue } from '../../process/event-loop.ts'
import type { Release } from '../../process/fair-pool.ts'
import type { Call } from '../../route/call.ts'
import type { HandlerResult } from '../../route/result.ts'
import { refuse, retryInASecond } from '../../values/errors.ts'
import { idsOfPage, printPage, printPart } from './entity-json.ts'
import { type RowsOfPage, readPortion } from './entity-reader.ts'
import type { Included } from './included.ts'
import { type Count, type Position, type PositionToRead, sizeToRead } from './pagination.ts'

/** Maximum size of a page that one statement reads and one response buffer sends, in bytes of rows and of JSON. */
const maxWholeBytes = 1_048_576
/** Responses up to this size do not count against the memory limit (http/pipeline/send-result.ts). */
const uncountedCharacters = 64 * 1024
/** A larger page is read in portions of this size; the last entity of a portion may exceed it. */
const portionBytes = 256 * 1024
/** JSON is sent in parts of this size. */
const partBytes = 128 * 1024
/** Memory reserved for a page that is sent in parts. It does not depend on the size of the page. */
const reservedBytes = 1_048_576

/** The end of a page: the last entity that was read for it, and whether more follow. */
export type PageEnd = { after_id?: string | undefined; after_term?: string | undefined; has_more: boolean }

/**
 * `include` reads the members to add to the items, for the ids of a page. With `isCounted`, the first read counts all
 * items. `lastMembers` prints more JSON members of the response, each after a comma. It is called after everything is
 * read.
 */
type PageRequest = {
  stack_id: number
  position: Position
  include?: ((ids: readonly string[]) => Promise<Included>) | undefined
  isCounted?: boolean | undefined
  lastMembers?: (end: PageEnd, counted: Count | undefined) => string
}

/** Reads the rows at a position. */
type ReadRows = (position: PositionToRead) => Promise<RowsOfPage>

/**
 * Responds with a page: a small one whole, a larger one in parts. Back-pressure applies to parts: kith prints the next
 * one when the client has read the last. One statement reads each portion, so each shows the entities as of that
 * statement. An entity that is deleted in between is left out, and another one is read at the end. A page therefore
 * never has fewer entities than its size while more exist.
 */
export async function answerPage(call: Call<unknown>, page: PageRequest, readRows: ReadRows): Promise<HandlerResult> {
  const { position, include, isCounted } = page
  const maxRowBytes = Math.floor(maxWholeBytes / sizeToRead(position))
  const rows = await readRows({ ...position, maxRowBytes, isCounted })
  const included = await include?.(idsOf(rows, position).ids)
  const first = { rows, included }
  const release = takeIncluded(call, included)
  try {
    await yieldIfDue()
    const whole = buildWhole(call, page, first, release)
    if (whole) return whole
    const held = release ?? (await call.memory.take(reservedBytes))
    return { status: 200, parts: pageParts(call, page, { readRows, first, release: held }) }
  } catch (error) {
    release?.()
    throw error
  }
}

type FirstRead = { rows: RowsOfPage; included: Included | undefined }

/** The ids of a page. `rows` may have one entity more than the page. */
function idsOf({ rows, last_term, has_more = false }: RowsOfPage, { size }: Position): PageEnd & { ids: string[] } {
  const all = idsOfPage(rows, size + 1)
  const ids = all.slice(0, size)
  return { ids, after_id: ids.at(-1), after_term: last_term, has_more: has_more || all.length > size }
}

/**
 * Reserves memory for the included entities, which are already read, and for the page. Throws a 503 if there is too
 * little.
 */
function takeIncluded({ memory }: Call<unknown>, included: Included | undefined): Release | undefined {
  if (!included || included.bytes <= uncountedCharacters) return undefined
  const release = memory.tryTake(included.bytes + maxWholeBytes)
  if (release) return release
  return refuse(
    'operation_failed',
    'There is no memory for the included entities. Retry, or ask for a smaller page.',
    retryInASecond,
  )
}

/** The page as one response, or undefined if it is too large for that. */
function buildWhole(
  { memory, shown }: Call<unknown>,
  { stack_id, position, lastMembers }: PageRequest,
  { rows: { rows, last_term, has_more = false, definitions, counted }, included }: FirstRead,
  held: Release | undefined,
): HandlerResult | undefined {
  const { size, projection } = position
  const page = printPage(rows, size, { definitions, stack_id, projection, added: included, maxBytes: maxWholeBytes })
  if (!page) return undefined
  shown.addAll(stack_id, page.ids)
  const end = { after_id: page.ids.at(-1), after_term: last_term, has_more: has_more || page.has_more }
  const response = {
    status: 200,
    json: `{"items":[${page.items}],"has_more":${end.has_more}${lastMembers?.(end, counted) ?? ''}}`,
  }
  if (held) return { ...response, release: held }
  if (response.json.length <= uncountedCharacters) return response
  const release = memory.tryTake(Buffer.byteLength(response.json))
  return release && { ...response, release }
}

type Source = { readRows: ReadRows; first: FirstRead; release: Release }

async function* pageParts(
  { context, signal, within, shown }: Call<unknown>,
  { stack_id, position, include, lastMembers }: PageRequest,
  { readRows, first, release }: Source,
): AsyncGenerator<Buffer> {
  const { projection } = position
  const readNext = (ids: string[]) =>
    within(() => readPortion(context, stack_id, { ids, minBytes: portionBytes, projection }, signal))
  let remaining = position.size
  let end: PageEnd = { ...position, has_more: true }
  let page: ReturnType<typeof idsOf> | undefined = idsOf(first.rows, position)
  let { included } = first
  let opening = '{"items":['
  try {
    while (end.has_more && remaining > 0) {
      const { after_id, after_term } = end
      const next = { ...position, after_id, after_term, size: remaining, projection: undefined, maxRowBytes: 0 }
      page ??= idsOf(await within(() => readRows(next)), next)
      const { ids, has_more } = page
      shown.addAll(stack_id, ids)
      included ??= await within(async () => include?.(ids))
      end = ids.length > 0 ? page : { ...end, has_more }
      for (let readCount = 0; readCount < ids.length; ) {
        const portion = await readNext(ids.slice(readCount))
        readCount += portion.rows.length
        const rows = portion.rows.filter(row => row !== null)
        for (let next = 0; next < rows.length; ) {
          const continues = remaining < position.size || next > 0
          const { definitions } = portion
          await yieldIfDue()
          const settings = { definitions, stack_id, projection, added: included, maxBytes: partBytes, continues }
          const part = printPart(rows, next, settings)
          next = part.next
          yield opening === '' ? part.bytes : Buffer.concat([Buffer.from(opening), part.bytes])
          opening = ''
        }
        remaining -= rows.length
      }
      page = undefined
      included = undefined
    }
    yield Buffer.from(`${opening}],"has_more":${end.has_more}${lastMembers?.(end, first.rows.counted) ?? ''}}`)
  } finally {
    release()
  }
}
