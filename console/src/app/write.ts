import { type QueryKey, useMutation, useQueryClient } from '@tanstack/react-query'
import { useSendOnce } from './send-once.ts'

type WriteOptions<Body, Result> = {
  /** The queries that are read again after the write. */
  refresh?: readonly QueryKey[]
  onSuccess?: (result: Result, body: Body) => unknown
  onError?: (error: Error) => unknown
}

/**
 * A write, with its state and its error. `write` gets an Idempotency-Key for a request that creates. The key stays while no response says
 * what became of the body.
 */
export function useWrite<Result, Body = void>(
  write: (body: Body, idempotencyKey: string) => Promise<Result>,
  { refresh = [], onSuccess, onError }: WriteOptions<Body, Result> = {},
) {
  const queryClient = useQueryClient()
  const sendOnce = useSendOnce()
  return useMutation({
    mutationFn: (body: Body) => sendOnce(body, idempotencyKey => write(body, idempotencyKey)),
    onSuccess: async (result, body) => {
      await onSuccess?.(result, body)
      await Promise.all(refresh.map(queryKey => queryClient.invalidateQueries({ queryKey })))
    },
    ...(onError && { onError }),
  })
}

/** A write as a button or a form uses it. */
export type Write<Body = void> = { mutate: (body: Body) => void; isPending: boolean; error: unknown }
