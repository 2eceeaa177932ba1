import { AccessEndpoints } from './access.ts'
import { ChangeEndpoints } from './changes.ts'
import { ConsentEndpoints } from './consents.ts'
import { SchemaEndpoints } from './definitions.ts'
import { DeliverabilityEndpoints } from './deliverability.ts'
import { EndpointGroup } from './endpoint-group.ts'
import type { Endpoints } from './endpoints.ts'
import { Entities } from './entities.ts'
import type { SearchOptions } from './entity-reads.ts'
import { ErasureEndpoints } from './erasures.ts'
import { ImportEndpoints } from './imports.ts'
import { JobEndpoints } from './jobs.ts'
import { LedgerEndpoints } from './ledger.ts'
import { HoldEndpoints, RetentionRuleEndpoints } from './lifetimes.ts'
import { Listing, type Page, pageOf } from './listing.ts'
import { OperationsEndpoints } from './operations.ts'
import type { Call, CallOptions, ClientOptions } from './options.ts'
import type { AnySchema, EntityOf, OrganizationSchema, Owner, StackKey } from './organization.ts'
import { People } from './people.ts'
import { SegmentEndpoints } from './segments.ts'
import { SessionEndpoints } from './sessions.ts'
import { createTransport, type Endpoint, type RequestOf, type RequestOptions } from './transport.ts'
import { WebhookEndpoints } from './webhooks.ts'
import type { Organization } from './wire.ts'

/**
 * The endpoints of a stack's records. Records of an event stack are immutable, so it has no methods that change them.
 */
export type StackEntities<S extends OrganizationSchema, K extends StackKey<S>> = S['stacks'][K]['kind'] extends 'event'
  ? Omit<Entities<S, K>, 'replace' | 'patch' | 'upsert'>
  : Entities<S, K>

/** The readiness of a service and, if it has a standby, whether this answers reads. */
export type Readiness = Endpoints['GET /readyz']['data']

/** An entity that a search finds, with its owner: `people`, or the key of its stack. */
export type SearchHitOf<S extends OrganizationSchema, O extends Owner<S>> = {
  [Each in O]: { owner: Each; entity: EntityOf<S, Each> }
}[O]

/** The owners of a search: `*` stands for all. */
type SearchedOwner<S extends OrganizationSchema, O> = '*' extends O ? Owner<S> : Extract<O, Owner<S>>

type Method = Endpoint extends `${infer M} ${string}` ? M : never
type PathOf<M extends Method> = Endpoint extends infer E ? (E extends `${M} ${infer P}` ? P : never) : never
type EndpointAt<M extends Method, P extends string> = Extract<`${M} ${P}`, Endpoint>
/** The arguments after an endpoint. The request is optional if the endpoint requires no part of it. */
type Sent<E extends Endpoint> =
  Record<never, never> extends RequestOf<E>
    ? [request?: RequestOf<E>, options?: RequestOptions]
    : [request: RequestOf<E>, options?: RequestOptions]

/** A client of one service with one set of credentials. It holds no connections and need not be closed. */
export class Client<S extends OrganizationSchema = AnySchema> extends EndpointGroup {
  readonly people = new People<S>(this.transport, 'people')
  readonly consents = new ConsentEndpoints(this.transport)
  readonly ledger = new LedgerEndpoints(this.transport)
  readonly schema = new SchemaEndpoints(this.transport)
  readonly changes = new ChangeEndpoints<S>(this.transport)
  readonly webhooks = new WebhookEndpoints(this.transport)
  readonly deliverability = new DeliverabilityEndpoints(this.transport)
  readonly erasures = new ErasureEndpoints(this.transport)
  readonly retentionRules = new RetentionRuleEndpoints(this.transport)
  readonly holds = new HoldEndpoints(this.transport)
  readonly imports = new ImportEndpoints(this.transport)
  readonly jobs = new JobEndpoints(this.transport)
  readonly segments = new SegmentEndpoints<S>(this.transport)
  readonly sessions = new SessionEndpoints(this.transport)
  readonly access = new AccessEndpoints(this.transport)
  readonly operations = new OperationsEndpoints(this.transport)

