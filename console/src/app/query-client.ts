import { QueryClient } from '@tanstack/react-query'

/** What the console has read. The client repeats what may be repeated, so a query does not. */
export const queryClient = new QueryClient({
  defaultOptions: { queries: { retry: false, refetchOnWindowFocus: false } },
})
