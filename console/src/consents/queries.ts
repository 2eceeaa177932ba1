import type { ConsentStatisticsBody } from '@kith/client'
import { queryOptions } from '@tanstack/react-query'
import { client } from '../app/client.ts'

export type Interval = ConsentStatisticsBody['interval']
const dayMs = 86_400_000
/** How far the plots go back, in days. */
const spans: Record<Interval, number> = { day: 29, week: 25 * 7, month: 335 }

/** How many people may be written to, and the answers over time. */
export const statisticsQuery = (interval: Interval) =>
  queryOptions({
    queryKey: ['consents', 'statistics', interval],
    queryFn: ({ signal }) =>
      client.consents.statistics(
        { interval, from: new Date(Date.now() - spans[interval] * dayMs).toISOString() },
        { signal },
      ),
  })

export const checkpointQuery = queryOptions({
  queryKey: ['ledger', 'checkpoint'],
  queryFn: ({ signal }) => client.ledger.checkpoint({ signal }),
})

export const ledgerKeysQuery = queryOptions({
  queryKey: ['ledger', 'keys'],
  queryFn: ({ signal }) => client.ledger.keys({ signal }),
})
