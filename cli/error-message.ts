import { KithConnectionError, KithError } from '../client/index.ts'
import { persistentErrorMessage } from '../src/db/pg-errors.ts'

/** The message of an error for a terminal, without a stack trace. The details of a KithError follow in parentheses. */
export function errorMessage(error: unknown): string {
  if (!(error instanceof Error) || error.message === '') return `The command failed: ${String(error)}`
  const details =
    error instanceof KithError ? error.details.map(({ path, message }) => `${path} ${message}`.trim()) : []
  if (error instanceof KithError && details.length > 0) return `${error.sentence} (${details.join('; ')})`
  if (error instanceof KithConnectionError && !error.wasSent)
    return `${error.message} Start the service, or name its address with --url or KITH_URL.`
  return persistentErrorMessage(error) ?? error.message
}
