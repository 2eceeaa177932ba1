import { searchedKeys } from '../entities/indexes/search-index.ts'
import { printEntity } from '../entities/read/entity-json.ts'
import { readPortion } from '../entities/read/entity-reader.ts'
import { labeler } from '../entities/read/labels.ts'
import { readableProjection } from '../entities/read/projection.ts'
import {
  currentDefinitions,
  type Definitions,
  peopleKey,
  peopleStackId,
  stackIdOf,
} from '../organizations/definitions.ts'
import type { Call } from '../route/call.ts'
import type { HandlerResult } from '../route/result.ts'
import { requireScope } from '../route/scopes.ts'
import { type Detail, pointer, refuseValues } from '../values/errors.ts'
import {
  beginIndexes,
  digestOf,
  type FoundPage,
  findPage,
  parseCursor,
  printCursor,
  type SearchedIndexes,
} from './find-page.ts'
import { defaultSize, maxOwners, type OwnersSearchBody } from './schema.ts'
import type { Place } from './search.ts'
import { parseSearchText } from './search-text.ts'
import { isSearchable, requireSearchable } from './searchable-fields.ts'

/** A page ends early when its hits reach this many bytes of JSON. */
const maxPageBytes = 1_048_576
/** Responses up to this size do not count against the memory limit (http/pipeline/send-result.ts). */
const uncountedCharacters = 64 * 1024

/**
 * Returns a page of the people and records of several stacks that match a text, by rank. Throws a Fault of 403 if the
 * token may not read one of the owners, and of 400 for an unknown owner.
 */
export async function searchOwners(call: Call<OwnersSearchBody>): Promise<HandlerResult> {
  const { context, caller, signal, body } = call
  const { size = defaultSize } = body
  const isOfAll = body.owners?.join() === everyOwner
  if (!isOfAll && body.owners?.some(owner => owner !== peopleKey))
    requireScope(caller, 'records:read', ' that a search of records needs')
  const definitions = await currentDefinitions(context, signal)
  const owners = isOfAll ? searchableOwners(caller, definitions) : (body.owners ?? [peopleKey])
  const searched = searchedIn(definitions, owners, body.text)
  for (const [index, stack] of searched.stacks.entries())
    requireSearchable(caller, stack, body.owners ? pointer('owners', index) : '')
  await beginIndexes(context.db, searched, signal)
  const digest = digestOf(
    searched.stacks.map(({ stack_id }) => stack_id),
    body.text,
  )
  let last = body.cursor === undefined ? undefined : parseCursor(body.cursor, digest)
  const hits: string[] = []
  let bytes = 0
  let page: FoundPage
  let isFull = false
  do {
    page = await findPage(context.db, searched, { after: last, size: size - hits.length, signal })
    const entities = await readEntities(call, searched, page.places)
    for (const place of page.places) {
      const json = entities(place)
      // The next page begins with this place.
      if (json === undefined || bytes >= maxPageBytes) {
        isFull = true
        break
      }
      last = place
      // The index contains deleted entities until the follower has read the deletion.
      if (json === null) continue
      call.shown.add(searched.stacks[place.stack]!.stack_id, place.id)
      hits.push(`{"owner":${JSON.stringify(owners[place.stack])},"entity":${json}}`)
      bytes += Buffer.byteLength(json)
    }
  } while (page.has_more && hits.length < size && !isFull)
  const has_more = page.has_more || isFull
  const next_cursor = has_more && last ? printCursor(last, digest) : null
  const json = `{"items":[${hits.join()}],${JSON.stringify({ has_more, next_cursor, sequence: page.sequence, owners }).slice(1)}`
  if (json.length <= uncountedCharacters) return { status: 200, json }
  return { status: 200, json, release: await call.memory.take(Buffer.byteLength(json)) }
}

/** The name that means all owners that the caller may search. */
const everyOwner = '*'

/**
 * The owners that the caller may search, up to the maximum of a search: people first, then the stacks with searchable
 * attributes, then the others. People without any, so that the search is refused like a search of people.
 */
function searchableOwners(caller: Call['caller'], definitions: Definitions): string[] {
  const keysByStack = searchedKeys(definitions)
  const stacks = caller.scopes.has('records:read') ? definitions.stacks : []
  const byWords = stacks.toSorted((one, other) => Number(keysByStack.has(other.id)) - Number(keysByStack.has(one.id)))
  const people = { id: peopleStackId, key: peopleKey }
  const searchable = [people, ...byWords].filter(({ id: stack_id }) =>
    isSearchable(caller, { stack_id, keys: keysByStack.get(stack_id) ?? [] }),
  )
  return (searchable.length > 0 ? searchable.slice(0, maxOwners) : [people]).map(({ key }) => key)
}

/**
 * The stacks of the owners. A stack without a searchable attribute has no index, so only its identifiers are searched.
 */
function searchedIn(definitions: Definitions, owners: readonly string[], text: string): SearchedIndexes {
  const keysByStack = searchedKeys(definitions)
  const details: Detail[] = []
  const stacks = owners.map((owner, index) => {
    const stack_id = stackIdOf(definitions, owner)
    const fault = (message: string) => details.push({ path: pointer('owners', index), message })
    if (stack_id === undefined) fault('must be `people` or the key of a stack')
    else if (owners.indexOf(owner) < index) fault('occurs twice')
    const parsed = parseSearchText(text, stack_id ?? peopleStackId, definitions.default_country)
    const keys = keysByStack.get(stack_id ?? peopleStackId)
    return { stack_id: stack_id!, keys: keys ?? [], text: keys ? parsed : { ...parsed, readings: [] } }
  })
  if (details.length > 0) refuseValues(...details)
  return { organization_id: definitions.organization_id, stacks }
}

/**
 * Reads the entities at places, with one statement per stack. Returns a function for the JSON at a place: null for an
 * entity that does not exist, undefined if the earlier entities of its stack already fill a page.
 */
async function readEntities(
  call: Call<OwnersSearchBody>,
  { stacks }: SearchedIndexes,
  places: readonly Place[],
): Promise<(place: Place) => string | null | undefined> {
  const { context, caller, signal, body } = call
  const entities = new Map<Place, string | null>()
  for (const [stack, found] of Map.groupBy(places, place => place.stack)) {
    const { stack_id } = stacks[stack]!
    const ids = found.map(({ id }) => id)
    const projection = readableProjection(caller, stack_id)
    const portion = { ids, minBytes: maxPageBytes, projection }
    const { rows, definitions } = await readPortion(context, stack_id, portion, signal)
    const labels = body.labels ? await labeler(call, { stack_id, projection })(ids) : undefined
    for (const [index, row] of rows.entries()) {
      const json = row === null ? null : printEntity(row, definitions, stack_id, projection)
      entities.set(found[index]!, json && labels ? withMembers(json, labels.of(ids[index]!)) : json)
    }
  }
  return place => entities.get(place)
}

/** The JSON of an object with added members, which begin with a comma. */
const withMembers = (json: string, members: readonly Buffer[]) => `${json.slice(0, -1)}${Buffer.concat(members)}}`
