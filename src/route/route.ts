import type { TSchema } from 'typebox'
import type { ErrorCode } from '../values/errors.ts'
import type { SecurityEvent } from '../values/security-events.ts'
import type { BatchCall, Call, FollowingCall, StreamingCall } from './call.ts'
import type { HandlerResult, StreamResult } from './result.ts'
import { isWriting, type Scope } from './scopes.ts'

/**
 * The check that a path parameter must pass before the handler runs. A `count` is a number from 0. A `path` is the rest
 * of the path with its slashes.
 */
export type ParameterKind =
  | 'external_id'
  | 'uuid'
  | 'object_id'
  | 'key'
  | 'channel'
  | 'client_id'
  | 'number'
  | 'count'
  | 'path'

/** A row of a module's route table. */
export type Route =
  | Variant<{ handle(call: Call): Promise<HandlerResult> }>
  /** `item` is the schema of each element's body. */
  | Variant<{ item: TSchema; handle(call: BatchCall): Promise<HandlerResult> }>
  /** `line` is the schema of each line of the body. */
  | Variant<{ streams: true; line: TSchema; handle(call: StreamingCall): Promise<StreamResult> }>
  /** The request may wait for events, for longer than its deadline. */
  | Variant<{ follows: true; handle(call: FollowingCall): Promise<HandlerResult> }>

type Variant<Own> = RouteDescription & Own & { [Other in Exclude<'item' | 'line' | 'follows', keyof Own>]?: undefined }

/**
 * When a client may repeat a request whose response was lost. `read`: always, because it changes nothing. `safe`:
 * always, because a repetition changes nothing more. `keyed`: with an Idempotency-Key. `versioned`: with a version in
 * If-Match. `once`: never.
 */
export type Repetition = 'read' | 'safe' | 'keyed' | 'versioned' | 'once'

/**
 * The scope is required, so that no route is open by mistake. `statuses` overrides the usual statuses of error codes on
 * this endpoint.
 */
type RouteDescription = {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** The documented form, such as `/v1/people/{external_id}`. */
  path: string
  params?: Record<string, ParameterKind>
  scope: Scope
  /**
   * The fields that a caller's role must open, if it names fields. The default is all fields of the entities in the
   * path, or of all entities. `none`: the endpoint neither shows nor takes values of entities. `shown`: the handler
   * omits or refuses closed fields. A list: these fields of people.
   */
  fields?: 'none' | 'shown' | readonly string[]
  operationId: string
  summary: string
  /** The resource under which the documentation lists the endpoint. */
  tag: string
  /** Details beyond the summary, in Markdown. */
  description?: string
  body?: TSchema
  /** The shape of `data` on success. Tests validate every response against it; the service itself does not. */
  answer: TSchema
  /** The statuses of success with their descriptions, if there is another one than 200. */
  successes?: Record<number, string>
  /** The examples to show instead of the first ones of the schemas' `examples`. */
  example?: { body?: unknown; answer?: unknown }
  /**
   * Whether the endpoint addresses one entity with a version: a read returns its ETag, a write honors If-Match. With
   * `request`, the write honors If-Match, but its response has no ETag.
   */
  versioned?: boolean | 'request'
  /**
   * On a write that returns an entity, the scope needed to read it, and the fields that a token without that scope
   * receives.
   */
  reveals?: { scope: Scope; identifiers: readonly string[] }
  /** Whether a write returns an entity with fields that the caller's role may close. */
  closes?: true
  /**
   * On a write, the shape of `data` with `dry_run=true`: the handler stores nothing and answers 200. A write whose body
   * or query has a member `dry_run` needs none. Any other write refuses the parameter.
   */
  dryRun?: TSchema
  /** The supported preferences of the `Prefer` header. */
  prefers?: readonly ('return=representation' | 'references=strict' | 'erased=recreate' | 'handling=strict')[]
  /**
   * The handler's own refusals, as error codes by status. The refusals of the pipeline, the 404 of a path parameter and
   * those of If-Match are added.
   */
  refusals?: Partial<Record<number, ErrorCode>>
  /**
   * Whether the handler stores the response to an Idempotency-Key in the transaction of its write, see {@link Keyed}.
   */
  keepsResponses?: (call: Call) => boolean
  /** Whether the response shows a secret that kith does not store. The row then ignores an Idempotency-Key. */
  showsSecret?: true
  /** When a client may repeat a write, if it differs from the result of {@link repetitionOf}. */
  repeats?: Repetition
  /** Whether a request without a body or query uses the defaults instead of being refused. */
  hasDefaults?: boolean
  /** Whether the read runs on a standby if there is one. Long reads and reads of data that may be older do. */
  prefersReader?: true
  /** Whether the response is JSON lines of the shape `answer`. */
  streams?: boolean
  /**
   * The media type of a response that is neither JSON nor JSON lines. `answer` is then its shape, without the envelope.
   */
  answerType?: string
  /** The media types that Accept can select instead of JSON, with the shape of a line or of the whole response. */
  mediaTypes?: Record<string, TSchema>
  /** Headers of a success that only this row has, with their descriptions. */
  successHeaders?: Record<string, string>
  /** On a row without a body, the schema of the query, which becomes the call's `body`. */
  query?: TSchema
  /** The limit of the body in bytes, if it is not the usual one. */
  bodyBytes?: number
  /**
   * The deprecation of the endpoint: its date (`2027-01-15`), the earliest date of its removal, and the path of the
   * document that names the replacement. Every response then has the headers of RFC 9745 and RFC 8594, and the OpenAPI
   * document marks the operation.
   */
  deprecated?: { since: string; sunset: string; see: string }
  /** The security event that the access log records for a success, or a function that finds it from the body. */
  securityEvent?: SecurityEvent | ((body: Record<string, unknown>) => SecurityEvent | undefined)
  statuses?: Partial<Record<ErrorCode, number>>
}

