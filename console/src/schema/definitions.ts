import type { Definitions } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { useWrite } from '../app/write.ts'
import { schemaQuery } from '../entity/schema.ts'

/** The definitions, with the state of their request. It shares its cache with `useSchema`. */
export const useDefinitions = () => useQuery({ ...schemaQuery, staleTime: 30_000 })

/** A write of a definition. The definitions are read again after it. */
export const useDefinitionWrite = <Result, Body = void>(
  write: (body: Body, idempotencyKey: string) => Promise<Result>,
  onSuccess?: (result: Result) => unknown,
) => useWrite(write, { refresh: [schemaQuery.queryKey], ...(onSuccess && { onSuccess }) })

/** Keys of owners: people first, then the stacks in the order of their names. */
export const ownersOf = ({ stacks }: Definitions): string[] => [
  'people',
  ...stacks.toSorted((one, other) => one.name.localeCompare(other.name)).map(({ key }) => key),
]
