import { definitionCallOf, definitionWrite } from '../organizations/change-definitions.ts'
import { currentDefinitions, peopleStackId, type Segment } from '../organizations/definitions.ts'
import type { Limits } from '../process/config.ts'
import type { EntitySchemas } from '../queries/pages/endpoints.ts'
import { filterEntities } from '../queries/pages/handlers.ts'
import { answerSchema } from '../queries/schema.ts'
import type { Call } from '../route/call.ts'
import { dataOf, type Route, route } from '../route/route.ts'
import { type Detail, Fault, throwBrokenRule } from '../values/errors.ts'
import { firstId } from '../values/formats.ts'
import { Type } from '../values/json-schema.ts'
import {
  newSegment,
  type SegmentBody,
  type SegmentMembersQuery,
  type SegmentPatch,
  type SegmentPeopleQuery,
  segmentList,
  segmentMembers,
  segmentMembersQuery,
  segmentPatch,
  segmentPeopleQuery,
  segment as segmentSchema,
  writtenSegment,
} from './schema.ts'
import {
  createSegment,
  deleteSegment,
  findSegment,
  findWarnings,
  listMembers,
  patchSegment,
  segmentToJson,
  throwIfBroken,
} from './segments.ts'

const path = '/v1/segments'
const byKey = { path: `${path}/{segment_key}`, params: { segment_key: 'key' } } as const
const reads = { method: 'GET', tag: 'Segments', scope: 'schema:read', fields: 'none' } as const
const writes = { method: 'POST', tag: 'Segments', scope: 'schema:write', fields: 'shown' } as const

/** The route table of segments. */
export function segmentRoutes({ limits }: { limits: Pick<Limits, 'page'> }, schemas: EntitySchemas): Route[] {
  return [
    definitionWrite<SegmentBody>({
      ...writes,
      path,
      operationId: 'createSegment',
      summary: 'Create a segment',
      description:
        'A segment is a filter on people with a name. Other filters use it: `{"$segment": "key"}`. The change log tells who enters or ' +
        'leaves it: `GET /v1/changes?segment=key`.',
      body: newSegment,
      answer: writtenSegment,
      prefers: ['handling=strict'],
      successes: { 201: 'Created.' },
      refusals: { 409: 'duplicate_entry' },
      handle: async call => {
        const warnings = await readWarnings(call, call.body.key)
        const segment = await createSegment(definitionCallOf(call), call.body)
        return { status: 201, data: written(segment, warnings), headers: { Location: `${path}/${segment.key}` } }
      },
    }),
    route({
      ...reads,
      path,
      operationId: 'listSegments',
      summary: 'List the segments',
      answer: segmentList,
      handle: dataOf(async ({ context, signal }) => {
        const { segments } = await currentDefinitions(context, signal)
        return { items: segments.map(segmentToJson) }
      }),
    }),
    route({
      ...reads,
      ...byKey,
      operationId: 'getSegment',
      summary: 'Read a segment',
      answer: segmentSchema,
      handle: dataOf(async ({ context, params, signal }) =>
        segmentToJson(findSegment(await currentDefinitions(context, signal), params.segment_key!)),
      ),
    }),
    definitionWrite<SegmentPatch>({
      ...writes,
      ...byKey,
      method: 'PATCH',
      operationId: 'patchSegment',
      summary: 'Change a segment',
      description:
        'Another filter takes effect at once. The change log tells of it from then on, after its people were computed anew in the background.',
      body: segmentPatch,
      answer: writtenSegment,
      prefers: ['handling=strict'],
      handle: dataOf(async call => {
        const key = call.params.segment_key!
        const warnings = await readWarnings(call, key)
        return written(await patchSegment(definitionCallOf(call), key, call.body), warnings)
      }),
    }),
    definitionWrite({
      ...writes,
      ...byKey,
      method: 'DELETE',
      operationId: 'deleteSegment',
      summary: 'Delete a segment',
      description: 'A segment that the filter of another one names cannot be deleted. No person is changed.',
      answer: Type.Literal(true),
      refusals: { 409: 'invalid_parameter' },
      handle: dataOf(call => deleteSegment(definitionCallOf(call), call.params.segment_key!).then(() => true)),
    }),
    route<SegmentPeopleQuery>({
      ...reads,
      ...byKey,
      path: `${path}/{segment_key}/people`,
      scope: 'people:read',
      fields: 'shown',
      prefersReader: true,
      operationId: 'listSegmentPeople',
      summary: 'List the people of a segment',
      description:
        'The people who satisfy the filter now, as POST /v1/people/filter finds them. The token needs the read scope of every kind of ' +
        'entity that the filter tests.',
      query: segmentPeopleQuery(limits.page),
      hasDefaults: true,
      answer: answerSchema(schemas.person, schemas, 'Filter'),
      refusals: { 409: 'invalid_parameter' },
      handle: listPeople,
    }),
    route<SegmentMembersQuery>({
      ...reads,
      ...byKey,
      path: `${path}/{segment_key}/members`,
      scope: 'people:read',
      fields: 'shown',
      operationId: 'listSegmentMembers',
      summary: 'List the members of a segment as the change log tells them',
      description:
        'To keep a copy of a segment, read all pages, then follow GET /v1/changes?segment=key after the `head` of the first page. The token ' +
        'needs the read scope of every kind of entity that the filter tests. 503 while the members are computed.',
      query: segmentMembersQuery(limits.page),
      answer: segmentMembers,
      refusals: { 409: 'invalid_parameter' },
      handle: dataOf(call => listMembers(call, call.body.after_id ?? firstId, call.body.size ?? limits.page)),
    }),
  ]
}

