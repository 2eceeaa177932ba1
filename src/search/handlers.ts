import { createHash } from 'node:crypto'
import type { Database } from '../db/db.ts'
import { searchedKeys } from '../entities/indexes/search-index.ts'
import { searchFollowerName } from '../entities/indexes/search-index-sql.ts'
import { answerPage } from '../entities/read/answer-page.ts'
import { type RowsOfPage, readPortion } from '../entities/read/entity-reader.ts'
import { labeler, withLabels } from '../entities/read/labels.ts'
import type { Position } from '../entities/read/pagination.ts'
import { refuse } from '../errors.ts'
import { beginFollower } from '../followers/begin-follower.ts'
import { isUuid } from '../formats.ts'
import type { Call, HandlerResult } from '../http/pipeline/route.ts'
import { currentDefinitions, type Definitions } from '../organizations/definitions.ts'
import type { Signal } from '../signal.ts'
import { defaultSize, type SearchBody } from './schema.ts'
import { findPlaces, type Place, type Searched } from './search.ts'
import { parseSearchText } from './search-text.ts'
import { readSearchStateSql } from './sql.ts'

/** A page that is read by one statement. The rows of a larger page are read in parts. */
const maxWholeBytes = 1_048_576

/** Returns a page of the entities of a stack that a text finds. Throws a Fault of 400, or of 503 while they are being indexed. */
export async function searchEntities(call: Call<SearchBody>, stack_id: number): Promise<HandlerResult> {
  const { db, caller, signal, body } = call
  const organization_id = caller.organization.id
  const text = parseSearchText(body.text, stack_id)
  const digest = digestOf(stack_id, body.text)
  let definitions = await currentDefinitions(db, organization_id, signal)
  const keys = searchedKeys(definitions).get(stack_id) ?? throwUnsearchable(definitions, stack_id)
  await beginFollower(db, organization_id, searchFollowerName, signal)
  const searched = { organization_id, stack_id, text }
  const position: Position = { direction: 'asc', size: body.size ?? defaultSize }
  let last = body.cursor === undefined ? undefined : parseCursor(body.cursor, digest)
  let page: FoundPage = { places: [], has_more: false, sequence: 0 }
  // A page that is sent in parts is read on after its last item, if an item was deleted meanwhile.
  const readRows = async ({ size, maxRowBytes }: Position): Promise<RowsOfPage> => {
    const rows: string[] = []
    const ids: string[] = []
    do {
      page = await findPage(db, searched, keys, { after: last, size: size - rows.length, signal })
      last = page.places.at(-1) ?? last
      const found = page.places.map(({ id }) => id)
      const read = maxRowBytes === 0 ? undefined : await readFound(call, stack_id, found)
      rows.push(...(read?.rows ?? found))
      ids.push(...(read?.ids ?? found))
      definitions = read?.definitions ?? definitions
      // Deleted entities are left out. The index has them until the follower has seen the deletion.
    } while (page.has_more && rows.length < size)
    return { rows: rows.join('\n'), ids, has_more: page.has_more, definitions }
  }
  const lastMembers = () => {
    const next_cursor = page.has_more && last ? printCursor(last, digest) : null
    return `,"next_cursor":${JSON.stringify(next_cursor)},"sequence":${page.sequence}`
  }
  const include = body.labels ? withLabels(labeler(call, { stack_id })) : undefined
  return answerPage(call, { stack_id, position, include, lastMembers }, readRows)
}

/** Reads the rows of the entities that exist. Past the size of a whole page, it returns ids in place of rows. */
async function readFound({ db, caller, signal }: Call<SearchBody>, stack_id: number, found: string[]) {
  if (found.length === 0) return undefined
  const { rows, definitions } = await readPortion(
    db,
    caller.organization.id,
    stack_id,
    { ids: found, minBytes: maxWholeBytes },
    signal,
  )
  const ids = found.filter((_, index) => rows[index] !== null)
  return { rows: [...rows.filter(row => row !== null), ...found.slice(rows.length)], ids, definitions }
}

type FoundPage = { places: Place[]; has_more: boolean; sequence: number }
type PageOptions = { after: Place | undefined; size: number; signal: Signal }
type State = {
  head: number
  /** Null if the follower has never worked for the organization. */
  sequence: number | null
  keys: string[] | null
  indexed: number | null
  total: number | null
  is_ready: boolean | null
}

function findPage(
  db: Database,
  searched: Searched,
  keys: string[],
  { after, size, signal }: PageOptions,
): Promise<FoundPage> {
  return db.transaction(
    async tx => {
      const { organization_id, stack_id } = searched
      const [state] = await tx.query<State>(readSearchStateSql, [organization_id, stack_id])
      // Before its first change an organization has nobody to index.
      if (state!.head === 0) return { places: [], has_more: false, sequence: 0 }
      throwUnlessReady(state!, keys)
      const places = await findPlaces(tx, searched, after, size + 1)
      return { places: places.slice(0, size), has_more: places.length > size, sequence: state!.sequence ?? 0 }
    },
    { signal, readsFirst: true },
  )
}

function throwUnlessReady({ is_ready, indexed, total, ...state }: State, keys: readonly string[]) {
  const isCurrent = state.keys !== null && state.keys.join('\n') === keys.join('\n')
  if (isCurrent && is_ready) return
  const progress = isCurrent ? `${Math.min(indexed!, total!)} of about ${total} are done.` : 'It begins in a moment.'
  refuse(
    'operation_failed',
    `kith is still indexing the words that a search finds. ${progress} Retry in a few seconds.`,
    {
      status: 503,
      headers: { 'Retry-After': '2' },
    },
  )
}

function throwUnsearchable({ attributes, stacks }: Definitions, stack_id: number): never {
  const candidates = attributes.filter(
    ({ owner_stack_id, type, state }) => owner_stack_id === stack_id && type === 'text' && state === 'active',
  )
  const { key } = stacks.find(({ id }) => id === stack_id)!
  const advice = candidates.map(
    attribute => `PATCH /v1/schema/attributes/${attribute.id} {"searchable": true} (${attribute.key})`,
  )
  const declare = `POST /v1/schema/attributes {"owner": "${key}", "key": …, "type": "text", "searchable": true}`
  const message = `has no searchable attribute: ${advice.slice(0, 5).join(', or ') || declare}`
  return refuse('invalid_parameter', 'The stack has no searchable attribute.', { details: [{ path: '', message }] })
}

/** A cursor belongs to the text of its search. */
const digestOf = (stack_id: number, text: string) =>
  createHash('sha256').update(`${stack_id} ${text}`).digest('base64url').slice(0, 12)

const printCursor = ({ rank, id }: Place, digest: string) =>
  Buffer.from(JSON.stringify([rank, id, digest])).toString('base64url')

function parseCursor(cursor: string, digest: string): Place {
  try {
    const [rank, id, of, ...rest] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown[]
    const isRank = Number.isInteger(rank) && (rank as number) >= 0 && (rank as number) <= maxRank
    if (isRank && typeof id === 'string' && isUuid(id) && of === digest && rest.length === 0)
      return { rank: rank as number, id }
  } catch {}
  return refuse('invalid_parameter', 'The request has invalid values. See details.', {
    details: [{ path: '/cursor', message: 'must be the next_cursor of a page with the same text' }],
  })
}

/** More than the typos that all words of a text may have. */
const maxRank = 1_000
