import type { Limits } from '../config.ts'
import { addressOf } from '../entities/handlers.ts'
import { uuidOfRecord } from '../entities/identifiers.ts'
import type { Kind } from '../entities/kind.ts'
import { findEntity, type Page, type Position, readRelated } from '../entities/page.ts'
import { printPage } from '../entities/print.ts'
import { readShownPage, type ShownPage } from '../entities/shown.ts'
import { type Detail, fail, pointer } from '../errors.ts'
import { isObjectId, isUuid } from '../formats.ts'
import type { Answer, Call } from '../http/route.ts'
import {
  currentDefinitions,
  type Definitions,
  definitionsAt,
  isRelationship,
  people_key,
  people_stack_id,
} from '../organizations/definitions.ts'
import { readFilteredPage } from './page.ts'
import type { UndeclaredKey } from './parse.ts'
import { default_size, type FilterBody, type ListBody, type RelatedBody } from './schema.ts'
import { readScopeOf, requireScopes, scopesOf } from './scopes.ts'

/** A page, and definitions that are no older than any row of it. */
export type Found = Page & { definitions: Definitions; warnings?: Detail[] }

/** A page of all entities of a stack. */
export async function listEntities(call: Call<ListBody>, stack_id: number): Promise<Answer> {
  const { db, caller, signal, body } = call
  const position = positionFrom(body.cursor_configuration, body.sorting_type, stack_id, call.limits)
  return pageAnswer(await readShownPage(db, caller.organization.id, stack_id, position, signal))
}

/**
 * A page of the entities of a stack that a filter holds of. 403 where it looks at a kind that the token may not read; under
 * `Prefer: handling=strict` 400 where it names an undeclared key that no entity carries.
 */
export async function filterEntities(call: Call<FilterBody>, stack_id: number): Promise<Found> {
  const { db, caller, signal, body, bound_from, preferences } = call
  const position = positionFrom(body.cursor_configuration, body.sort_direction, stack_id, call.limits)
  const found = await readFilteredPage(db, caller.organization.id, stack_id, body.filter ?? {}, position, {
    signal,
    bound_from,
    permit: condition => requireScopes(call, scopesOf(condition, stack_id)),
    refuseUncarried: preferences.handling === 'strict' ? throwUncarried : undefined,
  })
  return { ...(await defined(call, found)), warnings: found.uncarried.map(warningOf) }
}

function throwUncarried(keys: UndeclaredKey[]): never {
  return fail('invalid_parameter', 'The filter names keys that are not declared and that no entity carries.', {
    details: keys.map(warningOf),
  })
}

function warningOf({ stack_id, path }: UndeclaredKey): Detail {
  const entity = stack_id === people_stack_id ? 'person' : 'record of the stack'
  return { path, message: `is not declared, and no ${entity} carries it` }
}

/** A page of the entities of one stack that are linked with an entity, whose `kind` and address the path tells. */
export async function relatedEntities(
  kind: Pick<Kind, 'identifier' | 'noun'>,
  call: Call<RelatedBody>,
  stack_id: number,
): Promise<Found & { target_stack_id: number }> {
  const { db, caller, signal, body } = call
  const organization_id = caller.organization.id
  const definitions = await currentDefinitions(db, organization_id, signal)
  const target_stack_id = targetOf(body.target, definitions)
  const position = positionFrom(body.cursor_configuration, body.sorting_type, target_stack_id, call.limits)
  requireScopes(call, [readScopeOf(target_stack_id)])
  const ways = waysBetween(stack_id, target_stack_id, body, definitions)
  const id = await findSource(kind, call, stack_id)
  const around = { id, stack_id: target_stack_id, ...ways }
  const page = await readRelated(db, organization_id, around, position, signal)
  return { ...(await defined(call, page)), target_stack_id }
}

function refuseBody(path: string, message: string): never {
  return fail('invalid_parameter', 'The request breaks a rule.', { details: [{ path, message }] })
}

/** Of records the cursor is a record_id. */
function positionFrom(
  cursor: { size?: number | undefined; after_id?: string | undefined } = {},
  direction: 'asc' | 'desc' = 'desc',
  stack_id: number,
  { page }: Pick<Limits, 'page'>,
): Position {
  const { size = Math.min(default_size, page), after_id } = cursor
  if (after_id === undefined) return { size, direction }
  const of_people = stack_id === people_stack_id
  if (!(of_people ? isUuid : isObjectId)(after_id))
    refuseBody(
      pointer('cursor_configuration', 'after_id'),
      of_people ? 'must be the id of a person, a UUID' : 'must be a record_id, 24 hexadecimal digits',
    )
  return { size, direction, after_id: of_people ? after_id.toLowerCase() : uuidOfRecord(after_id) }
}

async function defined({ db, caller, signal }: Call<unknown>, page: Page): Promise<Found> {
  const version = page.reads.reduce((newest, read) => Math.max(newest, read.schema_version), 0)
  return { ...page, definitions: await definitionsAt(db, caller.organization.id, version, signal) }
}

function targetOf(target: string, { stacks }: Definitions): number {
  if (target === people_key) return people_stack_id
  return stacks.find(({ key }) => key === target)?.id ?? refuseBody('/target', 'is neither `people` nor a stack key')
}

/** The relationships of either side that lead to the other; archived ones too, whose links are still read. */
function waysBetween(
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
    refuseBody('/attribute_key', 'is no relationship between the two in that direction')
  return { outgoing, incoming }
}

async function findSource(kind: Pick<Kind, 'identifier' | 'noun'>, call: Call<unknown>, stack_id: number) {
  const { db, caller, signal } = call
  const id = await findEntity(db, caller.organization.id, stack_id, addressOf(call, kind), signal)
  return id ?? fail('not_found', `There is no such ${kind.noun}.`)
}

/** The payload of a page. */
export function showPage({ reads, has_more, definitions, warnings }: Found, stack_id: number): Answer {
  const rows = reads.map(({ row }) => row).join('\n')
  return pageAnswer({ ...printPage(rows, reads.length, definitions, stack_id), has_more }, warnings)
}

function pageAnswer({ items, has_more }: ShownPage, warnings: readonly Detail[] = []): Answer {
  const warned = warnings.length === 0 ? '' : `,"warnings":${JSON.stringify(warnings)}`
  return { status: 200, json: `{"items":[${items}],"has_more":${has_more}${warned}}` }
}
