import type { TSchema } from 'typebox'
import { detail, type ErrorCode, errorStatuses } from '../values/errors.ts'
import { Type } from '../values/json-schema.ts'

/** The envelope of a successful response around its `data`. */
export const successEnvelope = (data: TSchema) => Type.Object({ status: Type.Literal('Success'), data })

const request_id = Type.String({ description: 'The request id, as in the header X-Request-Id.' })

const outcome = Type.Optional(
  Type.Enum(['unknown', 'done'], {
    description:
      '`unknown`: the database did not confirm the write, so it may have been done. `done`: the write was done, but its response is missing. Absent if the write was not done.',
  }),
)

/** The envelope of every error response. */
export const errorEnvelope = Type.Object(
  {
    error: Type.Enum(Object.keys(errorStatuses) as ErrorCode[], { description: 'The error code, from a closed list.' }),
    errorstack: Type.Union([Type.Object({ reason: Type.String(), request_id }), Type.Null()], {
      description: 'Null for statuses below 500.',
    }),
    message: Type.String({ description: 'A sentence that describes the error.' }),
    details: Type.Array(detail, { description: 'One entry for each invalid value.' }),
    reason: Type.Optional(
      Type.Literal('erased', {
        description: 'A value belonged to a person who was erased. `Prefer: erased=recreate` stores the person anew.',
      }),
    ),
    request_id,
    outcome,
  },
  { title: 'Error' },
)

const exampleId = '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f'

/** An example of an error response. */
export function errorExampleOf(code: ErrorCode, status: number, message: string) {
  const errorstack = status >= 500 ? { reason: message, request_id: exampleId } : null
  return { error: code, errorstack, message, details: [], request_id: exampleId }
}
