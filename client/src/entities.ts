import { type BatchResult, batchBody, type Operation } from './batch.ts'
import { at, atId, EntityReads } from './entity-reads.ts'
import { isKithError } from './errors.ts'
import { type ImportAnswer, type ImportOptions, importAnswers } from './import.ts'
import type { CallOptions, Updated, UpdateOptions, WriteOptions } from './options.ts'
import type { BodyOf, EntityOf, OrganizationSchema, Owner } from './organization.ts'
import type { Request } from './transport.ts'

/** What a batch may be told beside its operations. */
export type BatchOptions = CallOptions & Pick<WriteOptions, 'references' | 'idempotencyKey'> & { atomic?: boolean }

/**
 * The endpoints of people, and of the records of one stack: they are the same. An entity is addressed by its external
 * identifier, or, in methods that end in `ById`, by its internal one. Every method rejects with a {@link KithError} when
 * the service refuses, a {@link KithConnectionError} or {@link KithTimeoutError} when it does not answer.
 */
export class Entities<S extends OrganizationSchema, O extends Owner<S>> extends EntityReads<S, O> {
  /**
   * Creates an entity, or completes the placeholder of this external identifier. One that is there already is
   * `duplicate_entry`, but for the equal record of an event stack, which is answered as it stands.
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
   */
  create(body: BodyOf<S, O>, options?: WriteOptions): Promise<EntityOf<S, O>> {
    return this.#write('POST', '', body, options, false)
  }

  /**
   * Replaces: what the body leaves out is cleared, but for the external identifier and the consent answers.
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
    external_id: string,
    body: BodyOf<S, O>,
    options?: U,
  ): Promise<Updated<U, EntityOf<S, O>>> {
    // A replacement that renamed is no longer there under the old name: somebody else may be.
    const renames = body.external_id !== undefined && body.external_id !== external_id
    return this.#write('PUT', at(external_id), body, options, !renames)
  }

  /**
   * Replaces by internal identifier.
   *
   * ```ts
   * const { id } = await client.people.get('ada')
   * console.log(await client.people.replaceById(id, { first_name: 'Augusta' })) // true
   * ```
   */
  replaceById<U extends UpdateOptions = Record<never, never>>(
    id: string,
    body: BodyOf<S, O>,
    options?: U,
  ): Promise<Updated<U, EntityOf<S, O>>> {
    return this.#write('PUT', atId(id), body, options, true)
  }

  /**
   * Changes what the body names: absent keeps, `null` clears, a value sets; attribute values key by key.
   *
   * ```ts
   * const order = await client.stack('orders').patch(
   *   'o-1',
   *   { attribute_values: { total: 12, note: null } },
   *   { representation: true },
   * )
   * console.log(order.attribute_values.total) // 12
   * ```
   */
  patch<U extends UpdateOptions = Record<never, never>>(
    external_id: string,
    body: BodyOf<S, O>,
    options?: U,
  ): Promise<Updated<U, EntityOf<S, O>>> {
    return this.#write('PATCH', at(external_id), body, options, typeof options?.ifMatch === 'number')
  }

  /**
   * Changes by internal identifier what the body names.
   *
   * ```ts
   * const { id, version } = await client.people.get('ada')
   * console.log(await client.people.patchById(id, { language: 'en' }, { ifMatch: version })) // true
   * ```
   */
  patchById<U extends UpdateOptions = Record<never, never>>(
    id: string,
    body: BodyOf<S, O>,
    options?: U,
  ): Promise<Updated<U, EntityOf<S, O>>> {
    return this.#write('PATCH', atId(id), body, options, typeof options?.ifMatch === 'number')
  }

  /**
   * Deletes. When an attempt's answer was lost and the next one finds nothing to delete, it is done: `true`.
   *
   * ```ts
   * console.log(await client.stack('orders').delete('o-1')) // true
   * ```
   */
  delete(external_id: string, options?: WriteOptions): Promise<true> {
    return this.#delete(at(external_id), options)
  }

  /**
   * Deletes by internal identifier.
   *
   * ```ts
   * const { id } = await client.people.get('ada')
   * console.log(await client.people.deleteById(id)) // true
   * ```
   */
  deleteById(id: string, options?: WriteOptions): Promise<true> {
    return this.#delete(atId(id), options)
  }

  /**
   * Creates who is not there, changes like `patch` who is. A token without the read scope is answered the identifiers alone.
   *
   * ```ts
   * const person = await client.people.upsert({ external_id: 'ada', first_name: 'Augusta' })
   * console.log(person.first_name, person.last_name) // Augusta Lovelace
   * ```
   */
  upsert(body: BodyOf<S, O> & { external_id: string }, options?: WriteOptions): Promise<EntityOf<S, O>> {
    return this.#write('POST', '/upsert', body, options, typeof options?.ifMatch === 'number')
  }

  /**
   * Up to 1,000 writes in one request. Each succeeds or fails on its own; with `atomic` all do or none, and the first
   * that fails rejects the call.
   *
   * ```ts
   * const { items, failed } = await client.people.batch([
   *   { op: 'patch', external_id: 'ada', body: { language: 'en' } },
   *   { op: 'delete', external_id: 'nobody' },
   * ])
   * console.log(items[0]?.status, items[1]?.error, failed) // 200 not_found 1
   * ```
   */
  batch(operations: readonly Operation<S, O>[], { atomic, ...options }: BatchOptions = {}): Promise<BatchResult> {
    return this.#write('POST', '/batch', batchBody(operations, atomic), options, false)
  }

  /**
   * Creates who is not there and changes like `patch` who is, any number of them, while they are drawn from `lines`. A
   * text is a line of JSON as it stands. Sent once: what a broken stream has done, sending all again leaves as it is.
   * Rejects with a {@link KithImportError} when the service cannot go on. Nothing is sent before it is iterated; in a
   * browser it needs one that streams bodies.
   *
   * ```ts
   * const people = [{ external_id: 'ada', language: 'en' }, { external_id: 'mary', email: 'none' }]
   * for await (const answer of client.people.import(people)) {
   *   if ('line' in answer) console.log(answer.line, answer.error) // 2 invalid_parameter
   *   if ('received' in answer) console.log(answer.updated, answer.failed) // 1 1
   * }
   * ```
   */
  import(
    lines: AsyncIterable<BodyOf<S, O> | string> | Iterable<BodyOf<S, O> | string>,
    { dry_run, create_only, ...options }: ImportOptions = {},
  ): AsyncIterable<ImportAnswer> {
    const query = [...(dry_run ? ['dry_run=true'] : []), ...(create_only ? ['create_only=true'] : [])].join('&')
    const path = `${this.path}/import${query && `?${query}`}`
    return { [Symbol.asyncIterator]: () => importAnswers(this.transport.stream({ path, options, lines })) }
  }

  async #delete(path: string, options: WriteOptions | undefined): Promise<true> {
    try {
      return await this.#write<true>('DELETE', path, undefined, options, true)
    } catch (error) {
      if (isKithError(error, 'not_found') && error.answerLost) return true
      throw error
    }
  }

  async #write<T>(
    method: Request['method'],
    path: string,
    body: unknown,
    options: UpdateOptions | undefined,
    repeatable: boolean,
  ): Promise<T> {
    return (await this.transport.send({ method, path: this.path + path, body, options, repeatable, writes: true })) as T
  }
}
