import type { Static } from 'typebox'
import { Type, text } from './json-schema.ts'

/** The closed list of error codes with their possible statuses. The first status is the default. */
export const errorStatuses = {
  failed_binding_json: [400],
  invalid_json: [400],
  invalid_parameter: [400, 405, 409, 410, 412, 413, 414, 415, 422, 431],
  unauthorized: [401],
  forbidden: [403],
  not_found: [404, 500],
  duplicate_entry: [409, 400],
  rate_limit_exceeded: [429],
  operation_failed: [500, 503, 504],
} as const satisfies Record<string, readonly number[]>

export type ErrorCode = keyof typeof errorStatuses

/** A fault of one value. `path` is a JSON Pointer into the request body (`''` is the whole body). */
export const detail = Type.Object(
  {
    path: text('A JSON Pointer into the body, or `/name` for a parameter of the path.'),
    message: text(),
  },
  { title: 'Detail', examples: [{ path: '/attribute_values/age', message: 'must be a number' }] },
)
export type Detail = Static<typeof detail>

/** Warnings in a header, for a response whose body has no member for them. They are ASCII. */
export const warningHeader = (warnings: readonly Detail[]): Record<string, string> => ({
  'X-Kith-Warning': warnings.map(({ path, message }) => `${path} ${message}`).join('; '),
})

/** The content of an error response. Rules return it as plain data. */
export type Refusal = {
  code: ErrorCode
  status: number
  message: string
  details: Detail[]
  headers?: Record<string, string>
  /** `erased`: a value belonged to an erased person. */
  reason?: 'erased'
  /**
   * The outcome of a write. `unknown`: it may have been done. `done`: it was done, but its response is missing. Absent:
   * it was not done.
   */
  outcome?: 'unknown' | 'done'
}

type RefusalOptions = {
  status?: number
  details?: Detail[]
  headers?: Record<string, string>
  reason?: 'erased'
  outcome?: 'done'
}

/** Builds a refusal. The default status is the first one of the error code. */
export function createRefusal(code: ErrorCode, message: string, options: RefusalOptions = {}): Refusal {
  const refusal: Refusal = {
    code,
    status: options.status ?? errorStatuses[code][0],
    message,
    details: options.details ?? [],
  }
  if (options.headers) refusal.headers = options.headers
  if (options.reason) refusal.reason = options.reason
  if (options.outcome) refusal.outcome = options.outcome
  return refusal
}

/**
 * A thrown refusal. The pipeline builds the response from it. It has no stack, because an import may refuse thousands
 * of lines in a second.
 */
export class Fault extends Error {
  readonly refusal: Refusal
  constructor(refusal: Refusal, options?: ErrorOptions) {
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(refusal.message, options)
    Error.stackTraceLimit = stackTraceLimit
    this.name = 'Fault'
    this.refusal = refusal
  }
}

/** The options of a refusal that a retry may avoid. */
export const retryInASecond = { status: 503, headers: { 'Retry-After': '1' } }

/** This database does not have the change that a request names yet. Another database of the service may have it. */
export class NotArrived extends Fault {
  constructor(message: string, detail: Detail) {
    super(createRefusal('operation_failed', message, { ...retryInASecond, details: [detail] }))
  }
}

/** Builds a refusal and throws it as a {@link Fault}. */
export function refuse(code: ErrorCode, message: string, options: RefusalOptions & ErrorOptions = {}): never {
  throw new Fault(
    createRefusal(code, message, options),
    options.cause === undefined ? undefined : { cause: options.cause },
  )
}

/** Throws a Fault of 400 for values of the request with their paths, in the form of a schema's refusal. */
export function refuseValues(...details: Detail[]): never {
  return refuse('invalid_parameter', invalidValues, { details })
}

/** The message of a refusal whose details name the values. */
export const invalidValues = 'The request has invalid values. See details.'

/** Throws a Fault of 503, because the maximum number of long requests of a kind is running. */
export function throwBusy(message: string): never {
  const headers = { 'Retry-After': '10' }
  return refuse('operation_failed', `${message} Retry after 10 seconds.`, { status: 503, headers })
}

/** Builds a refusal with one faulty value. */
export function createValueRefusal(path: string, message: string, code: ErrorCode = 'invalid_parameter'): Refusal {
  return createRefusal(code, message, { details: [{ path, message }] })
}

/** Throws a Fault of 400 with one faulty value. `summary` is its message, a whole sentence. */
export function throwValueRefusal(path: string, message: string, summary: string): never {
  return refuse('invalid_parameter', summary, { details: [{ path, message }] })
}

/** Throws a Fault of 400 for a value that its schema accepts. */
export function throwBrokenRule(path: string, message: string): never {
  return throwValueRefusal(path, message, 'The request breaks a rule.')
}

/** Builds a JSON Pointer from segments, escaped as in RFC 6901. */
export function pointer(...segments: (string | number)[]): string {
  return segments.map(segment => `/${String(segment).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}
