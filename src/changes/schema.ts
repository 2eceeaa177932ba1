import type { Static } from 'typebox'
import { operations, subjects } from '../organizations/logged-changes.ts'
import {
  closedObject,
  count,
  filledText,
  flag,
  nullable,
  number,
  pageLimit,
  storedNumber,
  Type,
  text,
  time,
  uuid,
} from '../values/json-schema.ts'

const sequence = number('The number of the change. The numbers of an organization have no gaps.')
const values = (description: string) => nullable(Type.Record(text(), Type.Unknown(), { description }))

const exampleChange = {
  sequence: 1_204,
  at: '2026-01-01T12:00:00.000Z',
  subject: 'person',
  id: '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f',
  external_id: 'ada',
  stack_key: null,
  operation: 'update',
  version: 2,
  before: { first_name: null, attribute_values: { friends: null } },
  after: { first_name: 'Ada', attribute_values: { friends: ['bob'] } },
  links: { friends: { after: ['01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e51'] } },
  actor: 'nightly',
  request_id: '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e50',
}

const segmentPeople = Type.Object(
  {
    key: text('The key of the segment.'),
    people: Type.Array(uuid(), { description: 'The ids of the people.' }),
  },
  { title: 'SegmentPeople' },
)

const targets = (description: string) => Type.Optional(Type.Array(text(), { description }))

const replacedLinks = Type.Object(
  {
    before: targets('The targets before, in order. Absent if there were none.'),
    after: targets('The targets after, in order. Absent if there are none.'),
  },
  { title: 'ReplacedLinks' },
)

export const change = Type.Object(
  {
    sequence,
    at: time(),
    subject: Type.Enum([...subjects], { description: 'The kind of thing that changed.' }),
    id: Type.Union([text(), Type.Integer()], {
      description:
        'The internal identifier as reads show it: the `id` of a person, an attribute or a consent type, the `record_id` of a record, the number of a stack or of a segment, 1 for the settings.',
    }),
    external_id: nullable(text('The current external identifier, or the last one of a deleted person or record.')),
    stack_key: nullable(text('The stack of a record, otherwise null.')),
    operation: Type.Enum([...operations]),
    version: nullable(number('The version of the person or record after the change.')),
    before: values('The fields that changed, with their values before. Null for the creation of a person or record.'),
    after: values('The fields that changed, with their values after. Empty for a deletion.'),
    links: nullable(
      Type.Record(text(), replacedLinks, {
        description:
          'The relationships that the change wrote, by key, with the internal identifiers of their targets. Null if it wrote none.',
      }),
    ),
    actor: text('The subject of the token that wrote.'),
    request_id: text('The request that wrote.'),
    merge_id: Type.Optional(
      number('The merge that made this change, or whose undoing made it: of the merged person and of the survivor.'),
    ),
    segments: Type.Optional(
      Type.Object(
        {
          entered: Type.Array(segmentPeople),
          left: Type.Array(segmentPeople),
          reason: Type.Enum(['change', 'time'], {
            description: '`time` if they entered or left because time went by. The change is then one of the segment.',
          }),
        },
        {
          title: 'SegmentMoves',
          description:
            'The people who entered or left the segments that the request asks for, by this change. Only with `segment`.',
        },
      ),
    ),
  },
  { title: 'Change', description: 'A change of the change log.', examples: [exampleChange] },
)

const log_id = uuid()

/** A note about a request that does less than its text suggests. */
export const warning = Type.Object(
  { path: text('A JSON Pointer into the body.'), message: text() },
  { title: 'Warning' },
)

export const changePage = Type.Object(
  {
    items: Type.Array(change),
    last: count('The number that was read up to, also past changes that did not match. The next `after`.'),
    head: count('The number of the newest change.'),
    log_id: uuid('Names the numbering. It is another one after a restore.'),
    warnings: Type.Optional(
      Type.Array(warning, {
        description:
          'Which subjects the token lacks the scope of, if the request names none, so that their changes are not shown. Absent otherwise.',
      }),
    ),
  },
  {
    title: 'ChangePage',
    description: 'A page of the change log.',
    examples: [{ items: [exampleChange], last: 1_204, head: 1_204, log_id: '6f1a3a52-8c1e-4d0f-9a59-0d2c54c7a1b3' }],
  },
)

export const historyPage = Type.Object(
  {
    items: Type.Array(change),
    has_more: flag('Whether older changes follow: the last version is the next `before_version`.'),
  },
  {
    title: 'HistoryPage',
    description: 'A page of the changes of one person or record, newest first.',
    examples: [{ items: [exampleChange], has_more: false }],
  },
)

const limit = pageLimit(1_000, 'The most items of a page. The default is 100.')

export const defaultLimit = 100

const position = { minimum: 0, maximum: Number.MAX_SAFE_INTEGER }

export const changesQuery = closedObject({
  after: Type.Optional(
    Type.Integer({ ...position, description: 'Return changes after this number. The default is 0.' }),
  ),
  limit,
  wait: Type.Optional(
    Type.Number({
      minimum: 0,
      maximum: 20,
      description: 'Seconds to wait until a change matches, if none does yet. For pages only.',
    }),
  ),
  subject: Type.Optional(
    Type.Array(Type.Enum([...subjects]), { maxItems: 10, description: 'Only changes of these kinds. Repeatable.' }),
  ),
  stack: Type.Optional(
    Type.Array(Type.String({ minLength: 1 }), {
      maxItems: 100,
      description: 'Only records of the stacks with these keys. Repeatable.',
    }),
  ),
  operation: Type.Optional(
    Type.Array(Type.Enum([...operations]), { maxItems: 10, description: 'Only these operations. Repeatable.' }),
  ),
  segment: Type.Optional(
    Type.Array(Type.String({ minLength: 1 }), {
      maxItems: 20,
      description:
        'Only changes by which a person entered or left one of the segments with these keys, each with `segments`. Repeatable.',
    }),
  ),
  entity: Type.Optional(
    filledText(
      255,
      'Only changes of the people and records with this internal or external identifier, in every stack, or that had it when the request began. Not together with `segment`.',
    ),
  ),
  links: Type.Optional(
    Type.Literal('id', {
      description:
        'Shows the targets of relationships in `before` and `after` by their internal identifiers, as they were written: also targets that were deleted or merged since.',
    }),
  ),
  log_id: Type.Optional({
    ...log_id,
    description: 'The `log_id` that `after` belongs to. If the log has another one by now, the response is 410.',
  }),
})
export type ChangesQuery = Static<typeof changesQuery>

export const historyQuery = closedObject({
  before_version: Type.Optional(storedNumber('Return changes to versions before this one.')),
  limit,
})
export type HistoryQuery = Static<typeof historyQuery>
