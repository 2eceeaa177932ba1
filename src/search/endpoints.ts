import type { EntityKind } from '../entities/entity-kind.ts'
import { searchedKeys } from '../entities/indexes/search-index.ts'
import { answerPage } from '../entities/read/answer-page.ts'
import { type RowsOfPage, readPortion } from '../entities/read/entity-reader.ts'
import { labeler, withLabels } from '../entities/read/labels.ts'
import type { Position } from '../entities/read/pagination.ts'
import { type Projection, readableProjection } from '../entities/read/projection.ts'
import { currentDefinitions, type Definitions } from '../organizations/definitions.ts'
import type { Call } from '../route/call.ts'
import type { HandlerResult } from '../route/result.ts'
import type { Route } from '../route/route.ts'
import { refuse } from '../values/errors.ts'
import { beginIndexes, digestOf, type FoundPage, findPage, parseCursor, printCursor } from './find-page.ts'
import { defaultSize, type SearchBody, searchBody, searchPageSchema } from './schema.ts'
import { parseSearchText } from './search-text.ts'
import { requireSearchable } from './searchable-fields.ts'

const ranking =
  'All words of the text must be found: exactly, as the beginning of a word, or with typos. Case and accents do not count. Who has the ' +
  'text as identifier comes first, then who has all words exactly, then beginnings, then similar words with the fewest typos. Equal ' +
  'ranks are in order of their identifiers.'

const searched = {
  person: 'Finds people by their names, email, phone, external identifier and aliases, and by searchable attributes.',
  record:
    'Finds records by their external identifier and the attributes declared `searchable`; 400 if the stack has none.',
}

/** The endpoint that searches entities of a kind by words. */
export function searchEndpoints({ path, params, noun, plural, reads, answer, stackOf }: EntityKind): Route[] {
  return [
    {
      method: 'POST',
      path: `${path}/search`,
      params,
      scope: reads,
      fields: 'shown',
      prefersReader: true,
      operationId: `search${plural}`,
      summary: `Search ${plural.toLowerCase()}`,
      tag: plural,
      description: `${searched[noun]} ${ranking} kith indexes words after the writes: \`sequence\` is the number of the last change that the search includes. While an index is being built, the response is 503.`,
      body: searchBody,
      answer: searchPageSchema(answer),
      refusals: { 503: 'operation_failed' },
      handle: async call => searchEntities(call as Call<SearchBody>, await stackOf(call)),
    },
  ]
}

/** The maximum size of a page that one statement reads. The rows of a larger page are read in parts. */
const maxWholeBytes = 1_048_576

/**
 * Returns a page of the entities of a stack that match a text. Throws a Fault of 400, or of 503 while kith indexes
 * them.
 */
async function searchEntities(call: Call<SearchBody>, stack_id: number): Promise<HandlerResult> {
  const { context, signal, body } = call
  const { db, organization_id } = context
  const digest = digestOf([stack_id], body.text)
  let definitions = await currentDefinitions(context, signal)
  const text = parseSearchText(body.text, stack_id, definitions.default_country)
  const keys = searchedKeys(definitions).get(stack_id) ?? throwUnsearchable(definitions, stack_id)
  requireSearchable(call.caller, { stack_id, keys }, '')
  const searched = { organization_id, stacks: [{ stack_id, keys, text }] }
  const projection = readableProjection(call.caller, stack_id)
  await beginIndexes(db, searched, signal)
  const position: Position = { direction: 'asc', size: body.size ?? defaultSize, projection }
  let last = body.cursor === undefined ? undefined : parseCursor(body.cursor, digest)
  let page: FoundPage = { places: [], has_more: false, sequence: 0 }
  // A page that is sent in parts continues after its last item if an item was deleted in the meantime.
  const readRows = async ({ size, maxRowBytes }: Position): Promise<RowsOfPage> => {
    const rows: string[] = []
    do {
      page = await findPage(db, searched, { after: last, size: size - rows.length, signal })
      last = page.places.at(-1) ?? last
      const found = page.places.map(({ id }) => id)
      const read = maxRowBytes === 0 ? undefined : await readFound(call, { stack_id, projection }, found)
      rows.push(...(read?.rows ?? found))
      definitions = read?.definitions ?? definitions
      // The rows leave out deleted entities, which the index has until the follower has read the deletion.
    } while (page.has_more && rows.length < size)
    return { rows: rows.join('\n'), has_more: page.has_more, definitions }
  }
  const lastMembers = () => {
    const next_cursor = page.has_more && last ? printCursor(last, digest) : null
    return `,"next_cursor":${JSON.stringify(next_cursor)},"sequence":${page.sequence}`
  }
  const include = body.labels ? withLabels(labeler(call, { stack_id, projection })) : undefined
  return answerPage(call, { stack_id, position, include, lastMembers }, readRows)
}

type Shown = { stack_id: number; projection: Projection | undefined }

/** Reads the rows of the existing entities. Beyond the size of a whole page, it returns ids in place of rows. */
async function readFound({ context, signal }: Call<SearchBody>, { stack_id, projection }: Shown, found: string[]) {
  if (found.length === 0) return undefined
  const portion = { ids: found, minBytes: maxWholeBytes, projection }
  const { rows, definitions } = await readPortion(context, stack_id, portion, signal)
  const ids = found.filter((_, index) => rows[index] !== null)
  return { rows: [...rows.filter(row => row !== null), ...found.slice(rows.length)], ids, definitions }
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
