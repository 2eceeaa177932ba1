import type { Definitions, Segment } from '@kith/client'
import { type UseQueryResult, useQuery } from '@tanstack/react-query'
import { client } from '../app/client.ts'
import { useScope } from '../app/session.tsx'
import { schemaQuery } from '../entity/schema.ts'

/** The definitions of the organization. Undefined data without the scope to read them. */
export function useDefinitions(): UseQueryResult<Definitions> {
  const canRead = useScope('schema:read')
  return useQuery({ ...schemaQuery, enabled: canRead, staleTime: 60_000 })
}

/** The saved segments. Undefined data without the scope to read them. */
export function useSegments(): UseQueryResult<Segment[]> {
  const canRead = useScope('schema:read')
  return useQuery({
    queryKey: ['segments'],
    queryFn: ({ signal }) => client.segments.list({ signal }).all(),
    enabled: canRead,
    staleTime: 60_000,
  })
}
