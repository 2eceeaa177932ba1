import { type Detail, KithConnectionError } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { createContext, type ReactNode, useContext, useMemo } from 'react'
import { type SessionFields, usableScopes } from './field-rights.ts'

/** The signed-in session, as GET /console/session returns it. */
export type Session = {
  id: string
  /** The name under which the change log records the writes of this session. */
  name: string
  organization: { key: string }
  scopes: string[]
  /** The key of the role, or null, and the fields that it opens. Null means all fields. */
  role: string | null
  fields?: SessionFields
  method: 'code' | 'client' | 'issuer' | 'account'
  /** The account that signed in, or null. */
  account_id: string | null
  expires_at: string
  /** The version of kith. */
  version: string
}

type Refusal = { code?: string; message: string; details?: readonly Detail[] }

/** A refusal by an endpoint below /console. `code` is one of kith's error codes. */
export class SessionError extends Error {
  readonly status: number
  readonly code: string | undefined
  readonly details: readonly Detail[]
  constructor(status: number, { code, message, details = [] }: Refusal) {
    super(message)
    this.status = status
    this.code = code
    this.details = details
  }
}

/**
 * Sends a request to an endpoint below /console, and returns `data` of the response. Throws a SessionError, or a
 * KithConnectionError without a response.
 */
export async function requestConsole<Data>(method: string, path: string, body?: unknown): Promise<Data> {
  const response = await fetch(`/console/${path}`, {
    method,
    headers: body === undefined ? {} : { 'Content-Type': 'application/json' },
    body: body === undefined ? null : JSON.stringify(body),
  }).catch(cause => {
    throw new KithConnectionError('The service cannot be reached, or the connection broke.', { cause })
  })
  const answer = (await response.json().catch(() => undefined)) as ({ data?: Data } & Partial<Refusal>) | undefined
  if (!response.ok) throw new SessionError(response.status, { message: response.statusText, ...answer })
  return answer?.data as Data
}

/** The session of this browser. Null if no person is signed in. */
async function readSession(): Promise<Session | null> {
  try {
    return await requestConsole<Session | null>('GET', 'session')
  } catch (error) {
    if (error instanceof SessionError && error.status === 401) return null
    throw error
  }
}

export const sessionQuery = { queryKey: ['session'], queryFn: readSession, staleTime: 60_000 }

const SessionContext = createContext<Session | undefined>(undefined)

export function SessionProvider({ session, children }: { session: Session; children: ReactNode }) {
  const usable = useMemo(() => ({ ...session, scopes: usableScopes(session.scopes) }), [session])
  return <SessionContext value={usable}>{children}</SessionContext>
}

export const useSessionQuery = () => useQuery(sessionQuery)

/** The session of the signed-in person. */
export function useSession(): Session {
  const session = useContext(SessionContext)
  if (!session) throw new Error('useSession needs a SessionProvider')
  return session
}

/** Whether the session has the scope. The console hides functions whose scope is missing. */
export function useScope(scope: string): boolean {
  return useSession().scopes.includes(scope)
}
