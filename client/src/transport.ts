import { payloadOf } from './answer.ts'
import { createTokenSource } from './credentials.ts'
import { KithConnectionError, KithError, KithTimeoutError } from './errors.ts'
import { encode } from './json.ts'
import type { ClientOptions, UpdateOptions } from './options.ts'
import { type Failure, pauseBefore, workOf } from './retry.ts'
import { valuesFrom } from './stream.ts'

/** One call of the service. */
export type Request = {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  path: string
  body?: unknown
  options?: (UpdateOptions & { strict?: boolean }) | undefined
  /**
   * Whether it comes to the same when it is done twice: then it is sent again even if it may have been done. So is
   * whatever has an Idempotency-Key: under one key the service does it once.
   */
  repeatable: boolean
  /** Reads want no Idempotency-Key, whatever their method. */
  writes: boolean
  /** False for the addresses that want no token. */
  authorized?: boolean
}

/** Sends a request, again where that is safe, and answers the payload. */
export type Send = (request: Request) => Promise<unknown>

/** A request whose answer is NDJSON of any length, and so is its body, if it has one. It is sent once. */
export type StreamRequest = Pick<Request, 'path' | 'options'> & {
  /** A text is a line as it stands. */
  lines?: AsyncIterable<unknown> | Iterable<unknown>
}

/** The ways to one service: `send` for what is answered as a whole, `stream` for what is answered value by value. */
export type Transport = { send: Send; stream: (request: StreamRequest) => AsyncGenerator<unknown, void, undefined> }

// What a timer can hold; a longer one would ring at once.
const longestTimerMs = 2_147_483_647

/** The ways to one service, for one caller. */
export function createTransport(options: ClientOptions): Transport {
  const base = baseOf(options.url)
  const { retries = 2, timeoutMs = 12_000, random = Math.random, sleep = sleepFor } = options
  if (!Number.isInteger(retries) || retries < 0) throw new TypeError('retries is a whole number, 0 or more')
  if (!(timeoutMs > 0 && timeoutMs <= longestTimerMs))
    throw new TypeError(`timeout_ms is more than 0, and at most ${longestTimerMs}`)
  const ask = options.fetch ?? globalThis.fetch
  const authorization = authorizationOf(options, ask, base, timeoutMs)
  const send: Send = async request => {
    const signal = request.options?.signal
    const headers = headersOf(request)
    const body = request.body === undefined ? null : encode(request.body)
    const init = { method: request.method, headers, body }
    const keyed = headers.has('Idempotency-Key')
    let [answerLost, renewed] = [false, false]
    for (let attempt = 1; ; attempt++) {
      signal?.throwIfAborted()
      let token: string | undefined
      let sent = false
      try {
        if (request.authorized !== false) token = await authorization.get()
        if (token !== undefined) headers.set('Authorization', `Bearer ${token}`)
        sent = true
        return await sendOnce(ask, timeoutMs, `${base}${request.path}`, init, signal)
      } catch (error) {
        if (!isFailure(error)) throw error
        error.attempts = attempt
        if (error instanceof KithError) error.answerLost = answerLost
        if (sent && !renewed && authorization.renew(token, error)) {
          renewed = true
          continue
        }
        // The service found the database in doubt: sent again without a key, the write could be taken for done.
        const repeatable = !sent || keyed || (request.repeatable && !isOutcomeUnknown(error))
        const pauseMs = pauseBefore(error, { attempt, retries, repeatable, random })
        if (pauseMs === null) throw error
        answerLost ||= sent && workOf(error) === 'unknown'
        await sleep(pauseMs, signal)
      }
    }
  }
  async function* stream(request: StreamRequest, renewed = false): AsyncGenerator<unknown, void, undefined> {
    const { path, options: told, lines } = request
    told?.signal?.throwIfAborted()
    const headers = headersOf({ method: 'POST', path, options: told, repeatable: false, writes: false })
    headers.set('Accept', 'application/x-ndjson, application/json')
    if (lines) headers.set('Content-Type', 'application/x-ndjson')
    const token = await authorization.get()
    headers.set('Authorization', `Bearer ${token}`)
    try {
      yield* valuesFrom({ ask, url: `${base}${path}`, headers, timeoutMs, signal: told?.signal, lines })
    } catch (error) {
      // Lines that were drawn for the request cannot be drawn again.
      if (!authorization.renew(token, error) || renewed || lines) throw error
      yield* stream(request, true)
    }
  }
  return { send, stream }
}

