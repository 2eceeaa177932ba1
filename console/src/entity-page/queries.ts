import { type Attribute, type Change, type Definitions, type Filter, isKithError } from '@kith/client'
import { client, pagedQuery, readQuery } from '../app/client.ts'
import { type Entity, entitiesOf, idFieldOf, idOf } from '../entity/entities.ts'
import { isRelationship, targetOwner } from '../entity/fields.ts'
import { attributesOf } from '../entity/schema.ts'
import type { EntitySearch } from '../entity/search.ts'
import { attributePrefix } from '../filters/field-types.ts'

/** The person or record at an address, or the remains of a deleted one. Null if the address never had one. */
export const foundQuery = (address: Address) =>
  readQuery(
    ['entities', address.owner, 'one', address.identifier, address.by ?? null],
    async ({ signal }) => (await findEntity(address, signal)) ?? null,
  )

/** A person or record as it was at a moment, or in a version. */
export const pastQuery = (owner: string, id: string, moment: { at?: string } | { version?: number }) =>
  readQuery(['entities', owner, 'past', id, moment], ({ signal }) =>
    entitiesOf(owner).get({ id }, { ...moment, signal }),
  )

/** A relationship in one direction. `owner` is the owner of the entities on its other side. */
export type Relation = { attribute: Attribute; direction: 'outgoing' | 'incoming'; owner: string }

/** The people or records of an owner that relationships join to an entity. */
export type Linked = { key: string; owner: string; relations: readonly [Relation, ...Relation[]] }

/**
 * The entities that are linked to an entity, grouped: people by relationship, but records by stack, because several
 * relationships may lead to the same record.
 */
export function linkedTo(definitions: Definitions, owner: string, { attribute_values }: Entity): Linked[] {
  const active = definitions.attributes.filter(attribute => attribute.state === 'active' && isRelationship(attribute))
  const outgoing = active
    .filter(attribute => attribute.owner === owner && attribute_values[attribute.key] !== undefined)
    .map((attribute): Relation => ({ attribute, direction: 'outgoing', owner: targetOwner(attribute) }))
  const incoming = active
    .filter(attribute => targetOwner(attribute) === owner)
    .map((attribute): Relation => ({ attribute, direction: 'incoming', owner: attribute.owner }))
  const groups = Map.groupBy([...outgoing, ...incoming], relation =>
    relation.owner === 'people' ? `people ${relation.direction} ${relation.attribute.id}` : relation.owner,
  )
  return [...groups].map(([key, relations]) => ({
    ...{ key, owner: relations[0]!.owner },
    relations: relations as [Relation, ...Relation[]],
  }))
}

/**
 * The relationships between an item and an entity. A link shows the external identifier of its target, or the internal
 * one if it has none.
 */
export function relationsOf({ relations }: Linked, entity: Entity, item: Entity): Relation[] {
  return relations.filter(({ attribute: { key }, direction }) => {
    const [source, target] = direction === 'outgoing' ? [entity, item] : [item, entity]
    return [source.attribute_values[key]].flat().some(value => {
      if (typeof value === 'string') return value === target.external_id
      return typeof value === 'object' && value !== null && Object.values(value).includes(idOf(target))
    })
  })
}

/** The attribute with the time of a stack's records: its first time, else its first date. */
export function timeOf(definitions: Definitions, owner: string): Attribute | undefined {
  const own = [...attributesOf(definitions, owner).values()].filter(
    ({ state, cardinality }) => state === 'active' && cardinality === 'one',
  )
  return own.find(({ type }) => type === 'datetime') ?? own.find(({ type }) => type === 'date')
}

/** The time of a record in milliseconds. Undefined without a time. */
export function timeMsOf({ attribute_values }: Entity, time: Attribute | undefined): number | undefined {
  const timeMs = time ? Date.parse(String(attribute_values[time.key])) : Number.NaN
  return Number.isNaN(timeMs) ? undefined : timeMs
}

/** Sorts records by a time, newest first. Records without the time keep their order after the others. */
export function newestFirst(items: readonly Entity[], time: Attribute | undefined): readonly Entity[] {
  if (!time) return items
  const orderOf = (item: Entity) => timeMsOf(item, time) ?? Number.NEGATIVE_INFINITY
  return items.toSorted((one, other) => orderOf(other) - orderOf(one) || 0)
}

type LinkedPage = { size: number; after?: string | undefined; count?: true; signal: AbortSignal }

/**
 * A page of linked entities without duplicates, newest first: by the time if it has an index, else by their creation.
 */
