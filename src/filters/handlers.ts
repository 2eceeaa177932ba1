import type { Limits } from '../config.ts'
import { answerPage } from '../entities/answer-page.ts'
import type { EntityKind } from '../entities/entity-kind.ts'
import { type RowsOfPage, readPageOfStack } from '../entities/entity-reader.ts'
import { addressOf } from '../entities/handlers.ts'
import { uuidOfRecord } from '../entities/identifiers.ts'
import { findEntity, type Page, type Position, readRelated } from '../entities/pagination.ts'
import { type Detail, pointer, refuse } from '../errors.ts'
import { isObjectId, isUuid } from '../formats.ts'
import type { Call, HandlerResult } from '../http/pipeline/route.ts'
import {
  currentDefinitions,
  type Definitions,
  definitionsAt,
  isRelationship,
  peopleKey,
  peopleStackId,
} from '../organizations/definitions.ts'
import { requireScope } from '../scopes.ts'
import { readFilteredPage } from './page.ts'
import type { UndeclaredKey } from './parse.ts'
import { defaultPageSize, type FilterBody, type ListBody, type RelatedBody } from './schema.ts'
import { readScopeOf, scopesOf } from './scopes.ts'

/** Returns a page of all entities of a stack. */
export async function listEntities(call: Call<ListBody>, stack_id: number): Promise<HandlerResult> {
  const { db, caller, signal, body } = call
  const position = positionFrom(body.cursor_configuration, body.sorting_type, stack_id, call.limits)
  return answerPage(call, { stack_id, position }, part =>
    readPageOfStack(db, caller.organization.id, stack_id, part, signal),
  )
}

/**
 * Returns a page of the entities of a stack that satisfy a filter. Throws 403 if the filter uses a kind of entity that the
 * token may not read, and 400 if it names an undeclared key that no entity carries under `Prefer: handling=strict`.
 */
export async function filterEntities(call: Call<FilterBody>, stack_id: number): Promise<HandlerResult> {
  const { db, caller, signal, body, boundFrom, preferences } = call
  const position = positionFrom(body.cursor_configuration, body.sort_direction, stack_id, call.limits)
  let warnings: readonly Detail[] = []
  const readRows = async (part: Position) => {
    const page = await readFilteredPage(db, caller.organization.id, stack_id, body.filter ?? {}, part, {
      signal,
      boundFrom,
      authorize: condition => {
        for (const scope of scopesOf(condition, stack_id)) requireScope(caller, scope)
      },
      rejectUnusedKeys: preferences.handling === 'strict' ? throwUnusedKeys : undefined,
    })
    warnings = page.unusedKeys.map(warningOf)
    return rowsOf(call, page)
  }
  const lastMembers = () => (warnings.length === 0 ? '' : `,"warnings":${JSON.stringify(warnings)}`)
  return answerPage(call, { stack_id, position, lastMembers }, readRows)
}

function throwUnusedKeys(keys: UndeclaredKey[]): never {
  return refuse('invalid_parameter', 'The filter names keys that are not declared and that no entity carries.', {
    details: keys.map(warningOf),
  })
}

function warningOf({ stack_id, path }: UndeclaredKey): Detail {
  const entity = stack_id === peopleStackId ? 'person' : 'record of the stack'
  return { path, message: `is not declared, and no ${entity} carries it` }
}

/** Returns a page of the entities of one stack that are linked with an entity. The path gives the address of the entity. */
export async function relatedEntities(
  kind: Pick<EntityKind, 'identifier' | 'noun'>,
  call: Call<RelatedBody>,
  sourceStackId: number,
): Promise<HandlerResult> {
  const { db, caller, signal, body } = call
  const organization_id = caller.organization.id
  const definitions = await currentDefinitions(db, organization_id, signal)
  const stack_id = targetOf(body.target, definitions)
  const position = positionFrom(body.cursor_configuration, body.sorting_type, stack_id, call.limits)
  requireScope(caller, readScopeOf(stack_id))
  const relationships = relationshipsBetween(sourceStackId, stack_id, body, definitions)
  const id = await findSource(kind, call, sourceStackId)
  const source = { id, stack_id, ...relationships }
  return answerPage(call, { stack_id, position }, async part =>
    rowsOf(call, await readRelated(db, organization_id, source, part, signal)),
  )
}

function throwInvalidBody(path: string, message: string): never {
  return refuse('invalid_parameter', 'The request breaks a rule.', { details: [{ path, message }] })
}

/** The position of a cursor, which is a UUID for people and a record_id for records. Throws 400 if it is malformed. */
function positionFrom(
  cursor: { size?: number | undefined; after_id?: string | undefined } = {},
  direction: 'asc' | 'desc' = 'desc',
  stack_id: number,
  { page }: Pick<Limits, 'page'>,
): Position {
  const { size = Math.min(defaultPageSize, page), after_id } = cursor
  if (after_id === undefined) return { size, direction }
  const isPeople = stack_id === peopleStackId
  if (!(isPeople ? isUuid : isObjectId)(after_id))
    throwInvalidBody(
      pointer('cursor_configuration', 'after_id'),
      isPeople ? 'must be the id of a person, a UUID' : 'must be a record_id, 24 hexadecimal digits',
    )
  return { size, direction, after_id: isPeople ? after_id.toLowerCase() : uuidOfRecord(after_id) }
}

async function rowsOf({ db, caller, signal }: Call<unknown>, { reads, has_more }: Page): Promise<RowsOfPage> {
  const version = reads.reduce((newest, read) => Math.max(newest, read.schema_version), 0)
  const definitions = await definitionsAt(db, caller.organization.id, version, signal)
  const ids = reads.map(({ id }) => id)
  return { rows: reads.map(({ id, row }) => row ?? id).join('\n'), ids, has_more, definitions }
}

function targetOf(target: string, { stacks }: Definitions): number {
  if (target === peopleKey) return peopleStackId
  return (
    stacks.find(({ key }) => key === target)?.id ??
    throwInvalidBody('/target', 'must be `people` or the key of a stack')
  )
}

/** The relationships between two stacks, by direction. Archived ones are included, because reads show their links. */
function relationshipsBetween(
  stack_id: number,
  target_stack_id: number,
  { attribute_key, direction = 'both' }: RelatedBody,
  { attributes }: Definitions,
): { outgoing: number[]; incoming: number[] } {
  const between = (owner: number, target: number) =>
    attributes
      .filter(attribute => isRelationship(attribute) && attribute.owner_stack_id === owner)
      .filter(attribute => attribute.target_stack_id === target && (attribute_key ?? attribute.key) === attribute.key)
      .map(({ id }) => id)
  const outgoing = direction === 'incoming' ? [] : between(stack_id, target_stack_id)
  const incoming = direction === 'outgoing' ? [] : between(target_stack_id, stack_id)
  if (attribute_key !== undefined && outgoing.length + incoming.length === 0)
    throwInvalidBody('/attribute_key', 'is not a relationship between the two in that direction')
  return { outgoing, incoming }
}

async function findSource(kind: Pick<EntityKind, 'identifier' | 'noun'>, call: Call<unknown>, stack_id: number) {
  const { db, caller, signal } = call
  const id = await findEntity(db, caller.organization.id, stack_id, addressOf(call, kind), signal)
  return id ?? refuse('not_found', `There is no such ${kind.noun}.`)
}
