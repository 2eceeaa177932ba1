import type { Detail } from '../values/errors.ts'

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

/** Sends a request to the API as the tools' caller. Returns `data` of the response, or throws an {@link ApiRefusal}. */
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
