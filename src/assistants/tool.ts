import type { Detail } from '../values/errors.ts'
import { Type } from '../values/json-schema.ts'
import type { Found } from './answer.ts'
import type { Confirmations } from './confirmations.ts'

/** A request to the API. `path` is the documented form, such as `/v1/people/{external_id}`. */
export type ApiRequest = {
  method: 'GET' | 'POST' | 'PATCH'
  path: string
  params?: Readonly<Record<string, string>>
  query?: Readonly<Record<string, string | number | readonly string[] | undefined>>
  body?: unknown
  ifMatch?: number
  idempotencyKey?: string
  dryRun?: boolean
}

/** Sends a request to the API as the caller of the tools. Returns `data` of the response, or throws an {@link ApiRefusal}. */
export type Api = (request: ApiRequest) => Promise<unknown>

type Refused = { status: number; error: string; message: string; details: Detail[] }

/** An error response of the API. */
export class ApiRefusal extends Error {
  readonly refused: Refused

  constructor({ status, error, message, details }: Refused) {
    super(message)
    this.refused = { status, error, message, details }
  }
}

/** The arguments of a call, which the schema of the tool has validated. */
// biome-ignore lint/suspicious/noExplicitAny: each tool names the arguments that its schema has
export type Arguments = Record<string, any>

/** A tool of an assistant: it sends requests to the API, and knows nothing else of the data. */
export type Tool = {
  name: string
  description: string
  input: Record<string, object>
  isWriting?: true
  run(api: Api, given: Arguments, confirmations: Confirmations): Promise<Found>
}

export const text = (description: string) => Type.String({ description })
export const object = (description: string) => Type.Record(Type.String(), Type.Unknown(), { description })

/** The schemas of the arguments that several tools have. */
export const owner = text('`people`, or the key of a stack.')
export const externalId = text('The external_id of the entity.')

/** The endpoint of the people, or of the records of a stack, at a path below theirs. */
export const at = (key: string, below = ''): Pick<ApiRequest, 'path' | 'params'> =>
  key === 'people'
    ? { path: `/v1/people${below}`, params: {} }
    : { path: `/v1/stacks/{stack_key}${below}`, params: { stack_key: key } }

/** The endpoint of one entity. */
export const atEntity = (given: Arguments, below = ''): Pick<ApiRequest, 'path' | 'params'> => {
  const { path, params } = at(given.owner, `/{external_id}${below}`)
  return { path, params: { ...params, external_id: given.external_id } }
}
