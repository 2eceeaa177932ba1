import type { Config } from '../config.ts'
import { entityEndpoints } from '../entities/endpoints.ts'
import type { EntityKind } from '../entities/entity-kind.ts'
import { recordIdOf, uuidOfRecord } from '../entities/identifiers.ts'
import { type Answers, readingEndpoints } from '../filters/endpoints.ts'
import type { Call, Route } from '../http/pipeline/route.ts'
import { cachedDefinitions, currentDefinitions } from '../organizations/definitions.ts'
import { findStack } from '../stacks/stacks.ts'
import { transferEndpoints } from '../transfer/endpoints.ts'
import { record, recordBody } from './schema.ts'

export function recordRoutes({ limits }: Config, answers: Answers): Route[] {
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
    ...readingEndpoints(records, answers, limits),
    ...transferEndpoints(records),
  ]
}

/** A stack never goes, and its key and kind never change: one that is known needs no second look. */
async function stackOf({ db, caller, params, signal }: Call): Promise<number> {
  const { id } = caller.organization
  const known = (await cachedDefinitions(db, id, signal)).stacks.find(stack => stack.key === params.stack_key)
  return known?.id ?? findStack(await currentDefinitions(db, id, signal), params.stack_key!).id
}
