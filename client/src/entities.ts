import { addressOf, type EntityAddress } from './address.ts'
import { type BatchResult, batchBody, type Operation } from './batch.ts'
import { EntityReads } from './entity-reads.ts'
import { type ImportAnswer, type ImportOptions, importAnswers } from './import.ts'
import type { Call, CallOptions, Updated, UpdateOptions, WriteOptions, Written } from './options.ts'
import type { BodyOf, EntityOf, NewBodyOf, OrganizationSchema, Owner, PatchOf } from './organization.ts'
import { queryOf } from './query.ts'
import { ndjson } from './stream.ts'
import type { BatchDryRun, Job, JobPreview, PeopleBulkBody } from './wire.ts'

/** The options of a batch. With `atomic`, all of its writes succeed or none does. */
export type BatchOptions = CallOptions &
  Pick<WriteOptions, 'references' | 'erased' | 'idempotencyKey' | 'dryRun'> & { atomic?: boolean }

/** One change of all entities that a filter selects, or of the entities with these internal identifiers. */
export type BulkRequest = Omit<PeopleBulkBody, 'dry_run'>

/**
 * The endpoints of people, or of the records of one stack. Methods address an entity by its external identifier, or
 * by its internal one as `{ id }`. Every method rejects with a {@link KithError} if the service refuses
 * the request or fails, and with a {@link KithConnectionError} or {@link KithTimeoutError} if there is no response.
 */
export class Entities<S extends OrganizationSchema, O extends Owner<S>> extends EntityReads<S, O> {
  /**
   * Creates an entity, or completes the placeholder with this external identifier. Rejects with `duplicate_entry` if
   * the entity exists. An event that exists with the same content is returned unchanged instead.
   *
   * ```ts
   * const person = await client.people.create({
   *   external_id: 'mary',
   *   first_name: 'Mary',
   *   consents: [{ consent_type_id: 1, channel: 'email', state: true }],
   *   attribute_values: { city: 'London', orders: ['o-1'] },
   * })
   * console.log(person.version, person.email_consent) // 1 true
   * ```
   *
   * With `dryRun`, it returns what it would do, like every other write:
   *
   * ```ts
   * const { result, after, placeholders } = await client.people.create(
   *   { external_id: 'mary', attribute_values: { referrer: 'nobody-yet' } },
   *   { dryRun: true },
   * )
   * console.log(result, after?.external_id, placeholders[0]?.external_id) // created mary nobody-yet
   * ```
   */
  create<U extends WriteOptions = Record<never, never>>(
    body: NewBodyOf<S, O>,
    options?: U,
  ): Call<Written<U, EntityOf<S, O>>> {
    return this.send('POST ', { body }, options)
  }

  /**
   * Replaces an entity. Fields that the body omits are cleared, except the external identifier and the consent answers.
   *
   * ```ts
   * import { writable } from '@kith/client'
   *
   * const read = await client.people.get('ada')
   * await client.people.replace('ada', { ...writable(read), last_name: 'Byron' }, { ifMatch: read.version })
   * console.log((await client.people.get('ada')).last_name) // Byron
   * ```
   */
  replace<U extends UpdateOptions = Record<never, never>>(
    address: EntityAddress,
    body: BodyOf<S, O>,
    options?: U,
  ): Call<Updated<U, EntityOf<S, O>>> {
    return this.#update('PUT', address, body, options)
  }

  /**
   * Changes the fields that the body names: a value sets, `null` clears, an absent field stays. Attribute values are
   * merged by key.
   *
   * ```ts
   * const order = await client.stack('orders').patch(
   *   'o-1',
   *   { attribute_values: { total: 12, note: null } },
   *   { representation: true },
   * )
   * console.log(order.attribute_values.total) // 12
   * ```
   *
   * `$add` and `$remove` change single links of a relationship with many targets, and keep links that other writers add
   * concurrently:
   *
   * ```ts
   * const schema = { key: 'friends', owner: 'people', type: 'person', cardinality: 'many' } as const
   * await client.schema.attributes.create(schema)
   * await client.people.patch('ada', { attribute_values: { friends: ['bo', 'cy'] } })
   * await client.people.patch('ada', { attribute_values: { friends: { $add: ['di'], $remove: ['bo'] } } })
   * console.log((await client.people.get('ada')).attribute_values.friends) // [ 'cy', 'di' ]
   * ```
   */
  patch<U extends UpdateOptions = Record<never, never>>(
    address: EntityAddress,
    body: PatchOf<S, O>,
    options?: U,
  ): Call<Updated<U, EntityOf<S, O>>> {
    return this.#update('PATCH', address, body, options)
  }

  /**
   * Deletes an entity. It also returns `true` if the response to an attempt was lost and the retry finds no entity.
   *
   * ```ts
   * console.log(await client.stack('orders').delete('o-1')) // true
   * ```
   */
  delete<U extends WriteOptions = Record<never, never>>(address: EntityAddress, options?: U): Call<Written<U, true>> {
    const { at, params } = addressOf(address)
    return this.send(`DELETE ${at}`, { params }, options)
  }

