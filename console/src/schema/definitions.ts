import type { Definitions } from '@kith/client'
import { isKithError } from '@kith/client'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useSendOnce } from '../app/send-once.ts'
import { schemaQuery } from '../entity/schema.ts'

/** The definitions, with the state of their request. It shares its cache with `useSchema`. */
export const useDefinitions = () => useQuery({ ...schemaQuery, staleTime: 30_000 })

/** A write of a definition, with the Idempotency-Key for one that creates. The definitions are read again after it. */
export function useDefinitionWrite<Body, Result>(write: (body: Body, idempotencyKey: string) => Promise<Result>) {
  const queryClient = useQueryClient()
  const sendOnce = useSendOnce()
  return useMutation({
    mutationFn: (body: Body) => sendOnce(body, idempotencyKey => write(body, idempotencyKey)),
    onSuccess: () => queryClient.invalidateQueries({ queryKey: schemaQuery.queryKey }),
  })
}

/** Keys of owners: people first, then the stacks in the order of their names. */
export const ownersOf = ({ stacks }: Definitions): string[] => [
  'people',
  ...stacks.toSorted((one, other) => one.name.localeCompare(other.name)).map(({ key }) => key),
]

/** The messages of a refused request by the member that each concerns. */
export function fieldErrors(error: unknown): Partial<Record<string, string>> {
  const details = isKithError(error) ? error.details : []
  return Object.fromEntries(
    details
      .toReversed()
      .map(({ path, message }) => [
        path.split('/')[1] ?? '',
        `${path.split('/').slice(2).join(' ')} ${message}`.trim(),
      ]),
  )
}

/** Whether every detail of an error is shown at its field. */
export const isShownAtFields = (error: unknown, fields: readonly string[]): boolean => {
  const names = Object.keys(fieldErrors(error))
  return names.length > 0 && names.every(name => fields.includes(name))
}
