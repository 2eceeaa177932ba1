import { fetchWithin, parseObject, secondsUntil } from './answer.ts'
import { KithConnectionError, KithError } from './errors.ts'

/** Credentials from `kith client create`. `scope` requests fewer scopes than the client has, separated by spaces. */
export type ClientCredentials = { clientId: string; clientSecret: string; scope?: string }

/** A source that fetches tokens when they are needed. */
export type TokenSource = {
  /** Returns a token that does not expire soon. Rejects with one of the client's errors. */
  get(): Promise<string>
  /** Removes a token that the service refused. The next call fetches another. */
  discard(token: string): void
}

/** A token is renewed when a fifth of its lifetime is left, so that it outlasts the slowest request. */
const renewalShare = 0.8
const defaultSeconds = 300

/**
 * Fetches tokens from POST /oauth/token (RFC 6749, client credentials), one request at a time, and caches the last one.
 */
export function createTokenSource(
  fetchFunction: typeof fetch,
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
    const startedAtMs = Date.now()
    const init = { method: 'POST', body }
    const { access_token, expires_in } = await fetchWithin(fetchFunction, url, init, { timeoutMs }, readToken)
    current = { token: access_token, renewAtMs: startedAtMs + (expires_in ?? defaultSeconds) * 1_000 * renewalShare }
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

type TokenResponse = { access_token: string; expires_in?: number }

async function readToken(response: Response): Promise<TokenResponse> {
  const body = parseObject(await response.text())
  if (response.ok && typeof body?.access_token === 'string') return body as TokenResponse
  throw buildError(response, body)
}

/** Errors of RFC 6749, 5.2 have their own format. 429 and 503 have kith's. */
function buildError(response: Response, body: ReturnType<typeof parseObject>): KithError | KithConnectionError {
  const { status } = response
  const retryAfterSeconds = secondsUntil(response.headers.get('retry-after'), Date.now())
  const message = body?.error_description ?? body?.message
  if (typeof message !== 'string')
    return new KithConnectionError(
      `The response of POST /oauth/token is not from kith: it has status ${status}. Check the url.`,
      {
        status,
        retryAfterSeconds,
      },
    )
  const code = status === 429 ? 'rate_limit_exceeded' : status >= 500 ? 'operation_failed' : 'unauthorized'
  const request_id = response.headers.get('x-request-id')
  return new KithError({ code, status, message, details: [], request_id, errorstack: null, retryAfterSeconds })
}
