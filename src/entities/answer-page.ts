import type { Call, HandlerResult } from '../http/pipeline/route.ts'
import { printPage, printPart } from './entity-json.ts'
import { type RowsOfPage, readPortion } from './entity-reader.ts'
import { type Position, sizeToRead } from './pagination.ts'

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

/** `lastMembers` prints more JSON members of the response, each after a comma. It is called after the rows are read. */
type PageRequest = { stack_id: number; position: Position; lastMembers?: () => string }

/** Reads the rows at a position. */
type ReadRows = (position: Position) => Promise<RowsOfPage>

/**
 * Responds with a page: a small one whole, a larger one in parts. Back-pressure applies to parts: kith prints the next
 * one when the client has read the last. One statement reads each portion, so each shows the entities as of that
 * statement. An entity that is deleted in between is left out, and another one is read at the end. A page therefore
 * never has fewer entities than its size while more exist.
 */
export async function answerPage(call: Call<unknown>, page: PageRequest, readRows: ReadRows): Promise<HandlerResult> {
  const { whole, ids } = await buildWhole(call, page, readRows)
  if (whole) return whole
  const release = await call.memory.wait(reservedBytes)
  return { status: 200, parts: pageParts(call, page, { readRows, ids, release }) }
}

type Ids = { pageIds: string[]; has_more: boolean }

async function buildWhole(
  { memory }: Call<unknown>,
  { stack_id, position, lastMembers }: PageRequest,
  readRows: ReadRows,
): Promise<{ whole?: HandlerResult; ids?: Ids | undefined }> {
  const maxRowBytes = Math.floor(maxWholeBytes / sizeToRead(position))
  const { rows, ids, has_more = false, definitions } = await readRows({ ...position, maxRowBytes })
  const inParts = { ids: ids && { pageIds: ids, has_more } }
  const page = printPage(rows, position.size, { definitions, stack_id, maxBytes: maxWholeBytes })
  if (!page) return inParts
  const response = {
    status: 200,
    json: `{"items":[${page.items}],"has_more":${has_more || page.has_more}${lastMembers?.() ?? ''}}`,
  }
  if (response.json.length <= uncountedCharacters) return { whole: response }
  const release = memory.take(Buffer.byteLength(response.json))
  return release ? { whole: { ...response, release } } : inParts
}

async function readIds(readRows: ReadRows, position: Position): Promise<Ids> {
  const { rows, has_more = false } = await readRows({ ...position, maxRowBytes: 0 })
  const ids = rows === '' ? [] : rows.split('\n')
  return { pageIds: ids.slice(0, position.size), has_more: has_more || ids.length > position.size }
}

type Source = { readRows: ReadRows; ids: Ids | undefined; release: () => void }

async function* pageParts(
  { db, caller, signal, within }: Call<unknown>,
  { stack_id, position, lastMembers }: PageRequest,
  { readRows, ids, release }: Source,
): AsyncGenerator<Buffer> {
  const readNext = (ids: string[]) =>
    within(() => readPortion(db, caller.organization.id, stack_id, ids, portionBytes, signal))
  let { after_id, size: remaining } = position
  let has_more = true
  let opening = '{"items":['
  try {
    while (has_more && remaining > 0) {
      const page = ids ?? (await within(() => readIds(readRows, { ...position, after_id, size: remaining })))
      const { pageIds } = page
      ;({ has_more } = page)
      ids = undefined
      after_id = pageIds.at(-1)
      for (let readCount = 0; readCount < pageIds.length; ) {
        const portion = await readNext(pageIds.slice(readCount))
        readCount += portion.rows.length
        const rows = portion.rows.filter(row => row !== null)
        for (let next = 0; next < rows.length; ) {
          const continues = remaining < position.size || next > 0
          const settings = { definitions: portion.definitions, stack_id, maxBytes: partBytes, continues }
          const part = printPart(rows, next, settings)
          next = part.next
          yield opening === '' ? part.bytes : Buffer.concat([Buffer.from(opening), part.bytes])
          opening = ''
        }
        remaining -= rows.length
      }
    }
    yield Buffer.from(`${opening}],"has_more":${has_more}${lastMembers?.() ?? ''}}`)
  } finally {
    release()
  }
}
