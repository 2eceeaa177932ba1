import type { EntityKind } from '../entities/entity-kind.ts'
import type { BatchCall } from '../route/call.ts'
import type { Route } from '../route/route.ts'
import { Type } from '../values/json-schema.ts'
import { changeMany } from './jobs.ts'
import { type BulkBody, bulkBody, exampleJob, job, jobPreview } from './schema.ts'

/** The bulk endpoint of a kind of entity, for people or the records of a stack. */
export function bulkEndpoints(kind: EntityKind): Route[] {
  const { path, params, plural, noun, identifier, writes, body } = kind
  return [
    {
      method: 'POST',
      path: `${path}/bulk`,
      params,
      scope: writes,
      fields: 'shown',
      tag: plural,
      prefers: ['references=strict', 'erased=recreate', 'handling=strict'],
      operationId: `change${plural}InBulk`,
      summary: `Change many ${plural.toLowerCase()} at once`,
      description:
        `Makes one change of all ${plural.toLowerCase()} that a filter selects, or that \`ids\` names, as a job of the service, in small ` +
        `sets. The job acts with what its caller may do now, and its changes have the \`request_id\` of the request. A ${noun} that is ` +
        'refused does not affect the others. A filter needs the read scope too. With `dry_run: true` nothing changes.',
      body: bulkBody(identifier.kind === 'uuid' ? 'uuid' : 'object-id'),
      item: body,
      answer: Type.Union([job, jobPreview]),
      example: { answer: exampleJob },
      successes: { 200: 'What the job would do.', 202: 'The job has begun.' },
      successHeaders: { Location: 'The path of the job that has begun.' },
      refusals: { 409: 'invalid_parameter' },
      securityEvent: ({ change }) => ((change as BulkBody['change']).op === 'erase' ? 'erasure' : undefined),
      handle: call => changeMany(kind, call as BatchCall<BulkBody>),
    },
  ]
}
