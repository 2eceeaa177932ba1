import { attributeToJson } from '../attributes/attributes.ts'
import { definitionsWithProgress } from '../attributes/indexing.ts'
import { definitionCallOf, definitionWrite } from '../organizations/change-definitions.ts'
import type { Call } from '../route/call.ts'
import { type Route, route } from '../route/route.ts'
import { stack } from '../stacks/schema.ts'
import { stackToJson } from '../stacks/stacks.ts'
import { ensureNotes } from './notes.ts'
import { schema, type ViolationsQuery, violationPage, violationsQuery } from './schema.ts'
import { answerViolations } from './violations.ts'

/** The routes of all definitions, and of the stored values that violate their rules. */
export function schemaRoutes(): Route[] {
  return [
    route({
      method: 'GET',
      path: '/v1/schema',
      scope: 'schema:read',
      fields: 'none',
      operationId: 'getSchema',
      summary: 'Read all definitions of the organization',
      tag: 'Schema',
      answer: schema,
      handle: async ({ context, signal }) => {
        const definitions = await definitionsWithProgress(context, signal)
        const stacks = definitions.stacks.map(stackToJson)
        const attributes = definitions.attributes.map(attribute => attributeToJson(attribute, definitions))
        return { status: 200, data: { stacks, attributes, consent_types: definitions.consent_types } }
      },
    }),
    definitionWrite({
      method: 'POST',
      path: '/v1/schema/notes',
      scope: 'records:write',
      operationId: 'ensureNotes',
      summary: 'Get the stack of notes about people, and create it if there is none',
      description:
        'A note is a record of this event stack: `person` leads to the person, `text` is found by the search, `author` is free. An erasure ' +
        'of the person erases it. Whoever may write records may create the stack, whose definition is fixed. See docs/data-model.md.',
      tag: 'Stacks',
      answer: stack,
      successes: { 201: 'Created.', 200: 'The stack exists.' },
      successHeaders: { Location: 'The path of the stack.' },
      refusals: { 409: 'duplicate_entry' },
      handle: async call => {
        const { notes, isNew } = await ensureNotes(definitionCallOf(call))
        const headers = { Location: `/v1/schema/stacks/${notes.key}` }
        return { status: isNew ? 201 : 200, data: stackToJson(notes), headers }
      },
    }),
    route({
      method: 'GET',
      path: '/v1/schema/attributes/{id}/violations',
      params: { id: 'number' },
      scope: 'schema:read',
      fields: 'shown',
      operationId: 'listAttributeViolations',
      summary: 'List the entities whose stored values stand against the rules of an attribute',
      description:
        'Rules apply to later writes, so values that were stored before may stand against them. The token also needs the scope that ' +
        'reads the owner: `people:read` or `records:read`.',
      tag: 'Attributes',
      query: violationsQuery,
      answer: violationPage,
      refusals: { 409: 'invalid_parameter' },
      handle: call => answerViolations(call as Call<ViolationsQuery>),
    }),
  ]
}
