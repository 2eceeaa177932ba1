import { SchemaEndpoints } from './definitions.ts'
import { Entities } from './entities.ts'
import type { CallOptions, ClientOptions } from './options.ts'
import type { AnySchema, OrganizationSchema, StackKey } from './organization.ts'
import { createTransport, type Transport } from './transport.ts'
import type { Organization } from './wire.ts'

/** The endpoints of a stack's records; those of an event stack are never changed, so it has none that would. */
export type StackEntities<S extends OrganizationSchema, K extends StackKey<S>> = S['stacks'][K]['kind'] extends 'event'
  ? Omit<Entities<S, K>, 'replace' | 'replaceById' | 'patch' | 'patchById' | 'upsert'>
  : Entities<S, K>

/** One service, spoken to for one caller. It holds no connection of its own, and need not be closed. */
export class Client<S extends OrganizationSchema = AnySchema> {
  readonly #transport: Transport
  readonly people: Entities<S, 'people'>
  readonly schema: SchemaEndpoints

  constructor(options: ClientOptions) {
    this.#transport = createTransport(options)
    this.people = new Entities<S, 'people'>(this.#transport, 'people')
    this.schema = new SchemaEndpoints(this.#transport.send)
  }

  /**
   * The records of a stack.
   *
   * ```ts
   * const visit = await client.stack('visits').create({ external_id: 'v-1', attribute_values: { page: '/' } })
   * console.log(visit.stack_key) // visits
   * ```
   */
  stack<K extends StackKey<S>>(key: K): StackEntities<S, K> {
    // People have a client of their own, and no stack is called so.
    if (key === 'people') throw new TypeError('people are no stack: they are client.people')
    return new Entities<S, K>(this.#transport, key) as StackEntities<S, K>
  }

  /**
   * Whether the process lives, and which version of kith it runs. Needs no token.
   *
   * ```ts
   * console.log((await client.health()).healthy) // true
   * ```
   */
  async health(options?: CallOptions): Promise<{ healthy: true; version: string }> {
    return (await this.#ask('/healthz', options)) as { healthy: true; version: string }
  }

  /**
   * Whether the service takes work: its database answers, and it is not shutting down. Needs no token.
   *
   * ```ts
   * console.log((await client.ready()).ready) // true
   * ```
   */
  async ready(options?: CallOptions): Promise<{ ready: true }> {
    return (await this.#ask('/readyz', options)) as { ready: true }
  }

  /**
   * The organization of the token, with its counts and limits. Takes the scope `schema:read`.
   *
   * ```ts
   * console.log((await client.organization()).key) // default
   * ```
   */
  async organization(options?: CallOptions): Promise<Organization> {
    const path = '/v1/organization'
    return (await this.#transport.send({ method: 'GET', path, options, repeatable: true, writes: false })) as Organization
  }

  #ask(path: string, options: CallOptions | undefined): Promise<unknown> {
    return this.#transport.send({ method: 'GET', path, options, repeatable: true, writes: false, authorized: false })
  }
}

/**
 * A client of one service. The type parameter is what `kith codegen` has written of the organization's schema; without
 * it every stack is known, and attribute values may be anything.
 *
 * ```ts
 * import { createClient } from '@kith/client'
 *
 * type Schema = {
 *   people: { age: { type: 'number'; cardinality: 'one' } }
 *   stacks: { orders: { kind: 'item'; attributes: { total: { type: 'number'; cardinality: 'one' } } } }
 * }
 * const shop = createClient<Schema>({ url: 'https://kith.example.org', getToken: async () => 'a token' })
 * console.log(typeof shop.stack('orders').get) // function
 * ```
 */
export function createClient<S extends OrganizationSchema = AnySchema>(options: ClientOptions): Client<S> {
  return new Client<S>(options)
}
