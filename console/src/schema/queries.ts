import { queryOptions } from '@tanstack/react-query'
import { client, pagedQuery } from '../app/client.ts'

export const settingsQuery = queryOptions({
  queryKey: ['settings'],
  queryFn: ({ signal }) => client.schema.settings({ signal }),
})

/** The keys that values of an owner have without a declaration. */
export const observedQuery = (owner: string) =>
  queryOptions({
    queryKey: ['schema', 'observed', owner],
    queryFn: ({ signal }) => client.schema.observed(owner, { signal }),
  })

/** The texts of a purpose, oldest first. */
export const consentTextsQuery = (id: number) =>
  pagedQuery(['consent-texts', id], at => client.schema.consentTypes.texts(id, { size: 100, ...at }).page())
