import { type Filter, isKithError } from '@kith/client'
import { queryOptions } from '@tanstack/react-query'
import type { Session } from '../app/session.tsx'
import { type Entity, entitiesOf, idFieldOf } from '../entity/entities.ts'
import type { EntitySearch } from '../entity/search.ts'

/**
 * The address of a visited person or record. It has no name, because the service gives names only to permitted
 * sessions.
 */
export type Visited = { owner: string; identifier: string; by?: EntitySearch['by'] | undefined }

type Viewer = Pick<Session, 'name' | 'organization'>

const maxVisited = 8
const prefix = 'kith.recent.'
const storageKey = ({ name, organization }: Viewer) => `${prefix}${organization.key}.${name}`

/** The last visited entities in this browser, for one organization and one session name. */
export function readVisited(viewer: Viewer): Visited[] {
  try {
    return JSON.parse(localStorage.getItem(storageKey(viewer)) ?? '[]')
  } catch {
    return []
  }
}

export function noteVisit(viewer: Viewer, visited: Visited): void {
  const isSame = ({ owner, identifier }: Visited) => owner === visited.owner && identifier === visited.identifier
  const others = readVisited(viewer).filter(each => !isSame(each))
  localStorage.setItem(storageKey(viewer), JSON.stringify([visited, ...others].slice(0, maxVisited)))
}

/** Deletes the visited entities of this browser, for all sessions. */
export function forgetVisits(): void {
  for (const key of Object.keys(localStorage)) if (key.startsWith(prefix)) localStorage.removeItem(key)
}

/** The last visited people and records that the session may still read. */
export const visitedQuery = (viewer: Viewer) =>
  queryOptions({
    queryKey: ['entities', 'visited', storageKey(viewer)],
    queryFn: async ({ signal }) => {
      const visited = readVisited(viewer)
      const byOwner = [...Map.groupBy(visited, ({ owner }) => owner)]
      const found = (await Promise.all(byOwner.map(([owner, of]) => readEntities(owner, of, signal)))).flat()
      return visited.flatMap(each => found.find(one => isAt(each, one)) ?? [])
    },
    staleTime: 0,
  })

export type OwnedEntity = { owner: string; entity: Entity }

const isById = ({ owner, by }: Visited) => (owner === 'people' ? by === 'id' : by !== 'external_id')

const isAt = (visited: Visited, { owner, entity }: OwnedEntity) =>
  visited.owner === owner && visited.identifier === (isById(visited) ? entity[idFieldOf(owner)] : entity.external_id)

async function readEntities(owner: string, visited: readonly Visited[], signal: AbortSignal): Promise<OwnedEntity[]> {
  const $or = visited.map(each => ({ [isById(each) ? idFieldOf(owner) : 'external_id']: each.identifier }))
  const fields = [idFieldOf(owner), 'external_id'] as unknown as 'external_id'[]
  try {
    const { items } = await entitiesOf(owner)
      .filter({ $or } as Filter, { size: 20, labels: true, fields, signal })
      .page()
    return (items as unknown as Entity[]).map(entity => ({ owner, entity }))
  } catch (error) {
    // The stack no longer exists, or this session may not read it.
    if (isKithError(error, 'not_found') || isKithError(error, 'forbidden')) return []
    throw error
  }
}
