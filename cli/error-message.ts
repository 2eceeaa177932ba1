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
  if (error instanceof KithConnectionError && certificateCode.test(error.message))
    return `${error.message} Its certificate is not for this name, or of an unknown issuer. NODE_EXTRA_CA_CERTS names a file with that of the issuer.`
  return persistentErrorMessage(error) ?? error.message
}

/** The codes of Node and OpenSSL for a certificate that a client rejects. */
const certificateCode = /\((\w*SELF_SIGNED\w*|UNABLE_TO_\w+|CERT_\w+|ERR_TLS_CERT\w+)\)/
