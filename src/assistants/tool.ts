import { Type } from '../values/json-schema.ts'
import type { Found } from './answer.ts'
import type { Api, ApiRequest } from './api.ts'
import type { Confirmations } from './confirmations.ts'

/** The arguments of a call, which the schema of the tool has validated. */
// biome-ignore lint/suspicious/noExplicitAny: each tool names the arguments that its schema has
export type Arguments = Record<string, any>

/** A tool of an assistant. It sends requests to the API and has no other access to the data. */
export type Tool = {
  name: string
  description: string
  input: Record<string, object>
  isWriting?: true
  run(api: Api, given: Arguments, confirmations: Confirmations): Promise<Found>
}

export const text = (description: string) => Type.String({ description })
export const object = (description: string) => Type.Record(Type.String(), Type.Unknown(), { description })

/** The schemas of arguments that several tools share. */
export const owner = text('`people`, or the key of a stack.')
export const externalId = text('The external_id of the entity.')

/** The endpoint of people, or of the records of a stack. `below` is the rest of its path. */
export const at = (key: string, below = ''): Pick<ApiRequest, 'path' | 'params'> =>
  key === 'people'
    ? { path: `/v1/people${below}`, params: {} }
    : { path: `/v1/stacks/{stack_key}${below}`, params: { stack_key: key } }

/** The endpoint of one entity. */
export const atEntity = (given: Arguments, below = ''): Pick<ApiRequest, 'path' | 'params'> => {
  const { path, params } = at(given.owner, `/{external_id}${below}`)
  return { path, params: { ...params, external_id: given.external_id } }
}
