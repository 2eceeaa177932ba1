import type pg from 'pg'
import { OutcomeUnknown } from './pg-errors.ts'

/** The last warning on a connection, until {@link clearWarning}. */
const warnings = new WeakMap<pg.ClientBase, string>()

/** Keeps what PostgreSQL warns of on this client. Its session must have `client_min_messages=warning`. */
export function watchWarnings(client: pg.ClientBase): void {
  client.on('notice', ({ code, message }) => {
    // The severity is in the server's language, the code is not: class 00 is anything less than a warning.
    if (!code?.startsWith('00')) warnings.set(client, `${code}: ${message}`)
  })
}

/** A statement has run and is not committed yet: a warning that comes from here on belongs to the commit. */
export function clearWarning(client: pg.ClientBase): void {
  warnings.delete(client)
}

/**
 * An error when PostgreSQL warned while it committed. It does so when the wait for a synchronous standby is cancelled: the
 * transaction is committed here, and a promotion of that standby loses it.
 */
export function unknownOutcomeOf(client: pg.ClientBase): OutcomeUnknown | undefined {
  const warning = warnings.get(client)
  return warning === undefined ? undefined : new OutcomeUnknown(`PostgreSQL warned at COMMIT: ${warning}`)
}
