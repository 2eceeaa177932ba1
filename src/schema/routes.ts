import { attributeToJson } from '../attributes/attributes.ts'
import { definitionsWithProgress } from '../attributes/indexing.ts'
import { type Route, route } from '../http/pipeline/route.ts'
import { stackToJson } from '../stacks/stacks.ts'
import { schema } from './schema.ts'

/** The route of all definitions. */
export function schemaRoutes(): Route[] {
  return [
    route({
      method: 'GET',
      path: '/v1/schema',
      scope: 'schema:read',
      operationId: 'getSchema',
      summary: 'Read all definitions of the organization',
      tag: 'Schema',
      answer: schema,
      handle: async ({ db, caller, signal }) => {
        const definitions = await definitionsWithProgress(db, caller.organization.id, signal)
        const stacks = definitions.stacks.map(stackToJson)
        const attributes = definitions.attributes.map(attribute => attributeToJson(attribute, definitions))
        return { status: 200, data: { stacks, attributes, consent_types: definitions.consent_types } }
      },
    }),
  ]
}
