import type { BulkRequest } from '@kith/client'

/** What can be done with the chosen rows. */
export type BulkAction = 'set' | 'consent' | 'delete' | 'erase'

/** Whom an action is for. */
export type BulkTarget = { owner: string; filter: Record<string, unknown> } | { owner: string; ids: string[] }

export type BulkChange = BulkRequest['change']
