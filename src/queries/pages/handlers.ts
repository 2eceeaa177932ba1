import type { EntityKind } from '../../entities/entity-kind.ts'
import { findEntity } from '../../entities/find-entity.ts'
import { addressOf } from '../../entities/handlers.ts'
import { answerPage, type PageEnd } from '../../entities/read/answer-page.ts'
import { entityPrinter } from '../../entities/read/entity-json.ts'
import { type Identifiers, readNamed } from '../../entities/read/entity-reader.ts'
import type { Included } from '../../entities/read/included.ts'
import { labeler, withLabels } from '../../entities/read/labels.ts'
import type { Count, Position, PositionToRead } from '../../entities/read/pagination.ts'
import {
  type Projection,
  projectionOf,
  readableProjection,
  wholeById,
  withLinksById,
} from '../../entities/read/projection.ts'
import {
  currentDefinitions,
  type Definitions,
  isRelationship,
  peopleStackId,
  readScopeOf,
  stackIdOf,
} from '../../organizations/definitions.ts'
import { yieldIfDue } from '../../process/event-loop.ts'
import type { Call } from '../../route/call.ts'
import { accessOf, mayRead, requireOpen, requireReadable } from '../../route/field-rights.ts'
import type { HandlerResult } from '../../route/result.ts'
import { requireScope } from '../../route/scopes.ts'
import { type Detail, pointer, refuse, throwBrokenRule, throwValueRefusal } from '../../values/errors.ts'
import { isObjectId, isUuid, uuidOfRecord } from '../../values/formats.ts'
import type { UndeclaredKey } from '../grammar/parse.ts'
import { requireNamed, scopesOf } from '../grammar/scopes.ts'
import { isMeasured, orderName } from '../grammar/sort.ts'
import type { FilterNotes, FilterOptions } from '../plan/reading.ts'
import {
  defaultPageSize,
  type FilterBody,
  type ListBody,
  type NamedBody,
  type PageBody,
  type RelatedBody,
  type SortBody,
} from '../schema.ts'
import { decodeCursor, encodeCursor, type PageOrder } from './cursor.ts'
import { includer } from './include.ts'
import { readFilteredPage } from './page.ts'
import { readRelatedPage } from './related-page.ts'

/** Returns a page of all entities of a stack. */
export function listEntities(call: Call<ListBody>, stack_id: number): Promise<HandlerResult> {
  const { sort, sorting_type } = call.body
  return answerFilter(call, { stack_id, sort, direction: sorting_type, directionPath: pointer('sorting_type') })
}

/**
 * Returns a page of the entities of a stack that satisfy a filter. Throws 403 if the filter uses a kind of entity that the
 * token may not read, and 400 if it names an undeclared key that no entity carries under `Prefer: handling=strict`.
 */
export function filterEntities(call: Call<FilterBody>, stack_id: number): Promise<HandlerResult> {
  const { filter, sort, sort_direction } = call.body
  const directionPath = pointer('sort_direction')
  return answerFilter(call, { stack_id, filter, sort, direction: sort_direction, directionPath })
}

type FilteredRequest = {
  stack_id: number
  filter?: unknown
  sort?: SortBody | undefined
  /** The direction of the identifiers, and its path in the request. */
  direction: 'asc' | 'desc' | undefined
  directionPath: string
}

async function answerFilter(
  call: Call<PageBody & { sort?: SortBody }>,
  request: FilteredRequest,
): Promise<HandlerResult> {
  const { context } = call
  const { stack_id, filter = {}, sort, direction } = request
  const position = sort ? sortedPositionFrom(call, sort, request) : positionFrom(call, direction, stack_id)
  const page = await pageOf(call, stack_id, position)
  const options = filterOptionsOf(call, stack_id)
  let notes: FilterNotes | undefined
  const readRows = async ({ isCounted, ...part }: PositionToRead) => {
    const read = await readFilteredPage(context, { stack_id, filter, sort, position: part, isCounted }, options)
    notes = read.notes
    return read
  }
  const lastMembers: typeof page.lastMembers = (...read) => page.lastMembers(...read) + printNotes(notes)
  return answerPage(call, { ...page, lastMembers }, readRows)
}