  /**
   * Restores a deleted entity by its internal identifier, with its values, consent answers and links. Links from other
   * entities show it again. An entity that is not deleted is returned unchanged. Rejects with `duplicate_entry` if
   * another entity has taken the external identifier.
   *
   * ```ts
   * const { id } = await client.people.get('ada')
   * await client.people.delete('ada')
   * const restored = await client.people.restore({ id })
   * console.log(restored.external_id, restored.version) // ada 3
   * ```
   */
  restore<U extends WriteOptions = Record<never, never>>(
    { id }: { id: string },
    options?: U,
  ): Call<Written<U, EntityOf<S, O>>> {
    return this.send('POST /internal/{uuid}/restore', { params: { uuid: id, record_id: id } }, options)
  }

  /**
   * Creates the entity if it does not exist, else changes it like `patch`. A token without the read scope receives only
   * the identifiers.
   *
   * ```ts
   * const person = await client.people.upsert({ external_id: 'ada', first_name: 'Augusta' })
   * console.log(person.first_name, person.last_name) // Augusta Lovelace
   * ```
   */
  upsert<U extends WriteOptions = Record<never, never>>(
    body: PatchOf<S, O> & { external_id: string },
    options?: U,
  ): Call<Written<U, EntityOf<S, O>>> {
    return this.send('POST /upsert', { body }, options)
  }

  /**
   * Sends up to 1,000 writes in one request. Each succeeds or fails on its own. With `atomic`, all succeed or none
   * does, and the first failure rejects the call.
   *
   * ```ts
   * const { items, failed } = await client.people.batch([
   *   { op: 'patch', external_id: 'ada', body: { language: 'en' } },
   *   { op: 'delete', external_id: 'nobody' },
   * ])
   * console.log(items[0]?.status, items[1]?.error, failed) // 200 not_found 1
   * ```
   */
  batch<U extends BatchOptions = Record<never, never>>(
    operations: readonly Operation<S, O>[],
    options?: U,
  ): Call<Written<U, BatchResult, BatchDryRun>> {
    const { atomic, match, ...rest }: BatchOptions & { match?: readonly string[] } = options ?? {}
    return this.send('POST /batch', { body: batchBody(operations, { atomic, match }) }, rest)
  }

  /**
   * Begins a job that makes one change of many entities, in small sets. `client.jobs` shows its progress, and undoes
   * it.
   *
   * ```ts
   * const change = { op: 'delete' } as const
   * const { total } = await client.people.previewBulk({ filter: { language: 'xx' }, change })
   * const job = await client.people.bulk({ filter: { language: 'xx' }, change })
   * console.log(total, job.total) // 0 0
   * ```
   */
  bulk(request: BulkRequest, options?: CallOptions & Pick<WriteOptions, 'idempotencyKey'>): Call<Job> {
    return this.send('POST /bulk', { body: { ...request } }, options)
  }

  /** Returns how many entities {@link bulk} would change, and the changes that would be refused. */
  previewBulk(request: BulkRequest, options?: CallOptions): Call<JobPreview> {
    return this.send('POST /bulk', { body: { ...request } }, { ...options, dryRun: true })
  }

  /**
   * Upserts any number of entities and sends them while it iterates `lines`. A string is sent as a line of JSON
   * unchanged. The client does not retry an import, but sending all lines again is safe: stored lines change nothing.
   * Rejects with a {@link KithImportError} if the service cannot continue. The request is sent only when the result is
   * iterated. A browser must support streaming request bodies.
   *
   * ```ts
   * const people = [{ external_id: 'ada', language: 'en' }, { external_id: 'mary', email: 'none' }]
   * for await (const answer of client.people.import(people)) {
   *   if ('line' in answer) console.log(answer.line, answer.error) // 2 invalid_parameter
   *   if ('received' in answer) console.log(answer.updated, answer.failed) // 1 1
   * }
   * ```
   *
   * With `match`, people are also recognized by email or phone:
   *
   * ```ts
   * const lines = [{ email: 'rosa@example.com' }, { email: 'Rosa@example.com', first_name: 'Rosa' }]
   * for await (const answer of client.people.import(lines, { match: ['email'] }))
   *   if ('received' in answer) console.log(answer.created, answer.updated) // 1 1
   * ```
   */
  import(
    lines: AsyncIterable<BodyOf<S, O> | string> | Iterable<BodyOf<S, O> | string>,
    { dryRun, createOnly, maxRefused, match, consents, lists, phoneCountry, ...options }: ImportOptions = {},
  ): AsyncIterable<ImportAnswer> {
    const query = queryOf({
      dry_run: dryRun ? 'true' : undefined,
      create_only: createOnly ? 'true' : undefined,
      max_refused: maxRefused === undefined ? undefined : `${maxRefused}`,
      match: match?.join(','),
      consents,
      lists,
      phone_country: phoneCountry,
    })
    const path = `${this.path}/import${query}`
    const request = { method: 'POST', path, options, lines, format: ndjson } as const
    const { newestWrite } = this.transport
    const note = (sequence: number) => newestWrite.noteSequence(sequence)
    return { [Symbol.asyncIterator]: () => importAnswers(this.transport.stream(request), note) }
  }

  #update<Data>(
    method: 'PUT' | 'PATCH',
    address: EntityAddress,
    body: BodyOf<S, O> | PatchOf<S, O>,
    options: UpdateOptions | undefined,
  ): Call<Data> {
    const { at, params } = addressOf(address)
    return this.send(`${method} ${at}`, { params, body }, options)
  }
}
