import type { Attribute } from '@kith/client'
import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import { type Entity, entitiesOf, idOf } from '../entity/entities.ts'
import { type Address, findEntity } from './find-entity.ts'

/** The person or record at an address, or the rest of a deleted one. Null if the address never had one. */
export const foundQuery = (address: Address) =>
  queryOptions({
    queryKey: ['entities', address.owner, 'one', address.identifier, address.by ?? null],
    queryFn: async ({ signal }) => (await findEntity(address, signal)) ?? null,
  })

/** A person or record as it was at a moment, or in a version. */
export const pastQuery = (owner: string, id: string, moment: { at?: string } | { version?: number }) =>
  queryOptions({
    queryKey: ['entities', owner, 'past', id, moment],
    queryFn: ({ signal }) => entitiesOf(owner).get({ id }, { ...moment, signal }),
  })

/** A relationship in one direction. `owner` is that of the entities on its other side. */
export type Relation = { attribute: Attribute; direction: 'outgoing' | 'incoming'; owner: string }

const pageSize = 10

/** The people or records on the other side of a relationship. */
export const relatedQuery = (owner: string, entity: Entity, { attribute, direction, owner: target }: Relation) =>
  infiniteQueryOptions({
    queryKey: ['entities', owner, 'related', idOf(entity), entity.version, attribute.id, direction],
    queryFn: ({ pageParam, signal }) =>
      entitiesOf(owner)
        .related(
          { id: idOf(entity) },
          {
            ...{ target, attribute_key: attribute.key, direction, size: pageSize, count: true, signal },
            after: pageParam,
          },
        )
        .page(),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
  })
