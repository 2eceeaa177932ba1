import pg from 'pg'
import { type Refusal, refuse } from '../errors.ts'
import { ServerSilent } from './liveness.ts'

const hasCode = (error: unknown, ...codes: string[]): error is pg.DatabaseError =>
  error instanceof pg.DatabaseError && codes.includes(error.code ?? '')

export const isUniqueViolation = (error: unknown): boolean => hasCode(error, '23505')

/** Deadlock detected, or a serialization failure: the same transaction run again may succeed. */
export const isDeadlock = (error: unknown): boolean => hasCode(error, '40P01', '40001')

/** A lock was not to be had within lock_timeout. */
export const isLockTimeout = (error: unknown): boolean => hasCode(error, '55P03')

/** A not-null violation of this column. */
export const isNullOf = (error: unknown, table: string, column: string): boolean =>
  hasCode(error, '23502') && error.table === table && error.column === column

/**
 * The transaction came through or not: the connection was lost between COMMIT and its answer, or the answer came with a
 * warning. It is never run again.
 */
export class OutcomeUnknown extends Error {}

/** Of what fails together, this is what must be told. */
export const findOutcomeUnknown = (errors: unknown[]): unknown => errors.find(error => error instanceof OutcomeUnknown)

/** Classes of codes: the connection is lost; no room on the disk, no memory, no connection left. */
const unavailableClasses = ['08', '53']

/** The database is away, starting, stopping, read-only or out of what it needs: worth a retry a moment later. */
export function isUnavailable(error: unknown): boolean {
  if (hasCode(error, '57P01', '57P02', '57P03', '3D000', '55000', '25006')) return true
  if (error instanceof pg.DatabaseError) return unavailableClasses.includes(error.code?.slice(0, 2) ?? '')
  if (error instanceof OutcomeUnknown || error instanceof ServerSilent) return true
  if (!(error instanceof Error)) return false
  const { code } = error as NodeJS.ErrnoException
  return networkCodes.has(code ?? '') || connectionLost.test(error.message)
}

export const readOnlyMessage = 'The database is read-only, as a standby is: it takes no writes.'

/** What is wrong with the server until somebody mends it: every write meets it, so the log need not tell of each. */
export function lastingMessage(error: unknown): string | undefined {
  if (hasCode(error, '25006')) return readOnlyMessage
  return hasCode(error, '53100') ? 'The database has no disk space left.' : undefined
}

/** What clients are told while the database is away or refuses the work for now; undefined for any other error. */
export function unavailability(error: unknown): Refusal | undefined {
  const message = unavailableMessage(error)
  if (message === undefined) return undefined
  const refusal = refuse('operation_failed', message, { status: 503, headers: { 'Retry-After': '1' } })
  return error instanceof OutcomeUnknown ? { ...refusal, outcome: 'unknown' } : refusal
}

function unavailableMessage(error: unknown): string | undefined {
  if (error instanceof OutcomeUnknown) return 'The database did not confirm the write: it may have been done.'
  const lasting = lastingMessage(error)
  if (lasting !== undefined) return lasting
  // A standby ends reads so, too, that are in the way of what it replays.
  if (isDeadlock(error)) return 'The request conflicted with other work in the database. Retry.'
  return isUnavailable(error) ? 'The database cannot be reached at the moment.' : undefined
}

const networkCodes = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOENT',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EHOSTUNREACH',
])
// pg reports a lost connection with no code.
const connectionLost =
  /^(Connection terminated|Client has encountered a connection error|timeout exceeded when trying to connect)/