function baseOf(url: string): string {
  const { protocol, origin, pathname } = new URL(url)
  if (protocol !== 'https:' && protocol !== 'http:') throw new TypeError(`the url must begin with https:// or http://`)
  return origin + pathname.replace(/\/+$/, '')
}

type Authorization = {
  get(): Promise<string>
  /** Answers whether the error is the refusal of this token and there will be another one. */
  renew(token: string | undefined, error: unknown): boolean
}

/** Where the tokens of the requests come from. A 401 comes before any work, so the request may be sent again. */
function authorizationOf(options: ClientOptions, ask: typeof fetch, base: string, timeoutMs: number): Authorization {
  const { token, getToken, clientCredentials } = options
  if (!clientCredentials) return { get: async () => checked(getToken ? await getToken() : token), renew: () => false }
  const source = createTokenSource(ask, `${base}/oauth/token`, clientCredentials, timeoutMs)
  return {
    get: source.get,
    renew(token, error) {
      if (token === undefined || !(error instanceof KithError && error.status === 401)) return false
      source.discard(token)
      return true
    },
  }
}

function checked(token: string): string {
  const given = token.trim()
  // Else the error of the header would quote it.
  if (!/^[\x21-\x7e]+$/.test(given)) throw new TypeError('the token is empty, or holds what no token holds')
  return given
}

const isOutcomeUnknown = (error: Failure) => error instanceof KithError && error.outcome === 'unknown'

function isFailure(error: unknown): error is Failure {
  return error instanceof KithError || error instanceof KithConnectionError || error instanceof KithTimeoutError
}

function headersOf({ method, body, options = {}, writes }: Request): Headers {
  const headers = new Headers({ Accept: 'application/json' })
  if (body !== undefined) headers.set('Content-Type', 'application/json')
  if (options.requestId !== undefined) headers.set('X-Request-Id', options.requestId)
  if (options.ifMatch !== undefined) headers.set('If-Match', options.ifMatch === '*' ? '*' : `"${options.ifMatch}"`)
  const preferences = [
    ...(options.representation ? ['return=representation'] : []),
    ...(options.references ? [`references=${options.references}`] : []),
    ...(options.strict ? ['handling=strict'] : []),
  ]
  if (preferences.length > 0) headers.set('Prefer', preferences.join(', '))
  const key = options.idempotencyKey ?? (writes && method === 'POST' ? newKey() : undefined)
  if (key !== undefined) headers.set('Idempotency-Key', key)
  return headers
}

/** 128 random bits. `crypto.randomUUID` is missing on pages without HTTPS. */
function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), byte => byte.toString(16).padStart(2, '0')).join('')
}

async function sendOnce(
  ask: typeof fetch,
  timeoutMs: number,
  url: string,
  init: RequestInit,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  const ending = new AbortController()
  const timer = setTimeout(() => ending.abort(new KithTimeoutError(timeoutMs)), timeoutMs)
  const end = () => ending.abort(signal?.reason)
  signal?.addEventListener('abort', end, { once: true })
  if (signal?.aborted) end()
  try {
    // A redirect would carry a write to somebody else, or turn it into a GET.
    const response = await ask(url, { ...init, redirect: 'error', signal: ending.signal })
    return payloadOf(response, await response.text(), Date.now())
  } catch (error) {
    if (ending.signal.aborted) throw ending.signal.reason
    if (isFailure(error)) throw error
    const { host } = new URL(url)
    throw new KithConnectionError(`${host} cannot be reached, or the connection broke.`, { cause: error })
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', end)
  }
}

function sleepFor(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const end = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', end)
      resolve()
    }, milliseconds)
    signal?.addEventListener('abort', end, { once: true })
  })
}