function sortedPositionFrom(
  call: Call<PageBody>,
  sort: SortBody,
  { stack_id, direction, directionPath }: FilteredRequest,
): Position {
  const { body, caller } = call
  if (!isMeasured(sort)) requireReadable(accessOf(caller, stack_id), sort.field, pointer('sort', 'field'))
  if (direction !== undefined)
    throwBrokenRule(directionPath, 'cannot be given with `sort`, which has its own direction')
  if (body.cursor_configuration?.after_id !== undefined)
    throwBrokenRule(pointer('cursor_configuration', 'after_id'), 'is no place in a sorted page: use `cursor`')
  const order = { field: orderName(sort), direction: sort.direction ?? 'asc' }
  return {
    ...shownOf(call, stack_id),
    direction: order.direction,
    ...placeOf(body.cursor_configuration, order),
  }
}

/** The members of a response about its filter, each after a comma. */
export const printNotes = ({ unusedKeys, evaluated_at }: FilterNotes = { unusedKeys: [], evaluated_at: undefined }) =>
  (evaluated_at === undefined ? '' : `,"evaluated_at":"${evaluated_at}"`) +
  (unusedKeys.length === 0 ? '' : `,"warnings":${JSON.stringify(unusedKeys.map(warningOf))}`)

/** The options of a request's filter: its deadline, the rights of its caller, and its preferences. */
export function filterOptionsOf(
  { caller, signal, boundFrom, preferences }: Call<unknown>,
  stack_id: number,
): FilterOptions {
  return {
    signal,
    boundFrom,
    caller,
    // A long page is read in parts, and relative times must mean the same in each part.
    nowMs: Date.now(),
    authorize: ({ condition, named, targetStackIds = [] }) => {
      const scopes = scopesOf(condition, stack_id).union(new Set(targetStackIds.map(readScopeOf)))
      for (const scope of scopes) requireScope(caller, scope)
      requireNamed(caller, named)
    },
    rejectUnusedKeys: preferences.handling === 'strict' ? throwUnusedKeys : undefined,
  }
}

/** Reads the page that a request asks for. */
async function pageOf(call: Call<PageBody & { sort?: SortBody }>, stack_id: number, position: Position) {
  const { fields, sort, cursor_configuration } = call.body
  const order: PageOrder = { field: sort && orderName(sort), direction: position.direction }
  const hasCursor = fields !== undefined || sort !== undefined || cursor_configuration?.cursor !== undefined
  return {
    stack_id,
    position,
    include: await addedReader(call, stack_id, position),
    isCounted: call.body.count,
    lastMembers: (end: PageEnd, counted: Count | undefined) =>
      (hasCursor ? `,"next_cursor":${nextCursorOf(order, end)}` : '') +
      (counted ? `,"count":${counted.count},"sequence":${counted.sequence}` : ''),
  }
}

/**
 * Returns how to read the additions to the items: included entities and labels. Undefined if the request asks for
 * neither.
 */
async function addedReader(
  call: Call<Pick<PageBody, 'include' | 'labels' | 'links'>>,
  stack_id: number,
  { projection }: Pick<Position, 'projection'>,
) {
  const { include, labels, links } = call.body
  const isById = links === 'id'
  const readIncluded = include && (await includer(call, stack_id, { keys: include, isById }))
  return labels ? withLabels(labeler(call, { stack_id, projection, include, isById }), readIncluded) : readIncluded
}

/** The cursor of the next page as JSON. */
function nextCursorOf(order: PageOrder, { after_id, after_term, has_more }: PageEnd): string {
  return has_more && after_id !== undefined ? JSON.stringify(encodeCursor(order, { after_id, after_term })) : 'null'
}

