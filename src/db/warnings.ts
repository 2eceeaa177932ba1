import type pg from 'pg'
import { OutcomeUnknown } from './pg-errors.ts'

/** The last warning on a connection, until {@link clearWarning}. */
const warnings = new WeakMap<pg.ClientBase, string>()

/** Records the warnings of PostgreSQL on this client. Its session must have `client_min_messages=warning`. */
export function watchWarnings(client: pg.ClientBase): void {
  client.on('notice', ({ code, message }) => {
    // The severity is translated to the server's language, but the code is not. Class 00 is everything below a warning.
    if (!code?.startsWith('00')) warnings.set(client, `${code}: ${message}`)
  })
}

/** Discards the warning of an uncommitted statement. A later warning then belongs to the COMMIT. */
export function clearWarning(client: pg.ClientBase): void {
  warnings.delete(client)
}

/**
 * An error if PostgreSQL warned during the commit. It warns when the wait for a synchronous standby is cancelled: the
 * transaction is committed on this server, but a promotion of that standby would lose it.
 */
export function unknownOutcomeOf(client: pg.ClientBase): OutcomeUnknown | undefined {
  const warning = warnings.get(client)
  return warning === undefined ? undefined : new OutcomeUnknown(`PostgreSQL warned at COMMIT: ${warning}`)
}
