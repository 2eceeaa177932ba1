import { createClient, isKithError } from '@kith/client'
import { infiniteQueryOptions, type QueryKey, queryOptions, useMutation } from '@tanstack/react-query'
import { useRef } from 'react'
import { queryClient } from './query-client.ts'

/** The client of the service that served this page. The session's cookie authenticates its requests. */
export const client = createClient({ url: location.origin, session: true, readYourWrites: true })

/** The query of a single request. */
export const readQuery = <Data>(
  queryKey: readonly unknown[],
  read: (options: { signal: AbortSignal }) => Promise<Data>,
) => queryOptions({ queryKey, queryFn: ({ signal }) => read({ signal }) })

/** The position where a page of a list begins, undefined for the first page. */
type PageAt = { after: string | undefined; signal: AbortSignal }

/** The query of a paginated list. */
export const pagedQuery = <Page extends { next: string | null }>(
  queryKey: readonly unknown[],
  read: (at: PageAt) => Promise<Page>,
) =>
  infiniteQueryOptions({
    queryKey,
    queryFn: ({ pageParam, signal }) => read({ after: pageParam, signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
  })

/** The interval at which a query retries: the service answers 503 while it builds an index. */
export const untilIndexed = ({ state: { error } }: { state: { error: unknown } }) =>
  isKithError(error) && error.status === 503 && 3_000

type WriteOptions<Body, Result> = {
  /** The queries that are refetched after the write. */
  refresh?: readonly QueryKey[]
  onSuccess?: (result: Result, body: Body) => unknown
  onError?: (error: Error) => unknown
}

/**
 * A write, with its state and its error. `write` gets an Idempotency-Key for a request that creates. The key stays the
 * same until a response settles the outcome.
 */
export function useWrite<Result, Body = void>(
  write: (body: Body, idempotencyKey: string) => Promise<Result>,
  { refresh = [], onSuccess, onError }: WriteOptions<Body, Result> = {},
) {
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

type Sent = { content: string; key: string; response?: Promise<unknown> | undefined }

/**
 * Returns a function that sends the body of a form with an Idempotency-Key. Until a response settles the outcome, the
 * same body has the same key, so pressing *Create* again creates no duplicate. A body that is being sent is not sent
 * again.
 */
export function useSendOnce() {
  const last = useRef<Sent>(undefined)
  return <Result>(body: unknown, send: (idempotencyKey: string) => Promise<Result>): Promise<Result> => {
    const content = JSON.stringify(body) ?? ''
    if (last.current?.content !== content) last.current = { content, key: newKey() }
    const sent = last.current
    sent.response ??= send(sent.key)
      .catch(error => {
        if (isStored(error)) sent.key = newKey()
        throw error
      })
      .finally(() => {
        sent.response = undefined
      })
    return sent.response as Promise<Result>
  }
}

/**
 * Whether the error is a refusal that the service stores under the key. The same body may be accepted later with
 * another key.
 */
const isStored = (error: unknown): boolean =>
  isKithError(error) && [400, 404, 409, 412, 422].includes(error.status) && !isStillRunning(error)

const isStillRunning = ({ status, code }: { status: number; code: string }) =>
  status === 409 && code === 'invalid_parameter'

/** 128 random bits. `crypto.randomUUID` is missing on pages without HTTPS. */
export const newKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), byte => byte.toString(16).padStart(2, '0')).join('')
