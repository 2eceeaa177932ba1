import type { ConsentStatisticsBody } from '@kith/client'
import { client, readQuery } from '../app/client.ts'

export type Interval = ConsentStatisticsBody['interval']
const dayMs = 86_400_000
/** The time span of the plots, in days. */
const spans: Record<Interval, number> = { day: 29, week: 25 * 7, month: 335 }

/** The number of people who may be contacted, and the answers over time. */
export const statisticsQuery = (interval: Interval) =>
  readQuery(['consents', 'statistics', interval], ({ signal }) =>
    client.consents.statistics(
      { interval, from: new Date(Date.now() - spans[interval] * dayMs).toISOString() },
      { signal },
    ),
  )

export const checkpointQuery = readQuery(['ledger', 'checkpoint'], options => client.ledger.checkpoint(options))

export const ledgerKeysQuery = readQuery(['ledger', 'keys'], options => client.ledger.keys(options))