export function readLinked(
  owner: string,
  entity: Entity,
  { owner: target, relations }: Linked,
  time: Attribute | undefined,
  { after, ...page }: LinkedPage,
) {
  const id = idOf(entity)
  const options = { ...page, after, labels: true as const }
  if (!time?.indexed) {
    const only = relations.length === 1 ? relations[0] : undefined
    const one = only && { attribute_key: only.attribute.key, direction: only.direction }
    return entitiesOf(owner)
      .related({ id }, { target, ...one, ...options })
      .page()
  }
  const leadsHere = { $some: { [idFieldOf(owner)]: id } }
  const $or = relations.map(({ attribute: { key }, direction }) => ({
    [direction === 'incoming' ? attributePrefix + key : `incoming.${owner}.${key}`]: leadsHere,
  }))
  const sort = { field: attributePrefix + time.key, direction: 'desc' }
  return entitiesOf(target)
    .filter({ $or } as Filter, { sort: sort as never, ...options })
    .page()
}

const pageSize = 10

/** The people or records that are linked to an entity, for their list. */
export const linkedQuery = (owner: string, entity: Entity, linked: Linked, time: Attribute | undefined) => {
  const relations = linked.relations.map(({ attribute }) => attribute.id)
  return pagedQuery(
    ['entities', owner, 'related', idOf(entity), entity.version, linked.key, relations, time?.indexed],
    at => readLinked(owner, entity, linked, time, { size: pageSize, count: true, ...at }),
  )
}

/**
 * The content of an address: a person or record, or the remains of one. `last` has the values from before the deletion,
 * unless the log has dropped them.
 */
export type Found =
  | { kind: 'present'; entity: Entity }
  | { kind: 'absent'; id: string; change: Change; last: Entity | undefined }

export type Address = { owner: string; identifier: string; by: EntitySearch['by'] }

const isMissing = (error: unknown) => isKithError(error, 'not_found')
const isMissingOrForbidden = (error: unknown) => isMissing(error) || isKithError(error, 'forbidden')
const isId = (owner: string, text: string) =>
  (owner === 'people' ? /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i : /^[\da-f]{24}$/i).test(text)

/** The result of `read`, or undefined if it is missing or this session may not read it. */
async function attempt<T>(read: () => Promise<T>, isExpected = isMissingOrForbidden): Promise<T | undefined> {
  try {
    return await read()
  } catch (error) {
    if (isExpected(error)) return undefined
    throw error
  }
}

/** Reads the entity at an address. Undefined if the address never had one. */
export async function findEntity({ owner, identifier, by }: Address, signal: AbortSignal): Promise<Found | undefined> {
  const isById = owner === 'people' ? by === 'id' : by !== 'external_id'
  if (isById) return isId(owner, identifier) ? findById(owner, identifier, signal) : undefined
  const entity = await lookUp(owner, identifier, signal)
  if (entity) return { kind: 'present', entity }
  const id = owner === 'people' ? await idOfDeleted(identifier, signal) : undefined
  if (id !== undefined) return findAbsent(owner, id, signal)
  return isId(owner, identifier) ? findById(owner, identifier, signal) : undefined
}

async function findById(owner: string, id: string, signal: AbortSignal): Promise<Found | undefined> {
  const entity = await attempt(() => entitiesOf(owner).get({ id }, { labels: true, signal }), isMissing)
  return entity ? { kind: 'present', entity } : findAbsent(owner, id, signal)
}

const maxIdentifier = 255

/** The entity with an external identifier or an alias. It looks people up, because browsers log the 404 of a read. */
async function lookUp(owner: string, external_id: string, signal: AbortSignal): Promise<Entity | undefined> {
  if (external_id.length > maxIdentifier) return undefined
  if (owner !== 'people') return attempt(() => entitiesOf(owner).get(external_id, { labels: true, signal }), isMissing)
  const { items } = await client.people.lookup({ external_id }, { signal })
  return items[0] as unknown as Entity | undefined
}

/**
 * The internal identifier of a deleted person, from the first line of the dossier. The last external identifier finds
 * this dossier.
 */
async function idOfDeleted(identifier: string, signal: AbortSignal): Promise<string | undefined> {
  return attempt(async () => {
    for await (const line of client.people.dossier(identifier, { signal }))
      return line.type === 'about' ? line.person.id : undefined
    return undefined
  })
}

async function findAbsent(owner: string, id: string, signal: AbortSignal): Promise<Found | undefined> {
  const history = await attempt(() => entitiesOf(owner).history({ id }, { size: 1, signal }).page())
  const change = history?.items[0]
  if (!change) return undefined
  const { operation, version } = change
  const last =
    operation === 'erase' || version === null || version < 2
      ? undefined
      : await attempt(() => entitiesOf(owner).get({ id }, { version: version - 1, signal }))
  return { kind: 'absent', id, change, last }
}
