import type { Static } from 'typebox'
import { closedObject, count, nullable, optionals, Type, text, time } from '../values/json-schema.ts'
import { accessKinds } from './batch.ts'

/** The media type of the log as lines. */
export const linesType = 'application/x-ndjson'

const exampleEntry = {
  kind: 'access',
  at: '2026-01-01T12:00:00.000Z',
  event: null,
  target: null,
  subject: 'support',
  role: null,
  method: 'GET',
  route: '/v1/people/{external_id}',
  status: 200,
  owner: 'people',
  ids: ['01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f'],
  count: 1,
  ip: '192.0.2.7',
  request_id: '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e50',
}

/** An entry of the access log. */
export const accessEntry = Type.Object(
  {
    kind: Type.Enum([...accessKinds], {
      description: '`access`: a request that showed or wrote people or records. `security`: a security event.',
    }),
    at: time('When the response was sent.'),
    event: nullable(text('The name of the security event. Null for an access.')),
    target: nullable(text('The subject of the security event, such as the id of a token. Null for an access.')),
    subject: text('The caller: the subject of its token, as in the change log.'),
    role: nullable(text('The key of the role of the caller.')),
    method: text(),
    route: text('The path of the request as documented, or the command that the event comes from.'),
    status: Type.Integer({ description: 'The status of the response, 0 for a command.' }),
    owner: nullable(
      text('`people`, or the key of the stack. A request has an entry for each. Null without people or records.'),
    ),
    ids: Type.Array(Type.String(), {
      description: 'The internal identifiers of the people or records, at most 500. Erased ones are taken out.',
    }),
    count: count('How many people or records there were.'),
    ip: text('The address of the client.'),
    request_id: text(),
  },
  { title: 'AccessEntry', description: 'An entry of the access log.', examples: [exampleEntry] },
)
export type AccessEntry = Static<typeof accessEntry>

export const accessPage = Type.Object(
  {
    items: Type.Array(accessEntry),
    has_more: Type.Boolean({
      description: 'A page that was searched for long may have fewer items than its limit, or none.',
    }),
    next_cursor: nullable(text('The `cursor` of the next page.')),
  },
  { title: 'AccessPage', examples: [{ items: [exampleEntry], has_more: false, next_cursor: null }] },
)

const filters = optionals({
  subject: Type.String({ minLength: 1, description: 'Only entries of this subject.' }),
  kind: Type.Enum([...accessKinds]),
  from: time('Only entries at or after this time.'),
  to: time('Only entries at or before this time.'),
  limit: Type.Integer({
    minimum: 1,
    maximum: 500,
    description: 'The default is 50, for lines all entries.',
  }),
  cursor: text('The `next_cursor` of a page.'),
})

/** Query of the accesses of a person. */
export const accessesQuery = closedObject(filters)
export type AccessesQuery = Static<typeof accessesQuery>

/** Query of GET /v1/access-log. */
export const accessLogQuery = closedObject({
  entity: Type.Optional(
    Type.String({
      pattern: '^([0-9a-fA-F]{24}|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$',
      description: 'Only entries that list this entity: the `id` of a person or the `record_id` of a record.',
    }),
  ),
  ...filters,
})
export type AccessLogQuery = Static<typeof accessLogQuery>