/** Throws a Fault of 400 for undeclared keys that no entity carries. */
export function throwUnusedKeys(keys: UndeclaredKey[]): never {
  return refuse('invalid_parameter', 'The filter names keys that are not declared and that no entity carries.', {
    details: keys.map(warningOf),
  })
}

/** A warning about an undeclared key that no entity carries. */
export function warningOf({ stack_id, key, path, segment, hint = '' }: UndeclaredKey): Detail {
  const entity = stack_id === peopleStackId ? 'person' : 'record of the stack'
  const where = segment === undefined ? '' : `leads to the segment ${segment}, whose key ${JSON.stringify(key)} `
  return { path, message: `${where}is not declared, and no ${entity} carries it${hint}` }
}

/**
 * Returns a page of the entities of one stack that are linked with an entity. The path has the address of the entity.
 */
export async function relatedEntities(
  kind: Pick<EntityKind, 'identifier' | 'noun'>,
  call: Call<RelatedBody>,
  sourceStackId: number,
): Promise<HandlerResult> {
  const { context, caller, signal, body } = call
  const definitions = await currentDefinitions(context, signal)
  const findSource = async () =>
    (await findEntity(context, sourceStackId, addressOf(call, kind), signal)) ??
    refuse('not_found', `There is no such ${kind.noun}.`)
  const stack_id = stackIdOf(definitions, body.target)
  if (stack_id === undefined) {
    await findSource()
    throwBrokenRule('/target', 'must be `people` or the key of a stack')
  }
  const position = positionFrom(call, body.sorting_type, stack_id)
  requireScope(caller, readScopeOf(stack_id))
  requireOpen(caller, stack_id, pointer('target'))
  const id = await findSource()
  const relationships = relationshipsBetween(sourceStackId, stack_id, call, definitions)
  const source = { id, stack_id, ...relationships }
  const page = await pageOf(call, stack_id, position)
  return answerPage(call, page, part => readRelatedPage(context, definitions, source, part, signal))
}

/**
 * The size of a page, and the members of its items. Throws 400 for unknown fields, and 403 for fields that the role
 * closes.
 */
export function shownOf(
  { body: { cursor_configuration, fields, links }, caller, limits: { page } }: Call<PageBody>,
  stack_id: number,
): Pick<Position, 'size' | 'projection'> {
  const { size = Math.min(defaultPageSize, page) } = cursor_configuration ?? {}
  const access = accessOf(caller, stack_id)
  const named = fields ? projectionOf(fields, stack_id) : readableProjection(caller, stack_id)
  for (const [index, name] of (fields ?? []).entries()) requireReadable(access, name, pointer('fields', index))
  if (links !== 'id') return { size, projection: named }
  return { size, projection: named ? withLinksById(named) : wholeById(stack_id) }
}

/** Returns the position of `cursor`. Throws 400 for a cursor of another order or a malformed one. */
function placeOf(
  { cursor }: PageBody['cursor_configuration'] & {} = {},
  order: PageOrder,
): Pick<Position, 'after_id' | 'after_term'> {
  if (cursor === undefined) return {}
  const place = decodeCursor(cursor, order)
  const path = pointer('cursor_configuration', 'cursor')
  if (place === 'invalid') return throwBrokenRule(path, 'must be the `next_cursor` of a page')
  if (place === 'other order') return throwBrokenRule(path, 'is the `next_cursor` of a page in another order')
  return place
}

/**
 * The position of a request in the order of the identifiers: a UUID for people, a record_id for records. Throws 400 if the
 * identifier or the cursor is malformed.
 */
