import { useQuery } from '@tanstack/react-query'
import { client } from '../app/client.ts'
import { useScope } from '../app/session.tsx'

/** The number of the newest change. Undefined while it is unknown, or if the session may not read changes. */
export function useHead(): number | undefined {
  const mayRead = useScope('changes:read')
  const { data } = useQuery({
    queryKey: ['changes', 'head'],
    queryFn: async ({ signal }) => (await client.changes.list({ after: 0, limit: 1, signal })).head,
    enabled: mayRead,
    refetchInterval: 5_000,
  })
  return data
}
