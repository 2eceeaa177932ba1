import { addressOf, type EntityAddress } from './address.ts'
import { EndpointGroup } from './endpoint-group.ts'
import { Listing, listingOfAll, numberOf, type PageOptions, pageOf } from './listing.ts'
import type { Call, CallOptions, WriteOptions } from './options.ts'
import type {
  Hold,
  HoldBody,
  RetentionPreview,
  RetentionRule,
  RetentionRuleBody,
  RetentionRulePatch,
  RetentionRun,
} from './wire.ts'

/** The options of a write of a retention rule or a hold. */
export type LifetimeOptions = CallOptions & Pick<WriteOptions, 'idempotencyKey'>

/** A person of a preview. */
export type RetentionPreviewPerson = RetentionPreview['items'][number]

/** The retention rules of an organization: they erase or delete people who have been in a segment for long. The scope is `people:erase`. */
export class RetentionRuleEndpoints extends EndpointGroup {
  /**
   * Creates a rule. It does nothing until it is active.
   *
   * ```ts
   * await client.segments.create({ key: 'gone', filter: { language: 'xx' } })
   * const rule = await client.retentionRules.create({ segment: 'gone', after_days: 1095, action: 'erase' })
   * console.log(rule.key, rule.active) // gone false
   * ```
   */
  create(body: RetentionRuleBody, options?: LifetimeOptions): Call<RetentionRule> {
    return this.send('POST /v1/retention-rules', { body }, options)
  }

  /**
   * Lists all rules.
   *
   * ```ts
   * console.log((await client.retentionRules.list().all()).length) // 0
   * ```
   */
  list(options?: CallOptions): Listing<RetentionRule> {
    return listingOfAll(() => this.send('GET /v1/retention-rules', {}, options))
  }

  /** Reads a rule. `paused` says why the rule has paused itself. */
  get(id: number, options?: CallOptions): Call<RetentionRule> {
    return this.send('GET /v1/retention-rules/{id}', { params: { id } }, options)
  }

  /** Changes, pauses (`active: false`) or resumes (`active: true`) a rule. */
  patch(id: number, body: RetentionRulePatch, options?: LifetimeOptions): Call<RetentionRule> {
    return this.send('PATCH /v1/retention-rules/{id}', { params: { id }, body }, options)
  }

  /** Deletes a rule. */
  async delete(id: number, options?: CallOptions): Promise<void> {
    await this.send('DELETE /v1/retention-rules/{id}', { params: { id } }, options)
  }

  /**
   * Reads the people that the rule would erase or delete today: their number, and the first ones. The token also needs
   * `people:read`.
   *
   * ```ts
   * await client.segments.create({ key: 'gone', filter: { language: 'xx' } })
   * const { id } = await client.retentionRules.create({ segment: 'gone', after_days: 1095, action: 'erase' })
   * console.log((await client.retentionRules.list().all()).map(rule => rule.id === id).join()) // true
   * ```
   */
  preview(id: number, options?: CallOptions): Call<RetentionPreview> {
    return this.send('GET /v1/retention-rules/{id}/preview', { params: { id } }, options)
  }

  /** Lists the runs of a rule in the last year, by day, newest first. */
  runs(id: number, options?: CallOptions): Listing<RetentionRun> {
    return listingOfAll(() => this.send('GET /v1/retention-rules/{id}/runs', { params: { id } }, options))
  }
}

/** Legal holds: no rule erases a held person, and no call without `override_hold`. The scope is `people:erase`. */
export class HoldEndpoints extends EndpointGroup {
  /**
   * Holds a person, or replaces the reason and the end of the hold.
   *
   * ```ts
   * await client.holds.set('ada', { reason: 'Case 2026-17' })
   * console.log((await client.holds.list().all()).length) // 1
   * await client.holds.end('ada')
   * ```
   */
  set(person: EntityAddress, body: HoldBody, options?: LifetimeOptions): Call<Hold> {
    const { at, params } = addressOf(person)
    return this.send(`POST /v1/people${at}/hold`, { params, body }, options)
  }

  /** Ends the hold of a person. */
  async end(person: EntityAddress, options?: CallOptions): Promise<void> {
    const { at, params } = addressOf(person)
    await this.send(`DELETE /v1/people${at}/hold`, { params }, options)
  }

  /**
   * Lists the holds that are in force.
   *
   * ```ts
   * console.log((await client.holds.list().all()).length) // 0
   * ```
   *
   * `person` is an internal identifier: only the holds of this person.
   */
  list({ size, after, person, ...options }: PageOptions & CallOptions & { person?: string } = {}): Listing<Hold> {
    const read = (after?: string) =>
      this.send('GET /v1/holds', { query: { after: numberOf(after), limit: size, person } }, options)
    return new Listing(after => pageOf(read(after), ({ id }) => id), after)
  }
}