/** A segment as the response to a write shows it. */
const written = (segment: Segment, warnings: Detail[]) => ({
  ...segmentToJson(segment),
  ...(warnings.length > 0 && { warnings }),
})

async function listPeople(call: Call<SegmentPeopleQuery>) {
  const { context, params, signal, body } = call
  const definitions = await currentDefinitions(context, signal)
  const segment = findSegment(definitions, params.segment_key!)
  throwIfBroken(definitions, segment)
  const { sort, ...rest } = body
  const order = sort === undefined ? {} : { sort: sortOf(sort) }
  // In the query, the members of the cursor configuration are parameters.
  const filterBody = { ...rest, filter: { $segment: segment.key }, cursor_configuration: rest, ...order }
  return filterEntities({ ...call, body: filterBody, boundFrom: 'body' }, peopleStackId).catch(throwWithQueryPaths)
}

/** A field, and its direction after a colon. The key of an attribute may contain colons. */
function sortOf(text: string): { field: string; direction?: 'asc' | 'desc' } {
  const [, field = text, direction] = /^(.*):(asc|desc)$/s.exec(text) ?? []
  return direction === undefined ? { field } : { field, direction: direction as 'asc' | 'desc' }
}

/** Replaces the paths of body members in an error by the parameters of the query. */
function throwWithQueryPaths(error: unknown): never {
  if (!(error instanceof Fault)) throw error
  const pathOf = (path: string) =>
    path
      .replace(/^\/cursor_configuration/, '')
      .replace(/^\/sort\/.*/, '/sort')
      .replace(/^\/filter.*/, '/segment_key')
  const details = error.refusal.details.map(({ path, message }) => ({ path: pathOf(path), message }))
  throw new Fault({ ...error.refusal, details }, { cause: error })
}

/**
 * The warnings about the filter of a write. All values of a query are texts, so a filter from a query would be stored
 * with texts in place of numbers.
 */
async function readWarnings(call: Call<{ filter?: unknown }>, key: string): Promise<Detail[]> {
  const { body, boundFrom } = call
  if (body.filter === undefined) return []
  if (boundFrom === 'query')
    throwBrokenRule('/filter', 'must be sent in a JSON body: the values of a query have no types')
  return findWarnings(call, key, body.filter)
}
