import { EventEmitter } from 'node:events'
import type { Context } from './context.ts'
import type { Database } from './db.ts'
import { perDatabase } from './per-database.ts'

const events = perDatabase(() => new EventEmitter<{ commit: [organizationId: number] }>().setMaxListeners(0))

/**
 * Informs the listeners of this process of a commit with changes of an organization. Other processes find the changes
 * by polling.
 */
export function announceCommit({ db, organization_id }: Context): void {
  events(db).emit('commit', organization_id)
}

/** Calls the listener after each commit of this process that wrote changes. Returns a function that removes it. */
export function onCommit(db: Database, listener: (organizationId: number) => void): () => void {
  events(db).on('commit', listener)
  return () => void events(db).off('commit', listener)
}
