import type { Static } from 'typebox'
import { warnings } from '../queries/schema.ts'
import {
  closedObject,
  count,
  filledText,
  flag,
  nullable,
  pageLimit,
  pageOf,
  Type,
  text,
  time,
} from '../values/json-schema.ts'

export const jobOps = ['patch', 'delete', 'erase'] as const
export type JobOp = (typeof jobOps)[number]

export const jobStates = ['running', 'done', 'cancelled', 'failed'] as const
export type JobState = (typeof jobStates)[number]

/** The maximum number of entities that a request names. A filter selects more. */
const maxIds = 10_000

const change = closedObject(
  {
    op: Type.Enum([...jobOps], {
      description:
        '`patch`: what `body` has. `erase`: people for good, with a certificate each; the token needs `people:erase`.',
    }),
    body: Type.Optional(
      Type.Record(text(), Type.Unknown(), {
        description:
          'The body of a PATCH, without `external_id`: null empties a field, and `consents` adds an answer with its evidence.',
      }),
    ),
    reason: Type.Optional(filledText(2_000, 'Why people are erased. It stays, and must name nobody.')),
    records: Type.Optional(
      Type.Enum(['keep', 'linked'], {
        description: 'Only for an erasure: whether records that only the person has are erased too.',
      }),
    ),
    override_hold: Type.Optional(flag('Only for an erasure: erase people although they are under a legal hold.')),
  },
  { title: 'BulkChange' },
)

/** The body of a bulk change of people or records, whose internal identifiers have a format. */
export const bulkBody = (format: 'uuid' | 'object-id') =>
  closedObject(
    {
      filter: Type.Optional(
        Type.Unsafe<object>({
          type: 'object',
          description: 'Everybody whom it selects, each when the job reaches it.',
        }),
      ),
      ids: Type.Optional(
        Type.Array(Type.String({ format }), {
          ...{ minItems: 1, maxItems: maxIds },
          description: 'Internal identifiers, instead of a filter.',
        }),
      ),
      change,
      dry_run: Type.Optional(flag('Change nothing, and return how many would change and who would be refused.')),
    },
    {
      title: format === 'uuid' ? 'PeopleBulkBody' : 'RecordsBulkBody',
      examples: [{ filter: {}, change: { op: 'patch', body: { attribute_values: {} } }, dry_run: true }],
    },
  )
export type BulkBody = Static<ReturnType<typeof bulkBody>>

const refusal = Type.Object(
  {
    id: text('The internal identifier.'),
    external_id: nullable(text()),
    error: text(),
    message: text(),
    details: Type.Array(Type.Object({ path: text(), message: text() })),
  },
  { title: 'JobRefusal', description: 'An entity that a job was refused to change, and why.' },
)
export type JobRefusal = Static<typeof refusal>

const counts = {
  total: count('How many it is for: those who matched when it began, or were named.'),
  done: count('Entities that were changed.'),
  unchanged: count('Entities that were already so.'),
  refused: count('Entities that were refused.'),
}

export const exampleJob = {
  ...{ id: '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f', owner: 'people', op: 'patch', actor: 'ada', state: 'running' },
  ...{ total: 5_432, done: 1_200, unchanged: 3, refused: 1, remaining: 4_228, failure: null },
  ...{ started_at: '2026-01-01T12:00:00.000Z', ended_at: null, undone_at: null },
}

export const job = Type.Object(
  {
    id: text('The `request_id` of its changes.'),
    owner: text('`people`, or the key of a stack.'),
    op: Type.Enum([...jobOps]),
    actor: text('The subject of the token that began it.'),
    state: Type.Enum([...jobStates], {
      description: '`failed`: see `failure`. The changes before the failure stay.',
    }),
    ...counts,
    remaining: count('Entities that it has not reached.'),
    failure: nullable(text('Why it ended before all were reached.')),
    started_at: time(),
    ended_at: nullable(time()),
    undone_at: nullable(time('When an undo of it ended.')),
  },
  {
    title: 'Job',
    description: 'One change of many people or records, which the service makes in small sets.',
    examples: [exampleJob],
  },
)
export type Job = Static<typeof job>

export const jobPreview = Type.Object(
  {
    dry_run: Type.Literal(true),
    total: counts.total,
    tested: count('How many of them were tried within some seconds, the first ones in order. The counts are of these.'),
    done: count('Entities that would be changed.'),
    unchanged: counts.unchanged,
    refused: count('Entities that would be refused.'),
    refusals: Type.Array(refusal, { description: 'The first refusals, at most 100.' }),
    warnings: Type.Optional(warnings),
  },
  {
    title: 'JobPreview',
    description: 'The result of a dry run of a job.',
    examples: [{ dry_run: true, total: 5_432, tested: 5_432, done: 5_432, unchanged: 0, refused: 0, refusals: [] }],
  },
)
export type JobPreview = Static<typeof jobPreview>

const limit = pageLimit(500, 'The default is 50.')

export const jobsQuery = closedObject({
  before: Type.Optional(Type.String({ maxLength: 64, description: 'Only jobs before the one with this id.' })),
  limit,
})
export type JobsQuery = Static<typeof jobsQuery>

export const jobPage = pageOf(job, 'JobPage', 'A page of jobs, newest first.', [exampleJob])

export const refusalsQuery = closedObject({
  after: Type.Optional(Type.String({ maxLength: 64, description: 'Only refusals after the one with this `id`.' })),
  limit,
})
export type RefusalsQuery = Static<typeof refusalsQuery>

export const refusalPage = pageOf(
  refusal,
  'JobRefusalPage',
  'A page of the refusals of a job, in order of the identifiers.',
  [
    {
      ...{ id: '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f', external_id: 'customer-1', error: 'invalid_parameter' },
      ...{
        message: 'The request breaks a rule.',
        details: [{ path: '/email', message: 'belongs to another person' }],
      },
    },
  ],
)
