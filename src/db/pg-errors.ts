import pg from 'pg'
import { type Refusal, refuse } from '../errors.ts'
import { ServerSilent } from './pulse.ts'

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

/** The connection was lost between COMMIT and its answer: the transaction came through or not. */
export class OutcomeUnknown extends Error {}

/** Classes of codes: the connection is lost; no room on the disk, no memory, no connection left. */
const unavailable_classes = ['08', '53']

/** The database is away, starting, stopping or out of what it needs: worth a retry a moment later. */
export function isUnavailable(error: unknown): boolean {
  if (hasCode(error, '57P01', '57P02', '57P03', '3D000', '55000')) return true
  if (error instanceof pg.DatabaseError) return unavailable_classes.includes(error.code?.slice(0, 2) ?? '')
  if (error instanceof OutcomeUnknown || error instanceof ServerSilent) return true
  if (!(error instanceof Error)) return false
  const { code } = error as NodeJS.ErrnoException
  return network_codes.has(code ?? '') || connection_lost.test(error.message)
}

/** What clients are told while the database is away; undefined for any other error. */
export function unavailability(error: unknown): Refusal | undefined {
  if (!isUnavailable(error)) return undefined
  const message =
    error instanceof OutcomeUnknown
      ? 'The database was lost while the write was being committed: it may have been done.'
      : 'The database cannot be reached at the moment.'
  return refuse('operation_failed', message, { status: 503, headers: { 'Retry-After': '1' } })
}

const network_codes = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOENT',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EHOSTUNREACH',
])
// pg reports a lost connection with no code.
const connection_lost =
  /^(Connection terminated|Client has encountered a connection error|timeout exceeded when trying to connect)/
