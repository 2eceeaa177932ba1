import { EventEmitter } from 'node:events'
import type { Database } from './db.ts'
import { perDatabase } from './per-database.ts'

const events = perDatabase(() => new EventEmitter<{ commit: [organizationId: number] }>().setMaxListeners(0))

/** Tells the listeners of this process that changes of an organization were committed. Other processes find them by polling. */
export function announceCommit(db: Database, organizationId: number): void {
  events(db).emit('commit', organizationId)
}

/** Calls the listener after each commit of this process that wrote changes. Returns a function that removes it. */
export function onCommit(db: Database, listener: (organizationId: number) => void): () => void {
  events(db).on('commit', listener)
  return () => void events(db).off('commit', listener)
}
