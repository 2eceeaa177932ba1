import { payloadOf } from './answer.ts'
import { createTokenSource } from './credentials.ts'
import { KithConnectionError, KithError, KithTimeoutError } from './errors.ts'
import { encode } from './json.ts'
import { NewestWrite } from './newest-write.ts'
import type { ClientOptions, UpdateOptions } from './options.ts'
import { type Failure, isFailure, outcomeOf, pauseBefore } from './retry.ts'
import { type StreamFormat, untilAborted, valuesFrom } from './stream.ts'

/** A request to the service. */
export type Request = {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  path: string
  body?: unknown
  options?: (UpdateOptions & { strict?: boolean }) | undefined
  /**
   * Whether the request is idempotent. An idempotent request is retried even if it may have been carried out, and so is
   * a request with an Idempotency-Key.
   */
  repeatable: boolean
  /** Whether the request writes. Only a POST that writes gets a generated Idempotency-Key. */
  writes: boolean
  /** False for endpoints that need no token. */
  authorized?: boolean
  /** How long the service may wait before it responds, in milliseconds. The timeout of an attempt is longer by it. */
  waitMs?: number
}

/** Sends a request, retries it if that is safe, and returns the payload. */
export type Send = (request: Request) => Promise<unknown>

/**
 * A request with a response of any length, and possibly an NDJSON body. It is not retried, except once after a 401 if it
 * has no body.
 */
export type StreamRequest<T> = Pick<Request, 'path' | 'options'> & {
  method: 'GET' | 'POST'
  format: StreamFormat<T>
  /** A string is sent as a line unchanged. */
  lines?: AsyncIterable<unknown> | Iterable<unknown>
  /** Called with the headers of a response that begins. */
  onResponse?: (headers: Headers) => void
}

/** The transport to one service: `send` for single responses, `stream` for those that are read while they arrive. */
export type Transport = {
  send: Send
  stream: <T>(request: StreamRequest<T>) => AsyncGenerator<T, void, undefined>
  newestWrite: NewestWrite
} & Required<Pick<ClientOptions, 'retries' | 'random' | 'sleep'>>

// The maximum delay of a timer. A timer with a longer delay fires at once.
const maxTimerMs = 2_147_483_647

/** Creates the transport to one service. Throws a TypeError for invalid options. */
export function createTransport(options: ClientOptions): Transport {
  const base = baseOf(options.url)
  const { retries = 2, timeoutMs = 12_000, random = Math.random, sleep = sleepFor } = options
  if (!Number.isInteger(retries) || retries < 0) throw new TypeError('retries must be a whole number, 0 or more')
  if (!(timeoutMs > 0 && timeoutMs <= maxTimerMs))
    throw new TypeError(`timeoutMs must be more than 0 and at most ${maxTimerMs}`)
  const fetchFunction = options.fetch ?? globalThis.fetch
  const authorization = authorizationOf(options, fetchFunction, base, timeoutMs)
  const newestWrite = new NewestWrite()
  const remembered = () => (options.readYourWrites ? newestWrite.sequence : undefined)
  const send: Send = async given => {
    refuseMisspelt(given.options)
    const request = given.options?.dryRun ? asDryRun(given) : given
    const signal = request.options?.signal
    const attemptMs = timeoutMs + (request.waitMs ?? 0)
    const headers = headersOf(request, remembered())
    const body = request.body === undefined ? null : encode(request.body)
    const init = { method: request.method, headers, body, newestWrite }
    const hasKey = headers.has('Idempotency-Key')
    let [answerLost, renewed] = [false, false]
    for (let attempt = 1; ; attempt++) {
      signal?.throwIfAborted()
      let token: string | undefined
      let sent = false
      try {
        if (request.authorized !== false) token = await authorization.get()
        if (token !== undefined) headers.set('Authorization', `Bearer ${token}`)
        sent = true
        return await sendOnce(fetchFunction, attemptMs, `${base}${request.path}`, init, signal)
      } catch (error) {
        if (!isFailure(error)) throw error
        error.attempts = attempt
        if (error instanceof KithError) error.answerLost = answerLost
        if (sent && !renewed && authorization.renew(token, error)) {
          renewed = true
          continue
        }
        // The write was done, or may have been. A retry without a key could misreport the outcome.
        const repeatable = !sent || hasKey || (request.repeatable && !mayBeDone(error))
        const pauseMs = pauseBefore(error, { attempt, retries, repeatable, random })
        if (pauseMs === null) throw error
        answerLost ||= sent && outcomeOf(error) === 'unknown'
        await sleep(pauseMs, signal)
      }
    }
  }
  async function* stream<T>(request: StreamRequest<T>, renewed = false): AsyncGenerator<T, void, undefined> {
    const { method, path, options: callOptions, format, lines, onResponse } = request
    refuseMisspelt(callOptions)
    const signal = callOptions?.signal
    signal?.throwIfAborted()
    const headers = streamHeadersOf(request, remembered())
    const token = await untilAborted(authorization.get(), signal)
    if (token !== undefined) headers.set('Authorization', `Bearer ${token}`)
    const url = `${base}${path}`
    try {
      const isBodyWhole = options.session === true
      const call = { fetchFunction, method, url, headers, format, timeoutMs, signal, lines, isBodyWhole, onResponse }
      yield* valuesFrom(call)
    } catch (error) {
      // The lines of the request have been consumed and cannot be sent again.
      if (!authorization.renew(token, error) || renewed || lines) throw error
      yield* stream(request, true)
    }
  }
  return { send, stream, newestWrite, retries, random, sleep }
}

