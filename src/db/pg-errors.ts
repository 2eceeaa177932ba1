import pg from 'pg'
import { createRefusal, type Refusal, retryInASecond } from '../values/errors.ts'
import { ServerSilent } from './servers/liveness.ts'
import { NoServer } from './servers/servers.ts'

const hasCode = (error: unknown, ...codes: string[]): error is pg.DatabaseError =>
  error instanceof pg.DatabaseError && codes.includes(error.code ?? '')

/** A deadlock or a serialization failure. A retry of the transaction may succeed. */
export const isDeadlock = (error: unknown): boolean => hasCode(error, '40P01', '40001')

/**
 * A retry of the transaction may succeed: a deadlock, a serialization failure, or a row that had moved since the
 * transaction read it, so that the head got no number. Only that statement can violate a not-null constraint.
 */
export const isConflict = (error: unknown): boolean => isDeadlock(error) || hasCode(error, '23502')

/** A statement waited for a lock longer than lock_timeout. */
export const isLockTimeout = (error: unknown): boolean => hasCode(error, '55P03')

/** The object is not dropped because others depend on it. */
export const isStillUsed = (error: unknown): boolean => hasCode(error, '2BP01')

/** The role of the connection may not run the command. */
export const isNotPermitted = (error: unknown): boolean => hasCode(error, '42501')

/** A write on a standby, or in a read-only session. */
export const isReadOnly = (error: unknown): boolean => hasCode(error, '25006')

/** A write failed because the disk of the database is full. */
export const isDiskFull = (error: unknown): boolean => hasCode(error, '53100')

/** A value that PostgreSQL does not know, such as a time zone. */
export const isUnknownParameter = (error: unknown): boolean => hasCode(error, '22023')

/**
 * It is unknown whether the transaction was committed: the connection was lost between COMMIT and its answer, or the
 * answer came with a warning. Such a transaction is never run again.
 */
export class OutcomeUnknown extends Error {}

/** The OutcomeUnknown among errors, if any. It takes precedence over the others in a response. */
export const findOutcomeUnknown = (errors: unknown[]): unknown => errors.find(error => error instanceof OutcomeUnknown)

/** Classes of error codes: connection exception, and insufficient resources (disk, memory, connections). */
const unavailableClasses = ['08', '53']

/**
 * Whether the database is unreachable, starting, stopping, read-only or out of resources, so that a later retry may
 * succeed.
 */
export function isUnavailable(error: unknown): boolean {
  if (hasCode(error, '57P01', '57P02', '57P03', '3D000', '55000', '25006')) return true
  if (error instanceof pg.DatabaseError) return unavailableClasses.includes(error.code?.slice(0, 2) ?? '')
  if (error instanceof OutcomeUnknown || error instanceof ServerSilent || error instanceof NoServer) return true
  if (!(error instanceof Error)) return false
  const { code } = error as NodeJS.ErrnoException
  return unreachableCodes.has(code ?? '') || connectionLost.test(error.message)
}

export const readOnlyMessage = 'The database is read-only (a standby). It accepts no writes.'
export const diskFullMessage = 'The database has no disk space left.'

/**
 * The message for a condition that lasts until an operator or a promotion ends it. Every write fails with it, so the
 * log does not repeat it for each request.
 */
export function persistentErrorMessage(error: unknown): string | undefined {
  return error instanceof NoServer ? error.message : refusedWriteMessage(error)
}

function refusedWriteMessage(error: unknown): string | undefined {
  if (isReadOnly(error)) return readOnlyMessage
  return isDiskFull(error) ? diskFullMessage : undefined
}

/**
 * The refusal for a temporary error: the database is unreachable, or currently rejects the work. Undefined for any
 * other error.
 */
export function unavailability(error: unknown): Refusal | undefined {
  const message = unavailableMessage(error)
  if (message === undefined) return undefined
  const refusal = createRefusal('operation_failed', message, retryInASecond)
  return error instanceof OutcomeUnknown ? { ...refusal, outcome: 'unknown' } : refusal
}

function unavailableMessage(error: unknown): string | undefined {
  if (error instanceof OutcomeUnknown) return 'The database did not confirm the write. The write may have been done.'
  const refusedMessage = refusedWriteMessage(error)
  if (refusedMessage !== undefined) return refusedMessage
  // A standby also cancels reads with this code when they conflict with its replay.
  if (isDeadlock(error)) return 'The request conflicted with other work in the database. Retry.'
  return isUnavailable(error) ? 'The database cannot be reached at the moment.' : undefined
}

/** The system's codes for a server that does not respond, or whose name is not found. */
export const unreachableCodes: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EACCES',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOENT',
  'ENOTFOUND',
  'EPIPE',
  'ETIMEDOUT',
])
// pg reports a lost connection without an error code.
const connectionLost =
  /^(Connection terminated|Client has encountered a connection error|timeout exceeded when trying to connect|Query read timeout)/