  /**
   * The highest change number in the responses to the writes of this client. The change log up to this number includes
   * the writes. Pass it as `ifSequence` to a read of another client that must show them. Undefined before the first
   * write.
   *
   * ```ts
   * await client.people.patch('ada', { language: 'en' })
   * const ada = await client.people.get('ada', { ifSequence: client.sequence() ?? 0 })
   * console.log(ada.language) // en
   * ```
   */
  sequence(): number | undefined {
    return this.transport.newestWrite.sequence
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
    // No stack is called `people`, because this key is reserved.
    if (key === 'people') throw new TypeError('people is not a stack. Use client.people.')
    return new Entities<S, K>(this.transport, key) as StackEntities<S, K>
  }

  /**
   * The endpoints that people and the records of a stack have in common.
   *
   * ```ts
   * for (const owner of ['people', 'orders'] as const) console.log((await client.entities(owner).count()).count > 0) // true
   * ```
   */
  entities<O extends Owner<S>>(owner: O): O extends StackKey<S> ? StackEntities<S, O> : Entities<S, O> {
    return new Entities<S, O>(this.transport, owner) as O extends StackKey<S> ? StackEntities<S, O> : Entities<S, O>
  }

  /**
   * Finds people and records in one list, best match first. `owners` names `people` and stacks; the default is
   * `people`, and `["*"]` stands for all that the token may search. Records are found by their external identifier, and
   * by words if their stack has an attribute that is declared `searchable`. A page names the searched owners in
   * `owners`.
   *
   * ```ts
   * const { items } = await client.search('o-1', { owners: ['people', 'orders'] }).page()
   * console.log(items.map(hit => `${hit.owner} ${hit.entity.external_id}`).join()) // orders o-1
   * ```
   */
  search<O extends Owner<S> | '*' = 'people'>(
    text: string,
    { owners, size, after, ...options }: { owners?: readonly O[] } & SearchOptions = {},
  ): Listing<SearchHitOf<S, SearchedOwner<S, O>>, { owners: string[] }> {
    const read = (cursor?: string) =>
      this.transport.sendAs<Page<SearchHitOf<S, SearchedOwner<S, O>>> & { owners: string[] }>(
        'POST /v1/search',
        { body: { text, owners, size, cursor } },
        options,
      )
    return new Listing(cursor => pageOf(read(cursor), () => ''), after)
  }

  /**
   * Checks that the process is running, and returns its version of kith. Needs no token.
   *
   * ```ts
   * console.log((await client.health()).healthy) // true
   * ```
   */
  health(options?: CallOptions): Call<{ healthy: true; version: string }> {
    return this.send('GET /healthz', {}, options)
  }

  /**
   * Checks that the service accepts requests: its database responds, and it is not shutting down. Needs no token.
   *
   * ```ts
   * console.log((await client.ready()).ready) // true
   * ```
   */
  ready(options?: CallOptions): Call<Readiness> {
    return this.send('GET /readyz', {}, options)
  }

  /**
   * The organization of the token, with its counts and limits. Takes the scope `schema:read`.
   *
   * ```ts
   * console.log((await client.organization()).limits.page) // 500
   * ```
   */
  organization(options?: CallOptions): Call<Organization> {
    return this.send('GET /v1/organization', {}, options)
  }

  /**
   * Sends a request to any endpoint that answers in JSON, with the types of the endpoint and the retries of the client. The other
   * methods are easier to use.
   *
   * ```ts
   * const { items } = await client.request('GET', '/v1/schema/observed', { query: { owner: 'people' } })
   * console.log(items.length) // 0
   *
   * const consents = { params: { external_id: 'ada' }, query: { channel: 'email' } } as const
   * const history = await client.request('GET', '/v1/people/{external_id}/consents/history', consents)
   * console.log(history.has_more) // false
   * ```
   */
  request<M extends Method, P extends PathOf<M>>(
    method: M,
    path: P,
    ...[request, options]: Sent<EndpointAt<M, P>>
  ): Call<Endpoints[EndpointAt<M, P>]['data']> {
    return this.transport.sendAs(`${method} ${path}` as EndpointAt<M, P>, request ?? {}, options)
  }
}

/**
 * Creates a client of one service. The type parameter is the schema that `kith codegen` writes for the organization.
 * Without it, every stack key is accepted, and attribute values may be anything. Throws a TypeError for invalid
 * options.
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
  return new Client<S>(createTransport(options))
}
