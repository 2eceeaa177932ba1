import type { TSchema } from 'typebox'
import type { Limits } from '../process/config.ts'
import type { BatchCall, Call } from '../route/call.ts'
import type { Route } from '../route/route.ts'
import { nullable, Type, text } from '../values/json-schema.ts'
import { type Batch, batchBody, batchEntities } from './batch.ts'
import type { EntityKind } from './entity-kind.ts'
import {
  createEntity,
  deleteEntity,
  getEntity,
  restoreEntity,
  type UpsertBody,
  updateEntity,
  upsertEntity,
} from './handlers.ts'
import { type AsOfQuery, asOfQuery } from './past/as-of.ts'
import { batchAnswer, batchDryRunAnswer, dryRunAnswer, exampleName, harmlessBody, matchBody } from './schema.ts'
import type { EntityBody } from './write-request.ts'

const strict = ['references=strict', 'erased=recreate', 'handling=strict'] as const
const duplicateStatus = { 409: 'duplicate_entry' } as const
const done = Type.Literal(true)

/** Records of an event stack cannot be updated. */
const updatesOf = ({ noun }: EntityKind): Route['refusals'] => (noun === 'record' ? { 405: 'invalid_parameter' } : {})

const revealsOf = ({ reads, identifier }: EntityKind) => ({
  scope: reads,
  identifiers: [identifier.field, 'external_id'],
})

/** The response for a token without read scope, in place of the entity. */
const identifiersOf = ({ identifier, singular, noun, reads }: EntityKind) =>
  Type.Object(
    {
      [identifier.field]: Type.String({ format: identifier.kind === 'uuid' ? 'uuid' : 'object-id' }),
      external_id: nullable(text()),
    },
    {
      title: `${singular}Identifiers`,
      description: `Returned instead of the ${noun} if the token lacks the scope \`${reads}\`.`,
    },
  )

const collectionOf = ({ params, writes, plural }: EntityKind) =>
  ({
    method: 'POST',
    params,
    scope: writes,
    fields: 'shown',
    closes: true,
    tag: plural,
    prefers: strict,
    dryRun: dryRunAnswer,
  }) as const

/** The endpoints of a kind of entity. People and the records of a stack have the same ones. */
export function entityEndpoints(kind: EntityKind, limits: Pick<Limits, 'batchBytes'>): Route[] {
  const { path, params, singular, noun, body, answer } = kind
  const collection = collectionOf(kind)
  return [
    {
      ...collection,
      path,
      operationId: `create${singular}`,
      summary: `Create a ${noun}`,
      description: `If a placeholder has this \`external_id\`, the request completes it.`,
      body,
      answer,
      versioned: true,
      successes: {
        201: 'Created.',
        ...(noun === 'record' && { 200: 'The event stack already has this record.' }),
      },
      refusals: duplicateStatus,
      keepsResponses: () => true,
      handle: call => createEntity(kind, call as Call<EntityBody>),
    },
    {
      ...collection,
      path: `${path}/upsert`,
      operationId: `upsert${singular}`,
      summary: `Create a ${noun}, or merge into the existing one`,
      ...(noun === 'person' && {
        description:
          'With `match`, a person is also recognized by email or phone, and `external_id` may be absent. The `external_id` of the ' +
          'body then becomes an alias of the person who was found, if that person has another one. More than one person with ' +
          'the same email or phone is 409, with the candidates in `details`.',
      }),
      body: upsertBody(kind),
      answer: Type.Union([answer, identifiersOf(kind)]),
      reveals: revealsOf(kind),
      versioned: true,
      successes: { 201: 'Created.', 200: 'Merged into the existing one.' },
      refusals: { ...duplicateStatus, ...updatesOf(kind) },
      keepsResponses: () => true,
      handle: call => upsertEntity(kind, call as Call<UpsertBody>),
    },
    batchEndpoint(kind, limits),
    ...endpointsAt(kind, `${path}/{external_id}`, { ...params, external_id: 'external_id' }, '', ''),
    ...endpointsAt(
      { ...kind, patchStatuses: {} },
      `${path}/internal/{${kind.identifier.name}}`,
      { ...params, [kind.identifier.name]: kind.identifier.kind },
      'ById',
      ' by internal identifier',
    ),
    restoreEndpoint(kind),
  ]
}

function restoreEndpoint(kind: EntityKind): Route {
  const { path, params, singular, plural, noun, identifier, writes, answer } = kind
  return {
    method: 'POST',
    path: `${path}/internal/{${identifier.name}}/restore`,
    params: { ...params, [identifier.name]: identifier.kind },
    scope: writes,
    tag: plural,
    versioned: true,
    operationId: `restore${singular}`,
    summary: `Restore a deleted ${noun}`,
    description:
      'Returns it to its identifiers, values and consent answers, and to its links to entities that still exist. The ' +
      `${noun} must be deleted; one that exists is returned unchanged, so a retry is safe.`,
    answer: Type.Union([answer, identifiersOf(kind)]),
    reveals: revealsOf(kind),
    refusals: duplicateStatus,
    prefers: ['erased=recreate'],
    dryRun: dryRunAnswer,
    keepsResponses: () => true,
    handle: call => restoreEntity(kind, call as Call<EntityBody>),
  }
}

