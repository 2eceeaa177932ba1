import { unavailability } from '../../db/pg-errors.ts'
import { createRefusal, type ErrorCode, Fault, type Refusal } from '../../values/errors.ts'

const [opening, closing] = ['{"status":"Success","data":', '}']

/** The success envelope. */
export function success(payload: { data: unknown } | { json: string } | { pieces: readonly string[] }): string {
  return opening + payloadToJson(payload) + closing
}

export function payloadToJson(payload: Parameters<typeof success>[0]): string {
  if ('pieces' in payload) return payload.pieces.join('')
  return 'json' in payload ? payload.json : JSON.stringify(payload.data)
}

/** The success envelope around a payload in parts. */
export async function* successInParts(parts: AsyncIterable<Buffer>): AsyncGenerator<Buffer | string> {
  yield opening
  yield* parts
  yield closing
}

/** The error envelope. `errorstack` is null below 500; from 500 on it holds the message and the request id. */
export function failure({ code, status, message, details, reason, outcome }: Refusal, request_id: string): string {
  const errorstack = status >= 500 ? { reason: message, request_id } : null
  return JSON.stringify({ error: code, errorstack, message, details, reason, request_id, outcome })
}

/** The media type of an RFC 9457 error. */
export const problemType = 'application/problem+json'

/** The error in the form of RFC 9457, with the members of the error envelope. */
export function problem(refusal: Refusal, request_id: string): string {
  const { code, status, message } = refusal
  const described = { type: `urn:kith:error:${code}`, title: code.replaceAll('_', ' '), status, detail: message }
  return JSON.stringify({ ...described, ...JSON.parse(failure(refusal, request_id)) })
}

/**
 * Returns the refusal for an error. An error that is not a {@link Fault} is a fault of kith or of the database, and its
 * text goes only to the log. `statuses` are the statuses of the endpoint that differ from the usual ones.
 */
export function refusalOf(error: unknown, statuses: Partial<Record<ErrorCode, number>> = {}): Refusal {
  if (error instanceof Fault) {
    const { refusal } = error
    const status = statuses[refusal.code]
    return status === undefined ? refusal : { ...refusal, status }
  }
  return unavailability(error) ?? createRefusal('operation_failed', 'The operation failed.')
}
