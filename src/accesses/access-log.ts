import { randomUUID } from 'node:crypto'
import type { Database } from '../db/db.ts'
import type { Observer } from '../process/observer.ts'
import type { ShownOfStack } from '../route/shown.ts'
import type { SecurityEvent } from '../values/security-events.ts'
import { type AccessContext, type AccessKind, type Batch, type Entry, partsOf, toBatch } from './batch.ts'
import { insertBatchSql } from './sql.ts'

/** A request as the access log records it. Only a security event has `event` and `target`. */
export type AccessRequest = Omit<AccessContext, 'stack_id'> & { organization_id: number; request_id: string }

/** Entries are stored this long after the first one, so that a crash loses less than a second of entries. */
const flushMs = 500
const retryMs = 1_000
/**
 * The maximum number of entries that are stored at once. Twice as many may wait for the database. An id counts as a
 * tenth of an entry.
 */
const maxPending = 25_000
const idsPerEntry = 10

type Options = {
  db: Database
  /** With `strict`, {@link AccessLog.record} waits until its entries are stored. */
  mode: 'on' | 'strict'
  observer: Pick<Observer, 'accesses'>
  report: (problem: string) => void
}

const sizeOf = (entries: readonly Entry[]) => entries.reduce((sum, { ids }) => sum + 1 + ids.length / idsPerEntry, 0)

type Pending = { organization_id: number; kind: AccessKind; entries: Entry[] }
type Unstored = Batch & { organization_id: number; size: number; count: number }

type Operation = { event: SecurityEvent; target: string; command: string }

/** Logs an operator's command as a security event of some organizations. */
export async function storeOperation(
  db: Database,
  organizations: readonly number[],
  { event, target, command }: Operation,
): Promise<void> {
  const asked = { subject: 'cli', role: null, method: '', route: command, status: 0, ip: '' }
  const context = { event, target, ...asked, stack_id: null }
  const entry = { at: Date.now(), context, ids: [], count: 0, request_id: randomUUID() }
  const batch = toBatch('security', [entry])
  for (const organization_id of organizations) await insertBatch(db, organization_id, batch)
}

const insertBatch = (db: Database, organization_id: number, { id, kind, hashes, entries }: Batch) =>
  db.query(insertBatchSql, [organization_id, id, kind, hashes, entries])

/**
 * The access log of a process. It collects entries and stores them in batches, one organization per batch. With `on`,
 * responses do not wait for the log. kith keeps a batch that the database does not store, and tries again. Beyond a
 * bound it drops the oldest entries.
 */
export class AccessLog {
  readonly #options: Options
  #pending = new Map<string, Pending>()
  #contexts = new Map<string, AccessContext>()
  #unstored: Unstored[] = []
  #size = 0
  #timer: NodeJS.Timeout | undefined
  #flushing: Promise<void> | undefined
  #isStopped = false
  /** Whether the last attempt to store failed. The log reports this once, and the connections report the cause. */
  #isFailing = false

  constructor(options: Options) {
    this.#options = options
  }

  get isStrict(): boolean {
    return this.#options.mode === 'strict'
  }

  /**
   * Records the entities that a request has shown, or the security event that it was. With `strict`, returns a promise
   * that rejects if the entries cannot be stored.
   */
  record(kind: AccessKind, request: AccessRequest, shown: readonly ShownOfStack[]): Promise<void> | undefined {
    const at = Date.now()
    const { organization_id, request_id } = request
    const entries =
      shown.length === 0
        ? [{ at, context: this.#contextOf(request, null), ids: [], count: 0, request_id }]
        : shown.map(({ stack_id, ids, count }) => {
            return { at, context: this.#contextOf(request, stack_id), ids, count, request_id }
          })
    this.#options.observer.accesses('recorded', entries.length)
    if (this.isStrict) return this.#store(organization_id, kind, entries)
    this.#size += sizeOf(entries)
    const key = `${organization_id} ${kind}`
    const pending = this.#pending.get(key)
    if (pending) pending.entries.push(...entries)
    else this.#pending.set(key, { organization_id, kind, entries })
    if (this.#size >= maxPending) this.#flush()
    else this.#timer ??= setTimeout(() => this.#flush(), flushMs)
    return undefined
  }

  /** Stores the remaining entries. Entries that are recorded later are stored too. */
  async stop(): Promise<void> {
    this.#isStopped = true
    clearTimeout(this.#timer)
    await this.#flushing
    await this.#storePending()
    if (this.#unstored.length > 0) this.#drop(this.#unstored.splice(0), 'the service stops')
  }

  /** Returns the same object for all entries of a batch with this context. */
  #contextOf(request: AccessRequest, stack_id: number | null): AccessContext {
    const { event, target, subject, role, method, route, status, ip } = request
    const key = `${stack_id}\0${status}\0${method}\0${route}\0${subject}\0${role}\0${ip}\0${event}\0${target}`
    let context = this.#contexts.get(key)
    if (!context) {
      context = { event, target, subject, role, method, route, status, stack_id, ip }
      if (!this.isStrict) this.#contexts.set(key, context)
    }
    return context
  }

  #flush() {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#flushing ??= this.#storePending().finally(() => {
      this.#flushing = undefined
      const waits = this.#pending.size > 0 || this.#unstored.length > 0
      if (waits && !this.#isStopped)
        this.#timer ??= setTimeout(() => this.#flush(), this.#unstored.length > 0 ? retryMs : flushMs)
    })
    // The number of entries grows while the database stores none.
    if (this.#size >= 2 * maxPending) this.#dropOldest()
  }

  async #storePending(): Promise<void> {
    this.#cut()
    while (this.#unstored.length > 0) {
      const batch = this.#unstored[0]!
      try {
        await insertBatch(this.#options.db, batch.organization_id, batch)
      } catch {
        if (!this.#isFailing) this.#options.report('the access log could not be stored, and is tried again')
        this.#isFailing = true
        return
      }
      this.#isFailing = false
      // If the batch was dropped in the meantime, it is no longer the first.
      if (this.#unstored[0] === batch) {
        this.#unstored.shift()
        this.#size -= batch.size
      }
    }
  }

  /** Makes batches of the pending entries. */
  #cut() {
    const pending = [...this.#pending.values()]
    this.#pending.clear()
    this.#contexts.clear()
    for (const { organization_id, kind, entries } of pending)
      for (const part of partsOf(entries)) {
        this.#unstored.push({ ...toBatch(kind, part), organization_id, size: sizeOf(part), count: part.length })
      }
  }

  #dropOldest() {
    this.#cut()
    const dropped: Unstored[] = []
    for (; this.#size >= maxPending && this.#unstored.length > 0; ) {
      const batch = this.#unstored.shift()!
      this.#size -= batch.size
      dropped.push(batch)
    }
    this.#drop(dropped, 'the database does not take them')
  }

  #drop(dropped: readonly Unstored[], reason: string) {
    const count = dropped.reduce((sum, batch) => sum + batch.count, 0)
    this.#options.observer.accesses('dropped', count)
    this.#options.report(`the access log lost its oldest ${count} entries, because ${reason}`)
  }

  async #store(organization_id: number, kind: AccessKind, entries: readonly Entry[]): Promise<void> {
    for (const part of partsOf(entries)) await insertBatch(this.#options.db, organization_id, toBatch(kind, part))
  }
}
