import { type Change, isKithError } from '@kith/client'
import { client } from '../app/client.ts'
import { type Entity, entitiesOf } from '../entity/entities.ts'
import type { EntitySearch } from '../entity/search.ts'

/**
 * The content of an address: a person or record, or the rest of one. `last` has the values from before the deletion, unless the log
 * has dropped them.
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

/** Reads what is at an address. Undefined if there never was anything. */
export async function findEntity({ owner, identifier, by }: Address, signal: AbortSignal): Promise<Found | undefined> {
  const isById = owner === 'people' ? by === 'id' : by !== 'external_id'
  if (isById) return isId(owner, identifier) ? findById(owner, identifier, signal) : undefined
  const entity = await lookUp(owner, identifier, signal)
  // A role may close all attributes.
  if (entity) return { kind: 'present', entity: { ...entity, attribute_values: entity.attribute_values ?? {} } }
  const id = owner === 'people' ? await idOfDeleted(identifier, signal) : undefined
  if (id !== undefined) return findAbsent(owner, id, signal)
  return isId(owner, identifier) ? findById(owner, identifier, signal) : undefined
}

async function findById(owner: string, id: string, signal: AbortSignal): Promise<Found | undefined> {
  const entity = await attempt(() => entitiesOf(owner).get({ id }, { labels: true, signal }), isMissing)
  return entity ? { kind: 'present', entity } : findAbsent(owner, id, signal)
}

const maxIdentifier = 255

/** The entity with an external identifier, or with an alias. A look-up of people is no refusal if there is nobody, which browsers log. */
async function lookUp(owner: string, external_id: string, signal: AbortSignal): Promise<Entity | undefined> {
  if (external_id.length > maxIdentifier) return undefined
  if (owner !== 'people') return attempt(() => entitiesOf(owner).get(external_id, { labels: true, signal }), isMissing)
  const { items } = await client.people.lookup({ external_id }, { signal })
  return items[0] as unknown as Entity | undefined
}

/** The last name of a deleted person leads to the first line of the dossier, which has the internal identifier. */
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