function positionFrom(call: Call<PageBody>, direction: 'asc' | 'desc' = 'desc', stack_id: number): Position {
  const { body } = call
  const { after_id, cursor } = body.cursor_configuration ?? {}
  const shown = { ...shownOf(call, stack_id), direction }
  if (after_id !== undefined && cursor !== undefined)
    throwBrokenRule(pointer('cursor_configuration', 'after_id'), 'cannot be given with `cursor`')
  if (after_id === undefined) return { ...shown, ...placeOf(body.cursor_configuration, { direction }) }
  const isPeople = stack_id === peopleStackId
  if (!(isPeople ? isUuid : isObjectId)(after_id))
    throwBrokenRule(
      pointer('cursor_configuration', 'after_id'),
      isPeople ? 'must be the id of a person, a UUID' : 'must be a record_id, 24 hexadecimal digits',
    )
  return { ...shown, after_id: isPeople ? after_id.toLowerCase() : uuidOfRecord(after_id) }
}

/** The relationships between two stacks, by direction. Archived ones are included, because reads show their links. */
function relationshipsBetween(
  stack_id: number,
  target_stack_id: number,
  { body: { attribute_key, direction = 'both' }, caller }: Call<RelatedBody>,
  { attributes }: Definitions,
): { outgoing: number[]; incoming: number[] } {
  const between = (owner: number, target: number) =>
    attributes
      .filter(attribute => isRelationship(attribute) && attribute.owner_stack_id === owner)
      .filter(attribute => attribute.target_stack_id === target && (attribute_key ?? attribute.key) === attribute.key)
      .filter(({ key }) => mayRead(accessOf(caller, owner), `attribute_values.${key}`))
      .map(({ id }) => id)
  const outgoing = direction === 'incoming' ? [] : between(stack_id, target_stack_id)
  const incoming = direction === 'outgoing' ? [] : between(target_stack_id, stack_id)
  if (attribute_key !== undefined && outgoing.length + incoming.length === 0)
    throwBrokenRule('/attribute_key', 'is not a relationship between the two in that direction')
  return { outgoing, incoming }
}

/** The size of the rows of one statement. One statement usually reads all rows of a request. */
const portionBytes = 1_048_576
/** The memory reserved for the rows of a portion and the additions to them. */
const reservedBytes = 4 * 1_048_576

/** Returns the entities with these identifiers, in the order of the identifiers. */
export async function getEntities(kind: EntityKind, call: Call<NamedBody>, stack_id: number): Promise<HandlerResult> {
  const named = identifiersOf(kind, call.body)
  const { projection } = shownOf(call, stack_id)
  const readAdded = await addedReader(call, stack_id, { projection })
  const release = await call.memory.take(reservedBytes)
  return { status: 200, parts: partsOf(call, stack_id, { ...named, projection, readAdded, release }) }
}

function identifiersOf({ identifier }: EntityKind, { external_ids, ids }: NamedBody): Identifiers {
  if ((external_ids === undefined) === (ids === undefined))
    throwValueRefusal('', 'must have one of external_ids and ids', 'Name the entities by `external_ids` or by `ids`.')
  return external_ids
    ? { by: 'external_id', identifiers: external_ids }
    : { by: 'id', identifiers: ids!.map(id => identifier.toUuid(id)) }
}

type Named = Identifiers & {
  projection: Projection | undefined
  readAdded: ((ids: readonly string[]) => Promise<Included>) | undefined
  release: () => void
}

async function* partsOf(
  { context, signal, within, shown }: Call<NamedBody>,
  stack_id: number,
  { by, identifiers, projection, readAdded, release }: Named,
): AsyncGenerator<Buffer> {
  try {
    let opening = '{"items":['
    for (let from = 0; from < identifiers.length; ) {
      const selection = { by, identifiers: identifiers.slice(from), minBytes: portionBytes, projection }
      const { rows, definitions } = await within(() => readNamed(context, stack_id, selection, signal))
      const found = new Set(rows.flatMap(({ id, row }) => (row === null ? [] : id!)))
      shown.addAll(stack_id, found)
      const added = await within(async () => readAdded?.([...found]))
      await yieldIfDue()
      const print = entityPrinter(definitions, stack_id, projection, added)
      yield Buffer.from(opening + rows.map(({ row }) => (row === null ? 'null' : print(row))).join())
      opening = ','
      from += rows.length
    }
    yield Buffer.from(']}')
  } finally {
    release()
  }
}
