import type { Attribute, ConsentType, Definitions } from '@kith/client'
import { queryOptions, useQuery } from '@tanstack/react-query'
import { client, useWrite } from '../app/client.ts'
import { isOpen, mayUse } from '../app/field-rights.ts'
import { queryClient } from '../app/query-client.ts'
import { useScope } from '../app/session.tsx'

/** The definitions for a session without `schema:read`. */
export const noDefinitions: Definitions = { stacks: [], attributes: [], consent_types: [] }

/** The definitions that the role of the session opens. */
const openedBy = (definitions: Definitions): Definitions => ({
  ...definitions,
  stacks: definitions.stacks.filter(({ key }) => isOpen(key)),
  attributes: definitions.attributes.filter(({ owner, key }) => mayUse('read', owner, `attribute_values.${key}`)),
})

/** The definitions of the organization. All pages share one read. */
export const schemaQuery = queryOptions({
  queryKey: ['schema'],
  queryFn: async ({ signal }) => openedBy(await client.schema.get({ signal })),
  staleTime: 30_000,
})

/** The saved segments. */
export const segmentsQuery = queryOptions({
  queryKey: ['segments'],
  queryFn: ({ signal }) => client.segments.list({ signal }).all(),
  staleTime: 30_000,
})

/** The definitions, with the state of their request. A session without `schema:read` has none, and shows keys in place of names. */
export function useDefinitions() {
  const mayRead = useScope('schema:read')
  const { data, error, refetch, isLoading } = useQuery({ ...schemaQuery, enabled: mayRead })
  return { definitions: data ?? noDefinitions, hasDefinitions: data !== undefined, error, refetch, isLoading }
}

/**
 * A write of a definition. The definitions are read again before `onSuccess`, so that the next form starts from them.
 */
export const useDefinitionWrite = <Result, Body = void>(
  write: (body: Body, idempotencyKey: string) => Promise<Result>,
  onSuccess?: (result: Result) => unknown,
) =>
  useWrite(write, {
    async onSuccess(result) {
      await queryClient.invalidateQueries({ queryKey: schemaQuery.queryKey })
      await onSuccess?.(result)
    },
  })

/** The attributes that an owner has, by key. Archived ones are included, because their values are still read. */
export const attributesOf = ({ attributes }: Definitions, owner: string): Map<string, Attribute> =>
  new Map(attributes.filter(attribute => attribute.owner === owner).map(attribute => [attribute.key, attribute]))

/** Whether the entities of an owner are found by words: people, and records of a stack with a searchable attribute. */
export const isSearchable = (owner: string, { attributes }: Definitions): boolean =>
  owner === 'people' || attributes.some(each => each.owner === owner && each.searchable)

export const useIsSearchable = (owner: string): boolean => isSearchable(owner, useDefinitions().definitions)

/** Keys of owners: people first, then the stacks in the order of their names. */
export const ownersOf = ({ stacks }: Definitions): string[] => [
  'people',
  ...stacks.toSorted((one, other) => one.name.localeCompare(other.name)).map(({ key }) => key),
]

/** The name of a consent type, or its number if the session may not read the schema. */
export const consentTypeName = (types: readonly ConsentType[], id: number): string =>
  types.find(type => type.id === id)?.name ?? `#${id}`
