import { EventEmitter } from 'node:events'
import { type Database, rootOf } from '../db/db.ts'

type CommitEvents = EventEmitter<{ commit: [organizationId: number] }>

const eventsByDatabase = new WeakMap<Database, CommitEvents>()

/** Tells the listeners of this process that changes of an organization were committed. Other processes find them by polling. */
export function announceCommit(db: Database, organizationId: number): void {
  eventsByDatabase.get(rootOf(db))?.emit('commit', organizationId)
}

/** Calls the listener after each commit of this process that wrote changes. Returns a function that removes it. */
export function onCommit(db: Database, listener: (organizationId: number) => void): () => void {
  const events: CommitEvents = eventsByDatabase.get(rootOf(db)) ?? new EventEmitter()
  events.setMaxListeners(0)
  eventsByDatabase.set(rootOf(db), events)
  events.on('commit', listener)
  return () => void events.off('commit', listener)
}
