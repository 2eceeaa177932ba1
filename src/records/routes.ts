import { transferEndpoints } from '../bulk/endpoints.ts'
import { entityEndpoints } from '../entities/endpoints.ts'
import type { EntityKind } from '../entities/entity-kind.ts'
import { historyEndpoints } from '../entities/past/history.ts'
import { bulkEndpoints } from '../jobs/endpoints.ts'
import { cachedDefinitions, currentDefinitions } from '../organizations/definitions.ts'
import type { Config } from '../process/config.ts'
import { type EntitySchemas, readingEndpoints } from '../queries/pages/endpoints.ts'
import type { Call } from '../route/call.ts'
import type { Route } from '../route/route.ts'
import { searchEndpoints } from '../search/endpoints.ts'
import { findStack } from '../stacks/stacks.ts'
import { recordIdOf, uuidOfRecord } from '../values/formats.ts'
import { record, recordBody } from './schema.ts'

/** The route table of records. `schemas` are the response schemas of both kinds of entity. */
export function recordRoutes({ limits }: Config, schemas: EntitySchemas): Route[] {
  const records: EntityKind = {
    noun: 'record',
    singular: 'Record',
    plural: 'Records',
    path: '/v1/stacks/{stack_key}',
    params: { stack_key: 'key' },
    identifier: {
      name: 'record_id',
      kind: 'object_id',
      field: 'record_id',
      toUuid: uuidOfRecord,
      fromUuid: recordIdOf,
    },
    reads: 'records:read',
    writes: 'records:write',
    body: recordBody(limits),
    answer: record,
    patchStatuses: {},
    stackOf,
  }
  return [
    ...entityEndpoints(records, limits),
    ...readingEndpoints(records, schemas, limits),
    ...searchEndpoints(records),
    ...transferEndpoints(records),
    ...bulkEndpoints(records),
    ...historyEndpoints(records),
  ]
}

/**
 * The id of the stack in the path. A cached stack is sufficient, because stacks are never deleted and their keys and
 * kinds never change.
 */
async function stackOf({ context, params, signal }: Call): Promise<number> {
  const known = (await cachedDefinitions(context, signal)).stacks.find(stack => stack.key === params.stack_key)
  return known?.id ?? findStack(await currentDefinitions(context, signal), params.stack_key!).id
}