function batchEndpoint(kind: EntityKind, limits: Pick<Limits, 'batchBytes'>): Route {
  const { path, body } = kind
  return {
    ...collectionOf(kind),
    dryRun: batchDryRunAnswer,
    path: `${path}/batch`,
    operationId: `batch${kind.plural}`,
    summary: `Write up to 1,000 times in one request`,
    description:
      'Each operation succeeds or fails on its own, with a status in `items`. With `atomic: true`, nothing is applied if ' +
      'one fails, and the response is the error of the first that fails. The body may have up to 8 MiB.',
    body: kind.noun === 'person' ? peopleBatchBody : recordsBatchBody,
    answer: batchAnswer,
    example: {
      body: {
        operations: [
          { op: 'upsert', external_id: exampleName, body: harmlessBody },
          { op: 'patch', external_id: exampleName, body: harmlessBody },
        ],
      },
    },
    refusals: { 404: 'not_found', ...duplicateStatus, ...updatesOf(kind), 412: 'invalid_parameter' },
    item: body,
    // The other limits apply to each operation.
    bodyBytes: limits.batchBytes,
    // An atomic batch and its response are one transaction.
    keepsResponses: call => !(call.body as Batch).atomic,
    handle: call => batchEntities(kind, call as BatchCall<Batch>),
  }
}

/** The endpoints of one entity, at one of its two addresses. */
function endpointsAt(
  kind: EntityKind,
  path: string,
  params: Route['params'] & {},
  suffix: string,
  by: string,
): Route[] {
  const { singular, noun, body, answer } = kind
  const shared = { path, params, tag: kind.plural, versioned: true, fields: 'shown' } as const
  const reads = { ...shared, scope: kind.reads, answer }
  const writes = { ...shared, scope: kind.writes, dryRun: dryRunAnswer, closes: true } as const
  const updates = {
    body,
    answer: Type.Union([done, answer, identifiersOf(kind)]),
    reveals: revealsOf(kind),
    prefers: ['return=representation', ...strict],
    refusals: { ...duplicateStatus, ...updatesOf(kind) },
  } as const
  const operationNames = (verb: string, summary: string) => ({
    operationId: `${verb}${singular}${suffix}`,
    summary: `${summary} a ${noun}${by}`,
  })
  return [
    {
      method: 'GET',
      ...reads,
      ...operationNames('get', 'Read'),
      query: asOfQuery,
      handle: call => getEntity(kind, call as Call<AsOfQuery>),
    },
    {
      method: 'PUT',
      ...writes,
      ...operationNames('replace', 'Replace'),
      description: 'Omitted fields are cleared, except `external_id` and the consent answers.',
      ...updates,
      keepsResponses: () => true,
      handle: call => updateEntity(kind, 'put', call as Call<EntityBody>),
    },
    {
      method: 'PATCH',
      ...writes,
      ...operationNames('patch', 'Partially update'),
      description: 'Only the given fields change. `null` clears a field, and `attribute_values` is merged key by key.',
      ...updates,
      statuses: kind.patchStatuses,
      keepsResponses: () => true,
      handle: call => updateEntity(kind, 'patch', call as Call<EntityBody>),
    },
    {
      method: 'DELETE',
      ...writes,
      ...operationNames('delete', 'Delete'),
      description: 'No read returns it any more, and its external identifier becomes free. The histories remain.',
      answer: done,
      handle: call => deleteEntity(kind, call as Call<EntityBody>),
    },
  ]
}

const recordsBatchBody = Type.Object(batchBody.properties, { additionalProperties: false, title: 'BatchBody' })
const peopleBatchBody = Type.Object(
  { ...batchBody.properties, match: matchBody },
  { additionalProperties: false, title: 'PeopleBatchBody' },
)

/** The body of the kind, with a required external identifier. That of a person is optional with `match`. */
function upsertBody({ body, singular, noun }: EntityKind): TSchema {
  const properties = (body as unknown as { properties: Record<string, TSchema> }).properties
  const external_id = Type.String({ format: 'external-id' })
  const required = noun === 'person' ? { external_id: Type.Optional(external_id), match: matchBody } : { external_id }
  return Type.Object(
    { ...properties, ...required },
    {
      additionalProperties: false,
      title: `${singular}UpsertBody`,
      examples: [{ external_id: exampleName, ...harmlessBody }],
    },
  )
}
