import { QueryClient } from '@tanstack/react-query'

/**
 * The cache of the console. Queries do not retry, because the client does. Data stay fresh for a second, so that a page
 * does not refetch data that the loader of its route has just read. Requests do not wait for a network: an offline
 * browser may still reach a service on its own machine, and a waiting write would be sent later, even if its form was
 * cancelled meanwhile.
 */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: { retry: false, refetchOnWindowFocus: false, staleTime: 1_000, networkMode: 'always' },
    mutations: { networkMode: 'always' },
  },
})
