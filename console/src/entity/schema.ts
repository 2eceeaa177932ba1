import type { Attribute, ConsentType, Definitions } from '@kith/client'
import { queryOptions, useQuery } from '@tanstack/react-query'
import { client } from '../app/client.ts'
import { useScope } from '../app/session.tsx'

const empty: Definitions = { stacks: [], attributes: [], consent_types: [] }

/** The definitions of the organization. Every page shares what one has read. */
export const schemaQuery = queryOptions({
  queryKey: ['schema'],
  queryFn: ({ signal }) => client.schema.get({ signal }),
})

/** The definitions of the organization. A session without `schema:read` sees none, and shows keys in place of names. */
export function useSchema(): Definitions {
  const mayRead = useScope('schema:read')
  const { data } = useQuery({ ...schemaQuery, enabled: mayRead, staleTime: 30_000 })
  return data ?? empty
}

export const isRelationship = ({ type }: Attribute): boolean => type === 'person' || type === 'stack'

/** The owner of the targets of a relationship: `people`, or the key of a stack. */
export const targetOwner = (attribute: Attribute): string =>
  attribute.type === 'person' ? 'people' : (attribute.target_stack ?? '')

/** The attributes that an owner has, by key. Archived ones are included, because their values are still read. */
export const attributesOf = ({ attributes }: Definitions, owner: string): Map<string, Attribute> =>
  new Map(attributes.filter(attribute => attribute.owner === owner).map(attribute => [attribute.key, attribute]))

/** The name of a consent type, or its number if the session may not read the schema. */
export const consentTypeName = (types: readonly ConsentType[], id: number): string =>
  types.find(type => type.id === id)?.name ?? `#${id}`
