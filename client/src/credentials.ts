import { secondsUntil } from './answer.ts'
import { KithConnectionError, KithError, KithTimeoutError } from './errors.ts'

/** A client of `kith client create`; `scope` asks for less than all that it may do, words with spaces between. */
export type ClientCredentials = { clientId: string; clientSecret: string; scope?: string }

/** Tokens that are fetched when they are needed. */
export type TokenSource = {
  /** A token that is good for a while. Rejects with one of the client's errors. */
  get(): Promise<string>
  /** The service refused this token: the next call fetches another. */
  discard(token: string): void
}

/** A token is renewed when a fifth of its life is left: a request that takes its whole time ends before the token does. */
const renewalShare = 0.8
const defaultSeconds = 300

/** Fetches tokens from POST /oauth/token (RFC 6749, client credentials), one request at a time, and keeps the last one. */
export function createTokenSource(
  ask: typeof fetch,
  url: string,
  { clientId, clientSecret, scope }: ClientCredentials,
  timeoutMs: number,
): TokenSource {
  let current: { token: string; renewAtMs: number } | undefined
  let fetching: Promise<string> | undefined
  const body = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: clientId,
    client_secret: clientSecret,
    ...(scope !== undefined && { scope }),
  })

  async function fetchToken(): Promise<string> {
    const begunMs = Date.now()
    const { access_token, expires_in } = await granted(ask, url, body, timeoutMs)
    current = { token: access_token, renewAtMs: begunMs + (expires_in ?? defaultSeconds) * 1_000 * renewalShare }
    return access_token
  }

  return {
    async get() {
      if (current && Date.now() < current.renewAtMs) return current.token
      fetching ??= fetchToken().finally(() => {
        fetching = undefined
      })
      return fetching
    },
    discard(token) {
      if (current?.token === token) current = undefined
    },
  }
}

type Granted = { access_token: string; expires_in?: number }

async function granted(ask: typeof fetch, url: string, body: URLSearchParams, timeoutMs: number): Promise<Granted> {
  const ending = new AbortController()
  const timer = setTimeout(() => ending.abort(new KithTimeoutError(timeoutMs)), timeoutMs)
  try {
    const response = await ask(url, { method: 'POST', body, redirect: 'error', signal: ending.signal })
    const answer = parse(await response.text())
    if (response.ok && typeof answer?.access_token === 'string') return answer as unknown as Granted
    throw refusalOf(response, answer)
  } catch (error) {
    if (ending.signal.aborted) throw ending.signal.reason
    if (error instanceof KithError || error instanceof KithConnectionError) throw error
    throw new KithConnectionError(`${new URL(url).host} cannot be reached, or the connection broke.`, { cause: error })
  } finally {
    clearTimeout(timer)
  }
}

function parse(text: string): Record<string, unknown> | null {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** RFC 6749, 5.2, has an envelope of its own; 429 and 503 come in the service's. */
function refusalOf(response: Response, answer: Record<string, unknown> | null): KithError | KithConnectionError {
  const { status } = response
  const retryAfterSeconds = secondsUntil(response.headers.get('retry-after'), Date.now())
  const sentence = answer?.error_description ?? answer?.message
  if (typeof sentence !== 'string')
    return new KithConnectionError(`POST /oauth/token answered ${status}, and not as kith does. Is the url right?`, {
      status,
      retryAfterSeconds,
    })
  const word = status === 429 ? 'rate_limit_exceeded' : status >= 500 ? 'operation_failed' : 'unauthorized'
  const request_id = response.headers.get('x-request-id')
  const told = { message: sentence, details: [], request_id, errorstack: null, retryAfterSeconds }
  return new KithError({ word, status, ...told })
}
