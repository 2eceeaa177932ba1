import { type Route, route } from '../http/pipeline/route.ts'
import { authorOf } from '../organizations/change-definitions.ts'
import { listSchema } from '../organizations/definition-schema.ts'
import { createAttribute, findAttribute, patchAttribute, shownAttribute } from './attributes.ts'
import { definitionsWithProgress } from './indexing.ts'
import {
  type AttributePatch,
  attribute as attribute_shape,
  attributePatch,
  type NewAttribute,
  newAttribute,
} from './schema.ts'

const path = '/v1/schema/attributes'
const tag = 'Attributes'
const one = { tag, path: '/v1/schema/attributes/{id}', params: { id: 'number' }, answer: attribute_shape } as const

export function attributeRoutes(): Route[] {
  return [
    route<NewAttribute>({
      method: 'POST',
      tag,
      path,
      scope: 'schema:write',
      operationId: 'createAttribute',
      summary: 'Declare an attribute',
      description: 'It concerns later writes: values that are stored stay, and read unchanged.',
      body: newAttribute,
      answer: attribute_shape,
      successes: { 201: 'Declared.' },
      refusals: { 409: 'duplicate_entry' },
      handle: async call => {
        const { attribute, definitions } = await createAttribute(authorOf(call), call.body)
        const headers = { Location: `${path}/${attribute.id}` }
        return { status: 201, data: shownAttribute(attribute, definitions), headers }
      },
    }),
    route({
      method: 'GET',
      tag,
      path,
      scope: 'schema:read',
      operationId: 'listAttributes',
      summary: 'List the attributes',
      answer: listSchema(attribute_shape),
      handle: async ({ db, caller, signal }) => {
        const definitions = await definitionsWithProgress(db, caller.organization.id, signal)
        const items = definitions.attributes.map(attribute => shownAttribute(attribute, definitions))
        return { status: 200, data: { items } }
      },
    }),
    route({
      method: 'GET',
      ...one,
      scope: 'schema:read',
      operationId: 'getAttribute',
      summary: 'Read an attribute',
      handle: async ({ db, caller, params, signal }) => {
        const definitions = await definitionsWithProgress(db, caller.organization.id, signal)
        return { status: 200, data: shownAttribute(findAttribute(definitions, Number(params.id)), definitions) }
      },
    }),
    route<AttributePatch>({
      method: 'PATCH',
      ...one,
      scope: 'schema:write',
      operationId: 'patchAttribute',
      summary: 'Change or archive an attribute',
      body: attributePatch,
      refusals: { 409: 'duplicate_entry' },
      handle: async call => {
        const { attribute, definitions } = await patchAttribute(authorOf(call), Number(call.params.id), call.body)
        return { status: 200, data: shownAttribute(attribute, definitions) }
      },
    }),
  ]
}
