import type { BulkRequest } from '@kith/client'

/** What can be done with the chosen rows. */
export type BulkAction = 'set' | 'consent' | 'delete' | 'erase'

/** The people or records that an action changes. */
export type BulkTarget = { owner: string; filter: Record<string, unknown> } | { owner: string; ids: string[] }

export type BulkChange = BulkRequest['change']
