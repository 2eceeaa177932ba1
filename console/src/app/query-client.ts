import { QueryClient } from '@tanstack/react-query'

/**
 * What the console has read. The client repeats what may be repeated, so a query does not. A page does not ask again for what the loader of
 * its route has just read. A browser without a network may still reach a service on its own machine, and a write that waited for one would
 * be sent later, also if its form was cancelled meanwhile.
 */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: { retry: false, refetchOnWindowFocus: false, staleTime: 1_000, networkMode: 'always' },
    mutations: { networkMode: 'always' },
  },
})
