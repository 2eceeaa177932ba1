import { setTimeout } from 'node:timers/promises'
import type pg from 'pg'
import { isUnavailable, unreachableCodes } from '../pg-errors.ts'
import { NoServer, ServerClient, Servers, withoutPassword } from './servers.ts'

const minMajorVersion = 15
const connectTimeoutMs = 10_000

/**
 * Connects once, so that a start with a wrong DATABASE_URL fails with one sentence, which omits the password. Throws an
 * Error if the server does not respond, rejects the login, lacks the database, or is older than PostgreSQL 15. With
 * several hosts of which none may be used, the error names each of them.
 */
export async function probe(url: string): Promise<void> {
  const client = new ServerClient(new Servers(url, { connectionTimeoutMillis: connectTimeoutMs }))
  try {
    await client.connect()
    const { rows } = await client.query<{ server_version_num: string }>('show server_version_num')
    const problem = versionProblem(Number(rows[0]?.server_version_num))
    if (problem) throw new Error(problem)
  } catch (error) {
    throw new Error(describeError(error as ConnectionError, client), { cause: error })
  } finally {
    await client.end().catch(() => {})
  }
}

/** The pause after the first failed probe. Each later pause is twice as long, up to the maximum. */
const firstPauseMs = 1_000
const maxPauseMs = 10_000

type Wait = { patienceMs: number; signal: AbortSignal; onFailure: (message: string) => Promise<void> }

/**
 * Probes until the server can be used. Calls `onFailure` before each pause. Throws the error of {@link probe} after
 * `patienceMs`, or at once if waiting does not help, as with a rejected login. Rejects when `signal` aborts.
 */
export async function waitForServer(url: string, { patienceMs, signal, onFailure }: Wait): Promise<void> {
  const giveUpAt = performance.now() + patienceMs
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, maxPauseMs)) {
    signal.throwIfAborted()
    try {
      return await probe(url)
    } catch (error) {
      const { message, cause } = error as Error
      if (!mayPass(cause) || performance.now() + pauseMs > giveUpAt) throw error
      await onFailure(message)
    }
    await setTimeout(pauseMs, undefined, { signal })
  }
}

/** Whether the server may answer later: it is unreachable, it starts, or none of several hosts is the primary yet. */
function mayPass(error: unknown): boolean {
  const { code = '', message } = error as ConnectionError
  return code !== '3D000' && (isUnavailable(error) || timedOut.test(message))
}

const timedOut = /^timeout expired|timeout exceeded/

/** The reason why a server is too old, or undefined. `version` is a `server_version_num`: 150018 is 15.18. */
export function versionProblem(version: number): string | undefined {
  const major = Math.floor(version / 10_000)
  if (major >= minMajorVersion) return undefined
  return `The server of DATABASE_URL is PostgreSQL ${major}; kith needs ${minMajorVersion} or newer.`
}

type ConnectionError = Error & { code?: string }

/**
 * The message for an error code of the system or of PostgreSQL
 * (https://www.postgresql.org/docs/current/errcodes-appendix.html).
 */
function describeError(error: ConnectionError, client: pg.Client): string {
  const { host, port, user, database, password } = client
  const { code = '' } = error
  // Only messages with other codes can contain the password. It may also be the name of the user, of the database or of
  // the host.
  const message = withoutPassword(error.message, client)
  if (error instanceof NoServer) return `${error.message} Check DATABASE_URL.`
  const server = host.startsWith('/') ? `${host}/.s.PGSQL.${port}` : `${host}:${port}`
  if (unreachableCodes.has(code)) return `No PostgreSQL responds at ${server} (${code}). Check DATABASE_URL.`
  if (timedOut.test(message))
    return `No PostgreSQL responds at ${server} within ${connectTimeoutMs / 1_000} s. Check DATABASE_URL.`
  if (code.startsWith('28') || message.startsWith('SASL'))
    return `The PostgreSQL at ${server} rejects the login of "${user}" (${password ? message : 'there is no password'}). Check DATABASE_URL.`
  if (code === '3D000')
    return `The PostgreSQL at ${server} has no database "${database}". Create it, or check DATABASE_URL.`
  if (message.startsWith('The server of DATABASE_URL')) return message
  return `The PostgreSQL at ${server} cannot be used (${message}). Check DATABASE_URL.`
}
