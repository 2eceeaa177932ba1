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

/** The attributes that an owner has, by key. Archived ones are included, because their values are still read. */
export const attributesOf = ({ attributes }: Definitions, owner: string): Map<string, Attribute> =>
  new Map(attributes.filter(attribute => attribute.owner === owner).map(attribute => [attribute.key, attribute]))

/** The name of a consent type, or its number if the session may not read the schema. */
export const consentTypeName = (types: readonly ConsentType[], id: number): string =>
  types.find(type => type.id === id)?.name ?? `#${id}`
