/** The closed list of error words, and the statuses each may be answered with; the first is the usual one. */
export const errorStatuses = {
  failed_binding_json: [400],
  invalid_json: [400],
  invalid_parameter: [400, 405, 409, 412, 413, 414, 415, 422, 431],
  unauthorized: [401],
  forbidden: [403],
  not_found: [404, 500],
  duplicate_entry: [409, 400],
  rate_limit_exceeded: [429],
  operation_failed: [500, 503, 504],
} as const satisfies Record<string, readonly number[]>

export type ErrorWord = keyof typeof errorStatuses

/** One thing wrong with one value; `path` is a JSON Pointer into the request body (`''` is the whole body). */
export type Detail = { path: string; message: string }

/** What a refused operation is answered with. Plain data: rules return it, only the edge of the process throws it. */
export type Refusal = {
  word: ErrorWord
  status: number
  message: string
  details: Detail[]
  headers?: Record<string, string>
  /** Whether the write was done is not known. Otherwise a refused write was not. */
  outcome?: 'unknown'
}

type RefusalOptions = { status?: number; details?: Detail[]; headers?: Record<string, string> }

/** A refusal with the word's usual status, unless told otherwise. */
export function refuse(word: ErrorWord, message: string, options: RefusalOptions = {}): Refusal {
  const refusal: Refusal = {
    word,
    status: options.status ?? errorStatuses[word][0],
    message,
    details: options.details ?? [],
  }
  if (options.headers) refusal.headers = options.headers
  return refusal
}

/** A refusal on its way to the one place that makes the response. */
export class Fault extends Error {
  readonly refusal: Refusal
  constructor(refusal: Refusal, options?: ErrorOptions) {
    super(refusal.message, options)
    this.name = 'Fault'
    this.refusal = refusal
  }
}

/** Throws the refusal; never returns. */
export function fail(word: ErrorWord, message: string, options: RefusalOptions & ErrorOptions = {}): never {
  throw new Fault(refuse(word, message, options), options.cause === undefined ? undefined : { cause: options.cause })
}

/** One refusal for a single offending value. */
export function refuseValue(path: string, message: string, word: ErrorWord = 'invalid_parameter'): Refusal {
  return refuse(word, message, { details: [{ path, message }] })
}

/** A segment of a JSON Pointer, escaped as RFC 6901 has it. */
export function pointer(...segments: (string | number)[]): string {
  return segments.map(segment => `/${String(segment).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}
