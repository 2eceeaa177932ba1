import { EndpointGroup } from './endpoint-group.ts'
import { type Failure, isFailure, KithConnectionError, KithTimeoutError } from './errors.ts'
import { Listing, numberOf } from './listing.ts'
import type { CallOptions } from './options.ts'
import type { OrganizationSchema, StackKey } from './organization.ts'
import { queryOf } from './query.ts'
import { pauseBeforeReconnect } from './retry.ts'
import { serverEvents } from './stream.ts'
import type { Transport } from './transport.ts'
import type { Change, ChangePage } from './wire.ts'

type OneOrMore<T> = T | readonly T[]

/**
 * Selects changes by kind, by the stacks of their records, by operation, by one person or record, or by the segments
 * that a person entered or left.
 */
export type ChangeFilter<S extends OrganizationSchema> = {
  subject?: OneOrMore<Change['subject']>
  stack?: OneOrMore<StackKey<S>>
  operation?: OneOrMore<Change['operation']>
  segment?: OneOrMore<string>
  /** A current or former internal or external identifier of people or records. */
  entity?: string
}

/**
 * A position in the change log: after the change with the number `after` (0 by default, the beginning). With `logId`,
 * the `log_id` of that number, the service refuses the position with 410 if the log has been renumbered.
 */
export type ChangePosition = { after?: number | undefined; logId?: string | undefined }

/** With `links: 'id'`, `before` and `after` show the targets of relationships by their internal identifiers, as they were written. */
type ChangeForm = { links?: 'id' }

/**
 * The options of a list of changes: `size` of them per request (100 by default, at most 1,000). If none matches yet, the service waits
 * up to `wait` seconds for the first, at most 20.
 */
export type ChangeListOptions<S extends OrganizationSchema> = ChangePosition &
  ChangeFilter<S> &
  ChangeForm &
  CallOptions & { size?: number; wait?: number }

/** The options of {@link ChangeEndpoints.follow}. The signal ends the iteration. */
export type FollowOptions<S extends OrganizationSchema> = ChangePosition &
  ChangeFilter<S> &
  ChangeForm &
  CallOptions & {
    /** Called before each attempt to connect again, with the reason and the pause in milliseconds. */
    onRetry?: (error: Error, pauseMs: number) => void
    /** Called when the service connects with a new warning, such as that the token sees no change. */
    onWarning?: (warning: string) => void
  }

/** The change log of an organization. */
export class ChangeEndpoints<S extends OrganizationSchema> extends EndpointGroup {
  /**
   * Lists the changes, oldest first. A page covers the changes up to the number `last`, which may be past its last
   * item. The reader is up to date when `last` equals `head`.
   *
   * ```ts
   * const page = await client.changes.list({ subject: 'person', size: 1000 }).page()
   * console.log(page.items.map(change => change.external_id).join()) // ada,grace
   * console.log(page.last === page.head) // true
   * ```
   */
  list({ logId, ...rest }: ChangeListOptions<S> = {}): Listing<Change, Omit<ChangePage, 'items'>> {
    const { after, subject, stack, operation, segment, entity, links, size, wait, ...options } = rest
    const read = async (position: string | undefined, isFirst: boolean) => {
      const at = { after: numberOf(position), log_id: logId, limit: size, wait: isFirst ? wait : undefined }
      const query = { ...at, subject, stack, operation, segment, entity, links }
      const page = await this.send('GET /v1/changes', { query }, options)
      const has_more = page.last < page.head
      return { ...page, has_more, next: has_more ? String(page.last) : null }
    }
    return new Listing(read, after === undefined ? undefined : String(after))
  }

  /**
   * Follows the change log: the changes after a position, then each new one as it happens. It reconnects after a broken
   * connection or a restart of the service, and continues after the last change, so that no change is missing or
   * repeated. The signal ends the iteration. Throws if the service refuses the request with 401 or 403, or with 410 if
   * the position is not one of this log.
   *
   * ```ts
   * for await (const change of client.changes.follow({ after: 0, subject: 'record' })) {
   *   console.log(change.operation, change.stack_key, change.external_id) // create orders o-1
   *   break
   * }
   * ```
   */
  follow(options: FollowOptions<S> = {}): ChangeStream {
    return new ChangeStream(this.transport, options)
  }
}

/** The changes that {@link ChangeEndpoints.follow} delivers. Iterating it again continues after `last`. */
export class ChangeStream implements AsyncIterable<Change> {
  readonly #transport: Transport
  readonly #options: FollowOptions<OrganizationSchema>
  #last: number
  #logId: string | undefined

  constructor(transport: Transport, options: FollowOptions<OrganizationSchema>) {
    this.#transport = transport
    this.#options = options
    this.#last = options.after ?? 0
    this.#logId = options.logId
  }

  /**
   * The number of the last change that the loop has finished, or a later one if the changes up to it do not match. A
   * later stream takes it as `after`. It does not include the change that the loop is processing.
   */
  get last(): number {
    return this.#last
  }

  /** The `log_id` of `last`. Undefined before the first connection, unless the options have it. */
  get logId(): string | undefined {
    return this.#logId
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Change, void, undefined> {
    const { signal, onRetry, onWarning } = this.#options
    const { random, sleep } = this.#transport
    const { retries = this.#transport.retries } = this.#options
    let hasAnswered = false
    let failures = 0
    let lastWarning: string | null = null
    const onResponse = (headers: Headers) => {
      hasAnswered = true
      this.#logId = headers.get('Kith-Log-Id') ?? this.#logId
      const warning = headers.get('X-Kith-Warning')
      if (warning !== null && warning !== lastWarning) onWarning?.(warning)
      lastWarning = warning
    }
    while (!signal?.aborted) {
      let failure: Failure = new KithConnectionError('The service ended the stream.', {})
      try {
        for await (const { id, data } of this.#connect(onResponse)) {
          if (signal?.aborted) return
          if (data !== undefined) yield data as Change
          if (id === undefined) continue
          this.#last = Number(id)
          failures = 0
        }
      } catch (error) {
        if (signal?.aborted) return
        if (!isFailure(error)) throw error
        failure = error
      }
      failures += 1
      failure.attempts = failures
      const pauseMs = pauseBeforeReconnect(failure, failures, random)
      hasAnswered ||= !(failure instanceof KithTimeoutError) && failure.status !== null
      // An address that has never answered is probably wrong.
      if (pauseMs === null || (!hasAnswered && failures > retries)) throw failure
      onRetry?.(failure, pauseMs)
      await sleep(pauseMs, signal).catch(error => {
        if (!signal?.aborted) throw error
      })
    }
  }

  #connect(onResponse: (headers: Headers) => void) {
    const { subject, stack, operation, segment, entity, links, ...rest } = this.#options
    const { onRetry: _, onWarning: __, after: ___, logId: ____, ...options } = rest
    const query = queryOf({ after: this.#last, log_id: this.#logId, subject, stack, operation, segment, entity, links })
    return this.#transport.stream({
      method: 'GET',
      path: `/v1/changes${query}`,
      options,
      format: serverEvents,
      onResponse,
    })
  }
}