/** A path outside `/v1` that needs no token. It describes the endpoint for the OpenAPI document, without a handler. */
export type OpenRoute = Pick<
  Route,
  'path' | 'params' | 'operationId' | 'summary' | 'tag' | 'description' | 'refusals'
> & {
  /** The default is GET. */
  method?: 'POST'
  request?: { contentType: string; body: TSchema }
  /** The media type of the response, if it is not JSON. */
  answerType?: string
  /** The shape of the response or, if it is enveloped, of `data` in the success envelope. */
  answer: TSchema
  enveloped: boolean
  /** Refusals in the format of another standard instead of kith's error format, by status. */
  ownRefusals?: Record<number, { description: string; answer: TSchema }>
}

/**
 * Whether a row honors Idempotency-Key. Every write does, except DELETE, streams, rows that show a secret, and rows
 * with `people:erase`, because a client repeats an incomplete erasure until it is complete. A POST that only reads
 * ignores the key.
 */
export function honorsIdempotencyKey({
  method,
  scope,
  streams,
  showsSecret,
}: Pick<Route, 'method' | 'scope' | 'streams' | 'showsSecret'>): boolean {
  return method !== 'GET' && method !== 'DELETE' && scope.endsWith(':write') && !streams && !showsSecret
}

/** Whether a read honors If-None-Match. Reads of an entity or of definitions do, and streams do not. */
export const honorsIfNoneMatch = ({
  method,
  scope,
  versioned,
}: Pick<Route, 'method' | 'scope' | 'versioned'>): boolean =>
  method === 'GET' && (versioned === true || scope === 'schema:read')

/** When a client may repeat a request of the row. It follows from the method and the scope, unless the row sets it. */
export function repetitionOf(
  row: Pick<Route, 'method' | 'scope' | 'streams' | 'showsSecret' | 'versioned' | 'repeats'>,
): Repetition {
  if (!isWriting(row.scope, row.method)) return 'read'
  if (row.repeats) return row.repeats
  if (row.method === 'POST') return honorsIdempotencyKey(row) ? 'keyed' : 'once'
  return row.method === 'PATCH' && row.versioned ? 'versioned' : 'safe'
}

/**
 * How a write treats `dry_run` in the query: it has an answer for it, it has the member in its body or query, or it
 * refuses it.
 */
export function dryRunSupport({ dryRun, body, query }: Pick<Route, 'dryRun' | 'body' | 'query'>): {
  isAnswered: boolean
  isBodyMember: boolean
  isQueryMember: boolean
} {
  const hasMember = (schema: TSchema | undefined) =>
    schema !== undefined && 'dry_run' in ((schema as { properties?: object }).properties ?? {})
  return { isAnswered: dryRun !== undefined, isBodyMember: hasMember(body), isQueryMember: hasMember(query) }
}

/** Defines a row whose handler has the type of the validated body. */
export function route<Body>(row: RouteDescription & { handle(call: Call<Body>): Promise<HandlerResult> }): Route {
  return row as Route
}

/** A handler that does its work and answers 200 with `true`. */
export const doneOf = <Body>(work: (call: Call<Body>) => Promise<unknown>) =>
  dataOf<Body>(async call => {
    await work(call)
    return true
  })

/** A handler that answers 200 with the result of its work. */
export const dataOf =
  <Body>(read: (call: Call<Body>) => Promise<unknown>) =>
  async (call: Call<Body>): Promise<HandlerResult> => ({ status: 200, data: await read(call) })
