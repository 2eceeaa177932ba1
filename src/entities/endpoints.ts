import { type TSchema, Type } from 'typebox'
import type { Call, Route } from '../http/route.ts'
import { batchBody, batchEntities } from './batch.ts'
import { createEntity, deleteEntity, getEntity, updateEntity, upsertEntity } from './handlers.ts'
import type { Kind } from './kind.ts'
import type { EntityBody } from './write.ts'

/** A batch may have this much; the other limits count for each of its elements. */
const batch_bytes = 8 * 1_048_576

/** The endpoints of a kind of entity: people and the records of a stack have the same. */
export function entityEndpoints(kind: Kind): Route[] {
  const { path, params, singular, noun, body } = kind
  const collection = { method: 'POST', params, scope: kind.writes } as const
  return [
    {
      ...collection,
      path,
      operation_id: `create${singular}`,
      summary: `Create a ${noun}`,
      body,
      handle: call => createEntity(kind, call as Call<EntityBody>),
    },
    {
      ...collection,
      path: `${path}/upsert`,
      operation_id: `upsert${singular}`,
      summary: `Create a ${noun}, or merge into the one that is there`,
      body: upsertBody(body),
      handle: call => upsertEntity(kind, call as Call<EntityBody & { external_id: string }>),
    },
    {
      ...collection,
      path: `${path}/batch`,
      operation_id: `batch${kind.plural}`,
      summary: `Write up to 1,000 times in one request`,
      body: batchBody,
      item: body,
      body_bytes: batch_bytes,
      handle: call => batchEntities(kind, call as never),
    },
    ...endpointsAt(kind, `${path}/{external_id}`, { ...params, external_id: 'external_id' }, '', ''),
    ...endpointsAt(
      { ...kind, patch_statuses: {} },
      `${path}/internal/{${kind.identifier.name}}`,
      { ...params, [kind.identifier.name]: kind.identifier.kind },
      'ById',
      ' by internal identifier',
    ),
  ]
}

/** One entity's endpoints, at one of its two addresses. */
function endpointsAt(kind: Kind, path: string, params: Route['params'] & {}, suffix: string, by: string): Route[] {
  const { singular, noun, body } = kind
  const reads = { path, params, scope: kind.reads }
  const writes = { path, params, scope: kind.writes }
  const named = (verb: string, summary: string) => ({
    operation_id: `${verb}${singular}${suffix}`,
    summary: `${summary} a ${noun}${by}`,
  })
  return [
    { method: 'GET', ...reads, ...named('get', 'Read'), handle: call => getEntity(kind, call) },
    {
      method: 'PUT',
      ...writes,
      ...named('replace', 'Replace'),
      body,
      handle: call => updateEntity(kind, 'put', call as Call<EntityBody>),
    },
    {
      method: 'PATCH',
      ...writes,
      ...named('patch', 'Partially update'),
      body,
      statuses: kind.patch_statuses,
      handle: call => updateEntity(kind, 'patch', call as Call<EntityBody>),
    },
    {
      method: 'DELETE',
      ...writes,
      ...named('delete', 'Delete'),
      handle: call => deleteEntity(kind, call as Call<EntityBody>),
    },
  ]
}

/** As the kind's body, with an external identifier that must be there. */
function upsertBody(body: TSchema): TSchema {
  const properties = (body as unknown as { properties: Record<string, TSchema> }).properties
  const external_id = Type.String({ format: 'external-id' })
  return Type.Object({ ...properties, external_id }, { additionalProperties: false })
}
