import type { Attribute, Definitions, Filter } from '@kith/client'
import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import { type Entity, entitiesOf, idFieldOf, idOf } from '../entity/entities.ts'
import { attributesOf } from '../entity/schema.ts'
import { attributePrefix } from '../filters/field-types.ts'
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

/** The attribute that says when a record of a stack happened: its first time, else its first date. */
export function timeOf(definitions: Definitions, owner: string): Attribute | undefined {
  const own = [...attributesOf(definitions, owner).values()].filter(
    ({ state, cardinality }) => state === 'active' && cardinality === 'one',
  )
  return own.find(({ type }) => type === 'datetime') ?? own.find(({ type }) => type === 'date')
}

/** Records in the order of a time, the newest first. Those without it keep their order after the others. */
export function newestFirst(items: readonly Entity[], time: Attribute | undefined): readonly Entity[] {
  if (!time) return items
  const timeMsOf = ({ attribute_values }: Entity) => {
    const timeMs = Date.parse(String(attribute_values[time.key]))
    return Number.isNaN(timeMs) ? Number.NEGATIVE_INFINITY : timeMs
  }
  return items.toSorted((one, other) => timeMsOf(other) - timeMsOf(one) || 0)
}

/**
 * The people or records on the other side of a relationship, the newest first: by the time, if it has an index and records link here, else
 * by their creation.
 */
export const relatedQuery = (owner: string, entity: Entity, relation: Relation, time: Attribute | undefined) => {
  const { attribute, direction, owner: target } = relation
  const id = idOf(entity)
  const sort = time?.indexed &&
    direction === 'incoming' && { field: attributePrefix + time.key, direction: 'desc' as const }
  return infiniteQueryOptions({
    queryKey: ['entities', owner, 'related', id, entity.version, attribute.id, direction, sort],
    queryFn: ({ pageParam, signal }) => {
      const page = { size: pageSize, labels: true as const, count: true as const, after: pageParam, signal }
      if (!sort) {
        const options = { target, attribute_key: attribute.key, direction, ...page }
        return entitiesOf(owner).related({ id }, options).page()
      }
      const filter = { [attributePrefix + attribute.key]: { $some: { [idFieldOf(owner)]: id } } } as Filter
      return entitiesOf(target)
        .filter(filter, { sort: sort as never, ...page })
        .page()
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
  })
}
