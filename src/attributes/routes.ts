import { definitionCallOf, definitionWrite } from '../organizations/change-definitions.ts'
import { listSchema } from '../organizations/definition-schema.ts'
import { readScopeOf } from '../organizations/definitions.ts'
import type { Limits } from '../process/config.ts'
import type { Call } from '../route/call.ts'
import { dataOf, type Route, route } from '../route/route.ts'
import {
  attributeToJson,
  createAttribute,
  createAttributes,
  type DeclareOptions,
  findAttribute,
  patchAttribute,
} from './attributes.ts'
import { definitionsWithProgress } from './indexing.ts'
import {
  type AttributeBody,
  type AttributePatch,
  type AttributesBody,
  attributePatch,
  attribute as attributeSchema,
  maxBatchedAttributes,
  newAttribute,
  newAttributes,
} from './schema.ts'

const path = '/v1/schema/attributes'
const tag = 'Attributes'
const byId = { tag, path: '/v1/schema/attributes/{id}', params: { id: 'number' }, answer: attributeSchema } as const

/** The route table of attributes. */
export function attributeRoutes(limits: Pick<Limits, 'batchBytes'>): Route[] {
  return [
    definitionWrite<AttributeBody>({
      method: 'POST',
      tag,
      path,
      scope: 'schema:write',
      operationId: 'createAttribute',
      summary: 'Declare an attribute',
      description: 'The declaration applies to later writes. Stored values stay and read unchanged.',
      body: newAttribute,
      answer: attributeSchema,
      successes: { 201: 'Declared.' },
      refusals: { 409: 'duplicate_entry' },
      handle: async call => {
        const attribute = await createAttribute(definitionCallOf(call), call.body, optionsOf(call))
        return { status: 201, data: attribute, headers: { Location: `${path}/${attribute.id}` } }
      },
    }),
    definitionWrite<AttributesBody>({
      method: 'POST',
      tag,
      path: `${path}/batch`,
      scope: 'schema:write',
      operationId: 'batchAttributes',
      summary: `Declare up to ${maxBatchedAttributes.toLocaleString('en')} attributes, all or none`,
      description:
        'Each element of `items` is the body of a declaration, and the response has the attributes in the same order. If one of them ' +
        'breaks a rule, none is declared, and the error names what is wrong with each by its path, such as `/items/3/key`. The ' +
        'attributes apply from the same moment on. The body may have up to 8 MiB.',
      body: newAttributes,
      answer: listSchema(attributeSchema),
      successes: { 201: 'Declared.' },
      refusals: { 409: 'duplicate_entry' },
      bodyBytes: limits.batchBytes,
      handle: async call => {
        const items = await createAttributes(definitionCallOf(call), call.body.items)
        return { status: 201, data: { items }, headers: { Location: path } }
      },
    }),
    route({
      method: 'GET',
      tag,
      path,
      scope: 'schema:read',
      fields: 'none',
      operationId: 'listAttributes',
      summary: 'List the attributes',
      answer: listSchema(attributeSchema),
      handle: dataOf(async ({ context, signal }) => {
        const definitions = await definitionsWithProgress(context, signal)
        return { items: definitions.attributes.map(attribute => attributeToJson(attribute, definitions)) }
      }),
    }),
    route({
      method: 'GET',
      ...byId,
      scope: 'schema:read',
      fields: 'none',
      operationId: 'getAttribute',
      summary: 'Read an attribute',
      handle: dataOf(async ({ context, params, signal }) => {
        const definitions = await definitionsWithProgress(context, signal)
        return attributeToJson(findAttribute(definitions, Number(params.id)), definitions)
      }),
    }),
    definitionWrite<AttributePatch>({
      method: 'PATCH',
      ...byId,
      scope: 'schema:write',
      operationId: 'patchAttribute',
      summary: 'Change or archive an attribute',
      body: attributePatch,
      refusals: { 409: 'duplicate_entry' },
      handle: dataOf(call =>
        patchAttribute(definitionCallOf(call), Number(call.params.id), call.body, optionsOf(call)),
      ),
    }),
  ]
}

const optionsOf = ({ boundFrom, caller }: Call): DeclareOptions => ({
  boundFrom,
  mayRead: stack_id => caller.scopes.has(readScopeOf(stack_id)),
})
