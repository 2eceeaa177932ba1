import type { Call, HandlerResult } from '../http/pipeline/route.ts'
import { printPage, printPart } from './entity-json.ts'
import { type RowsOfPage, readPortion } from './entity-reader.ts'
import { type Position, sizeToRead } from './pagination.ts'

/** A page is read by one statement, and answered in one piece, up to so many bytes of rows, and of JSON. */
const wholeBytes = 1_048_576
/** Answers up to here are not counted (http/pipeline/send-result.ts). */
const uncountedCharacters = 64 * 1024
/** Of a larger page so much is read at a time, and one entity more, */
const portionOctets = 256 * 1024
/** and so much is printed at a time; */
const partBytes = 128 * 1024
/** so that it takes about this while it is sent, whatever its size. */
const partedBytes = 1_048_576

/** `lastMembers` makes further members of the answer, each behind a comma, once the rows have been read. */
type Where = { stack_id: number; position: Position; lastMembers?: () => string }

/** Reads the rows at a position. */
type ReadRows = (position: Position) => Promise<RowsOfPage>

/**
 * Answers a page: in one piece where that is small enough, else in parts, no more of which is made than the client reads. Each portion of a
 * page in parts is a statement of its own and shows the entities as they stand at that moment. An entity that is deleted meanwhile is left
 * out, and as many more are read at the end: a page is never shorter than its size while there are more.
 */
export async function answerPage(call: Call<unknown>, where: Where, readRows: ReadRows): Promise<HandlerResult> {
  const { whole, ids } = await answerWhole(call, where, readRows)
  if (whole) return whole
  const release = await call.memory.wait(partedBytes)
  return { status: 200, parts: pageParts(call, where, { readRows, ids, release }) }
}

type Ids = { wanted: string[]; has_more: boolean }

async function answerWhole(
  { memory }: Call<unknown>,
  { stack_id, position, lastMembers }: Where,
  readRows: ReadRows,
): Promise<{ whole?: HandlerResult; ids?: Ids | undefined }> {
  const rowOctets = Math.floor(wholeBytes / sizeToRead(position))
  const { rows, ids, has_more = false, definitions } = await readRows({ ...position, rowOctets })
  const again = { ids: ids && { wanted: ids, has_more } }
  const page = printPage(rows, position.size, { definitions, stack_id, mostBytes: wholeBytes })
  if (!page) return again
  const answer = {
    status: 200,
    json: `{"items":[${page.items}],"has_more":${has_more || page.has_more}${lastMembers?.() ?? ''}}`,
  }
  if (answer.json.length <= uncountedCharacters) return { whole: answer }
  const release = memory.take(Buffer.byteLength(answer.json))
  return release ? { whole: { ...answer, release } } : again
}

async function readIds(readRows: ReadRows, position: Position): Promise<Ids> {
  const { rows, has_more = false } = await readRows({ ...position, rowOctets: 0 })
  const ids = rows === '' ? [] : rows.split('\n')
  return { wanted: ids.slice(0, position.size), has_more: has_more || ids.length > position.size }
}

type Source = { readRows: ReadRows; ids: Ids | undefined; release: () => void }

async function* pageParts(
  { db, caller, signal, within }: Call<unknown>,
  { stack_id, position, lastMembers }: Where,
  { readRows, ids, release }: Source,
): AsyncGenerator<Buffer> {
  const readNext = (ids: string[]) =>
    within(() => readPortion(db, caller.organization.id, stack_id, ids, portionOctets, signal))
  let { after_id, size: left } = position
  let has_more = true
  let opening = '{"items":['
  try {
    while (has_more && left > 0) {
      const found = ids ?? (await within(() => readIds(readRows, { ...position, after_id, size: left })))
      const { wanted } = found
      ;({ has_more } = found)
      ids = undefined
      after_id = wanted.at(-1)
      for (let read = 0; read < wanted.length; ) {
        const portion = await readNext(wanted.slice(read))
        read += portion.rows.length
        const rows = portion.rows.filter(row => row !== null)
        for (let next = 0; next < rows.length; ) {
          const continues = left < position.size || next > 0
          const settings = { definitions: portion.definitions, stack_id, mostBytes: partBytes, continues }
          const part = printPart(rows, next, settings)
          next = part.next
          yield opening === '' ? part.bytes : Buffer.concat([Buffer.from(opening), part.bytes])
          opening = ''
        }
        left -= rows.length
      }
    }
    yield Buffer.from(`${opening}],"has_more":${has_more}${lastMembers?.() ?? ''}}`)
  } finally {
    release()
  }
}
