import { QueryClient } from '@tanstack/react-query'

/**
 * What the console has read. The client repeats what may be repeated, so a query does not. A page does not ask again for what the loader of
 * its route has just read.
 */
export const queryClient = new QueryClient({
  defaultOptions: { queries: { retry: false, refetchOnWindowFocus: false, staleTime: 1_000 } },
})
