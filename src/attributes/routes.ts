import { type Route, route } from '../http/route.ts'
import { authorOf } from '../organizations/define.ts'
import { currentDefinitions } from '../organizations/definitions.ts'
import { createAttribute, findAttribute, patchAttribute, shownAttribute } from './attributes.ts'
import { type AttributePatch, attribute_patch, type NewAttribute, new_attribute } from './schema.ts'

const path = '/v1/schema/attributes'
const one = { path: '/v1/schema/attributes/{id}', params: { id: 'number' } } as const

export function attributeRoutes(): Route[] {
  return [
    route<NewAttribute>({
      method: 'POST',
      path,
      scope: 'schema:write',
      operation_id: 'createAttribute',
      summary: 'Declare an attribute',
      body: new_attribute,
      handle: async call => {
        const { attribute, definitions } = await createAttribute(authorOf(call), call.body)
        const headers = { Location: `${path}/${attribute.id}` }
        return { status: 201, data: shownAttribute(attribute, definitions), headers }
      },
    }),
    route({
      method: 'GET',
      path,
      scope: 'schema:read',
      operation_id: 'listAttributes',
      summary: 'List the attributes',
      handle: async ({ db, caller, signal }) => {
        const definitions = await currentDefinitions(db, caller.organization.id, signal)
        const items = definitions.attributes.map(attribute => shownAttribute(attribute, definitions))
        return { status: 200, data: { items } }
      },
    }),
    route({
      method: 'GET',
      ...one,
      scope: 'schema:read',
      operation_id: 'getAttribute',
      summary: 'Read an attribute',
      handle: async ({ db, caller, params, signal }) => {
        const definitions = await currentDefinitions(db, caller.organization.id, signal)
        return { status: 200, data: shownAttribute(findAttribute(definitions, Number(params.id)), definitions) }
      },
    }),
    route<AttributePatch>({
      method: 'PATCH',
      ...one,
      scope: 'schema:write',
      operation_id: 'patchAttribute',
      summary: 'Change or archive an attribute',
      body: attribute_patch,
      handle: async call => {
        const { attribute, definitions } = await patchAttribute(authorOf(call), Number(call.params.id), call.body)
        return { status: 200, data: shownAttribute(attribute, definitions) }
      },
    }),
  ]
}