/** Options by the names that the API gives them. */
const misspelt: Readonly<Record<string, string>> = {
  dry_run: 'dryRun',
  create_only: 'createOnly',
  if_match: 'ifMatch',
  if_sequence: 'ifSequence',
  idempotency_key: 'idempotencyKey',
  request_id: 'requestId',
}

/** Throws a TypeError for an option that only the types would refuse: without `dryRun`, a call would write. */
function refuseMisspelt(options: object = {}): void {
  for (const name of Object.keys(options))
    if (Object.hasOwn(misspelt, name)) throw new TypeError(`${name} is not an option: its name is ${misspelt[name]}`)
}

/** A dry run changes nothing, so it is repeatable and needs no Idempotency-Key. */
const asDryRun = (request: Request): Request => ({
  ...request,
  path: `${request.path}?dry_run=true`,
  repeatable: true,
  writes: false,
})

function baseOf(url: string): string {
  const { protocol, origin, pathname } = new URL(url)
  if (protocol !== 'https:' && protocol !== 'http:') throw new TypeError(`the url must begin with https:// or http://`)
  return origin + pathname.replace(/\/+$/, '')
}

type Authorization = {
  /** Undefined if the requests carry no token, because the browser adds the cookie of a session. */
  get(): Promise<string | undefined>
  /** Whether the error is a refusal of this token, and the next `get` will return another. */
  renew(token: string | undefined, error: unknown): boolean
}

/**
 * The source of the requests' tokens. A request that gets 401 had no effect, so it can be sent again with a new token.
 */
function authorizationOf(
  options: ClientOptions,
  fetchFunction: typeof fetch,
  base: string,
  timeoutMs: number,
): Authorization {
  const { token, getToken, clientCredentials, session } = options
  if (session) return { get: async () => undefined, renew: () => false }
  if (!clientCredentials)
    return { get: async () => validToken(getToken ? await getToken() : token), renew: () => false }
  const source = createTokenSource(fetchFunction, `${base}/oauth/token`, clientCredentials, timeoutMs)
  return {
    get: source.get,
    renew(token, error) {
      if (token === undefined || !(error instanceof KithError && error.status === 401)) return false
      source.discard(token)
      return true
    },
  }
}

/** The token without white space around it. Throws a TypeError, which does not quote it, if no token has such a character. */
export function validToken(token: string): string {
  const trimmed = token.trim()
  // Without this check, the error of an invalid header would quote the token.
  if (!/^[\x21-\x7e]+$/.test(trimmed))
    throw new TypeError('the token is empty or contains a character that no token contains')
  return trimmed
}

const mayBeDone = (error: Failure) => error instanceof KithError && error.outcome !== null

function headersOf({ method, body, options = {}, writes }: Request, newestWrite: number | undefined): Headers {
  const headers = new Headers({ Accept: 'application/json' })
  if (body !== undefined) headers.set('Content-Type', 'application/json')
  if (options.requestId !== undefined) headers.set('X-Request-Id', options.requestId)
  if (options.ifMatch !== undefined) headers.set('If-Match', options.ifMatch === '*' ? '*' : `"${options.ifMatch}"`)
  const sequence = options.ifSequence ?? newestWrite
  if (!writes && sequence !== undefined) headers.set('If-Sequence', `${sequence}`)
  const preferences = [
    ...(options.representation ? ['return=representation'] : []),
    ...(options.references ? [`references=${options.references}`] : []),
    ...(options.erased ? [`erased=${options.erased}`] : []),
    ...(options.strict ? ['handling=strict'] : []),
  ]
  if (preferences.length > 0) headers.set('Prefer', preferences.join(', '))
  const key = options.idempotencyKey ?? (writes && method === 'POST' ? newKey() : undefined)
  if (key !== undefined) headers.set('Idempotency-Key', key)
  return headers
}

function streamHeadersOf(
  { method, path, options, format, lines }: StreamRequest<unknown>,
  newestWrite: number | undefined,
): Headers {
  // Without `writes`, no Idempotency-Key is made, which an import does not take.
  const headers = headersOf(
    { method, path, options, repeatable: false, writes: false },
    lines ? undefined : newestWrite,
  )
  headers.set('Accept', `${format.mediaType}, application/json`)
  if (lines) headers.set('Content-Type', 'application/x-ndjson')
  return headers
}

/** 128 random bits. `crypto.randomUUID` is missing on pages without HTTPS. */
function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), byte => byte.toString(16).padStart(2, '0')).join('')
}

async function sendOnce(
  fetchFunction: typeof fetch,
  timeoutMs: number,
  url: string,
  { newestWrite, ...init }: RequestInit & { newestWrite: NewestWrite },
  signal: AbortSignal | undefined,
): Promise<unknown> {
  const controller = new AbortController()
  const timer = setTimeout(() => controller.abort(new KithTimeoutError(timeoutMs)), timeoutMs)
  const abort = () => controller.abort(signal?.reason)
  signal?.addEventListener('abort', abort, { once: true })
  if (signal?.aborted) abort()
  try {
    // A redirect could send a write to another host, or turn it into a GET.
    const response = await fetchFunction(url, { ...init, redirect: 'error', signal: controller.signal })
    newestWrite.note(response.headers)
    return payloadOf(response, await response.text(), Date.now())
  } catch (error) {
    if (controller.signal.aborted) throw controller.signal.reason
    if (isFailure(error)) throw error
    const { host } = new URL(url)
    throw new KithConnectionError(`${host} cannot be reached, or the connection broke.`, { cause: error })
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
  }
}

function sleepFor(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const abort = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort)
      resolve()
    }, milliseconds)
    signal?.addEventListener('abort', abort, { once: true })
  })
}
