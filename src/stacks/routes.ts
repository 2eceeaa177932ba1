import { definitionCallOf, definitionWrite } from '../organizations/change-definitions.ts'
import { listSchema } from '../organizations/definition-schema.ts'
import { currentDefinitions } from '../organizations/definitions.ts'
import { dataOf, type Route, route } from '../route/route.ts'
import { newStack, type StackBody, type StackPatch, stackPatch, stack as stackSchema } from './schema.ts'
import { createStack, findStack, patchStack, stackToJson } from './stacks.ts'

const path = '/v1/schema/stacks'
const tag = 'Stacks'
const byKey = { tag, path: '/v1/schema/stacks/{stack_key}', params: { stack_key: 'key' }, answer: stackSchema } as const

export function stackRoutes(): Route[] {
  return [
    definitionWrite<StackBody>({
      method: 'POST',
      tag,
      path,
      scope: 'schema:write',
      operationId: 'createStack',
      summary: 'Create a stack',
      body: newStack,
      answer: stackSchema,
      successes: { 201: 'Created.' },
      refusals: { 409: 'duplicate_entry' },
      handle: async call => {
        const stack = await createStack(definitionCallOf(call), call.body)
        return { status: 201, data: stackToJson(stack), headers: { Location: `${path}/${stack.key}` } }
      },
    }),
    route({
      method: 'GET',
      tag,
      path,
      scope: 'schema:read',
      fields: 'none',
      operationId: 'listStacks',
      summary: 'List the stacks',
      answer: listSchema(stackSchema),
      handle: dataOf(async ({ context, signal }) => {
        const { stacks } = await currentDefinitions(context, signal)
        return { items: stacks.map(stackToJson) }
      }),
    }),
    route({
      method: 'GET',
      ...byKey,
      scope: 'schema:read',
      fields: 'none',
      operationId: 'getStack',
      summary: 'Read a stack',
      handle: dataOf(async ({ context, params, signal }) => {
        const definitions = await currentDefinitions(context, signal)
        return stackToJson(findStack(definitions, params.stack_key!))
      }),
    }),
    definitionWrite<StackPatch>({
      method: 'PATCH',
      ...byKey,
      scope: 'schema:write',
      operationId: 'patchStack',
      summary: 'Change the name of a stack, or what holds for its records',
      body: stackPatch,
      handle: dataOf(async call =>
        stackToJson(await patchStack(definitionCallOf(call), call.params.stack_key!, call.body)),
      ),
    }),
  ]
}
