import type { AccessLogOptions } from '@kith/client'
import { client, pagedQuery } from '../app/client.ts'
import type { AccessLogSearch } from './search.ts'

/** The filter of the service. The service refuses an invalid identifier. */
export function filterOf({ from, to, ...filter }: AccessLogSearch): AccessLogOptions {
  return {
    ...filter,
    ...(from && { from: new Date(`${from}T00:00:00`).toISOString() }),
    ...(to && { to: new Date(`${to}T23:59:59.999`).toISOString() }),
  }
}

export const accessLogQuery = (search: AccessLogSearch, size = 50) =>
  pagedQuery(['access-log', search, size], at => client.access.log({ ...filterOf(search), size, ...at }).page())
