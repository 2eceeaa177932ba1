import { unavailability } from '../../db/pg-errors.ts'
import { type ErrorWord, Fault, type Refusal, refuse } from '../../errors.ts'

const [opening, closing] = ['{"status":"Success","data":', '}']

/** The success envelope. */
export function success(payload: { data: unknown } | { json: string }): string {
  return opening + ('json' in payload ? payload.json : JSON.stringify(payload.data)) + closing
}

/** The same around a payload in parts. */
export async function* successInParts(parts: AsyncIterable<Buffer>): AsyncGenerator<Buffer | string> {
  yield opening
  yield* parts
  yield closing
}

/** The error envelope. `errorstack` is null below 500; above it says no more than the message and whom to ask about. */
export function failure({ word, status, message, details, outcome }: Refusal, request_id: string): string {
  const errorstack = status >= 500 ? { reason: message, request_id } : null
  return JSON.stringify({ error: word, errorstack, message, details, request_id, outcome })
}

/**
 * What an error is answered with. Anything that is no {@link Fault} is a fault of ours or of the database: its own text
 * stays in the log. `statuses` are the route's quirks.
 */
export function refusalOf(error: unknown, statuses: Partial<Record<ErrorWord, number>> = {}): Refusal {
  if (error instanceof Fault) {
    const { refusal } = error
    const status = statuses[refusal.word]
    return status === undefined ? refusal : { ...refusal, status }
  }
  return unavailability(error) ?? refuse('operation_failed', 'The operation failed.')
}
