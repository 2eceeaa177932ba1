import type { BatchResult, Operation } from './batch.ts'
import { type BatchOptions, Entities } from './entities.ts'
import type { ImportAnswer, ImportOptions } from './import.ts'
import type { CallOptions, WriteOptions } from './options.ts'
import type { BodyOf, EntityOf, OrganizationSchema } from './organization.ts'
import type { LookupBody } from './wire.ts'

/** The values that a write recognizes its person by. `mobile` is the phone number with its country. */
export type MatchKind = 'external_id' | 'email' | 'mobile'

/** Tried in this order; the first value that anybody has decides. */
export type Match = readonly MatchKind[]

/** Exactly one of an email, a phone number and an external identifier. */
export type LookupKey =
  | { email: string; mobile_prefix?: never; mobile_number?: never; external_id?: never }
  | { mobile_number: string; mobile_prefix?: string; email?: never; external_id?: never }
  | { external_id: string; email?: never; mobile_prefix?: never; mobile_number?: never }

/** One write of a batch of people. With `match`, an upsert needs no external identifier. */
export type PeopleOperation<S extends OrganizationSchema> =
  | Operation<S, 'people'>
  | { op: 'upsert'; external_id?: string; body: BodyOf<S, 'people'>; if_match?: number | '*' }

type Person<S extends OrganizationSchema> = EntityOf<S, 'people'>
type Body<S extends OrganizationSchema> = BodyOf<S, 'people'>

/** The endpoints of people: those of {@link Entities}, and those that recognize people by email and phone. */
export class People<S extends OrganizationSchema> extends Entities<S, 'people'> {
  /**
   * Finds the people who have an email, a phone number or an external identifier, at most 100. The email is compared in lower case.
   *
   * ```ts
   * await client.people.create({ external_id: 'joan', email: 'Joan@example.com' })
   * const { items } = await client.people.lookup({ email: 'joan@example.com' })
   * console.log(items[0]?.external_id) // joan
   * ```
   */
  async lookup(key: LookupKey, options?: CallOptions): Promise<{ items: Person<S>[]; has_more: boolean }> {
    const path = `${this.path}/lookup`
    const body: LookupBody = key
    const request = { method: 'POST', path, body, options, repeatable: true, writes: false } as const
    return (await this.transport.send(request)) as { items: Person<S>[]; has_more: boolean }
  }

  /**
   * Creates the person if it does not exist, else changes it like `patch`. A token without the read scope receives only
   * the identifiers. With `match`, a person is also recognized by email or phone. An `external_id` that differs from that of
   * the person becomes an alias. Rejects with `duplicate_entry` if several people have the value; `details` names them.
   *
   * ```ts
   * const match = ['external_id', 'email'] as const
   * await client.people.upsert({ match, external_id: 'shop-1', email: 'mary@example.com' })
   * const person = await client.people.upsert({ match, external_id: 'news-7', email: 'Mary@example.com' })
   * console.log(person.external_id, (await client.people.get('news-7')).id === person.id) // shop-1 true
   * ```
   */
  override upsert(
    body: Body<S> & ({ external_id: string; match?: Match } | { external_id?: string; match: Match }),
    options?: WriteOptions,
  ): Promise<Person<S>> {
    return super.upsert(body as Body<S> & { external_id: string }, options)
  }

  /**
   * Sends up to 1,000 writes in one request. Each succeeds or fails on its own. With `atomic`, all succeed or none
   * does, and the first failure rejects the call. `match` applies to the upserts.
   *
   * ```ts
   * const { items } = await client.people.batch(
   *   [
   *     { op: 'upsert', body: { email: 'linus@example.com', first_name: 'Linus' } },
   *     { op: 'upsert', external_id: 'crm-9', body: { email: 'Linus@example.com' } },
   *   ],
   *   { match: ['email'] },
   * )
   * console.log(items.map(({ status }) => status).join()) // 201,200
   * ```
   */
  override batch(
    operations: readonly PeopleOperation<S>[],
    options: BatchOptions & { match?: Match } = {},
  ): Promise<BatchResult> {
    return super.batch(operations as readonly Operation<S, 'people'>[], options)
  }

  /**
   * Upserts any number of people and sends them while it iterates `lines`, like {@link Entities.import}. With `match`, a person is
   * also recognized by email or phone, and the lines of one person take effect in their order.
   *
   * ```ts
   * const lines = [{ email: 'rosa@example.com' }, { email: 'Rosa@example.com', first_name: 'Rosa' }]
   * for await (const answer of client.people.import(lines, { match: ['email'] }))
   *   if ('received' in answer) console.log(answer.created, answer.updated) // 1 1
   * ```
   */
  override import(
    lines: AsyncIterable<Body<S> | string> | Iterable<Body<S> | string>,
    options: ImportOptions & { match?: Match } = {},
  ): AsyncIterable<ImportAnswer> {
    return super.import(lines, options)
  }
}
