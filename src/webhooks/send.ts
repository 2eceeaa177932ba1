import { isIPv6, type LookupFunction } from 'node:net'
import { Webhook } from 'standardwebhooks'
import type { Dispatcher } from 'undici'
import type { Signal } from '../process/signal.ts'
import { version } from '../process/version.ts'
import { type AllowedRanges, type Resolve, resolveReachable, urlProblem } from './addresses.ts'
import { type RequestHeaders, withoutValues } from './request-headers.ts'

/** A message to send. Each of the active `secrets` signs it. `headers` are the webhook's own. */
export type Message = {
  url: string
  id: string
  body: string
  secrets: readonly string[]
  headers?: RequestHeaders
}

/** The result of an attempt. Without `status` there was no response, and `error` has the reason. */
export type DeliveryOutcome = {
  status?: number
  /** The first 1 KiB of the response. */
  response?: string
  error?: string
  durationMs: number
  /** The seconds of the header Retry-After. */
  retryAfterSeconds?: number
}

/** The columns that store the result of an attempt. */
export const outcomeColumns = ({ status, durationMs, response, error }: DeliveryOutcome) => ({
  response_status: status ?? null,
  duration_ms: durationMs,
  response: response ?? null,
  error: error ?? null,
})

export type Sender = {
  /** Sends a message once. Rejects only if `signal` aborts. */
  send(message: Message, signal: Signal): Promise<DeliveryOutcome>
  close(): Promise<void>
}

type SenderOptions = {
  allowed: AllowedRanges
  resolve: Resolve
  nowMs?: () => number
  /** The time limit of an attempt, from the look-up of the name to the head of the response. */
  timeoutMs?: number
  /** The certificates to trust instead of the public ones, in tests. */
  ca?: string
}

const attemptMs = 15_000
const connectMs = 10_000
/** The time limit of a response body, so that a receiver that sends it slowly does not occupy the service. */
const bodyMs = 1_000
const maxResponseBytes = 1_024
const maxHeaderBytes = 16_384
const keepAliveMs = 10_000

/**
 * Sends requests with the signatures of Standard Webhooks. A connection uses the address that was checked. Redirects
 * are not followed, and TLS certificates are verified.
 */
export function createSender({ allowed, resolve, nowMs = Date.now, timeoutMs = attemptMs, ca }: SenderOptions): Sender {
  /** Loading undici takes a tenth of the time of a start, so the first message loads it. */
  const open = async () => {
    const { Agent, request } = await import('undici')
    const agent = new Agent({
      connect: { lookup: lookupReachable(allowed, resolve), timeout: connectMs, ...(ca !== undefined && { ca }) },
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
      keepAliveTimeout: keepAliveMs,
      keepAliveMaxTimeout: keepAliveMs,
      maxHeaderSize: maxHeaderBytes,
      pipelining: 1,
    })
    return { agent, request }
  }
  let opened: ReturnType<typeof open> | undefined
  let checked: { url: string; problem: string | undefined } | undefined
  return {
    send: async (message, signal) => {
      let startedMs = performance.now()
      const ended = (outcome: Omit<DeliveryOutcome, 'durationMs'>): DeliveryOutcome => ({
        ...outcome,
        durationMs: Math.round(performance.now() - startedMs),
      })
      try {
        // A URL with an address needs no look-up, so the URL itself is checked. Many consecutive messages have the same
        // URL.
        const { url } = message
        if (checked?.url !== url) checked = { url, problem: urlProblem(url, allowed) }
        if (checked.problem !== undefined) return ended({ error: `The URL ${checked.problem}.` })
        opened ??= open().catch(error => {
          // The next message tries to load it again.
          opened = undefined
          throw error
        })
        const { agent, request } = await opened
        startedMs = performance.now()
        return await withLimit(signal, timeoutMs, async limit => {
          const answer = await request(url, {
            method: 'POST',
            headers: headersOf(message, new Date(nowMs())),
            body: message.body,
            dispatcher: agent,
            signal: limit,
          })
          const retryAfter = retryAfterOf(answer.headers['retry-after'], nowMs())
          return ended({
            status: answer.statusCode,
            response: withoutValues(await readStart(answer.body), message.headers ?? {}),
            ...(retryAfter !== undefined && { retryAfterSeconds: retryAfter }),
          })
        })
      } catch (error) {
        if (signal.aborted) throw error
        return ended({ error: describe(error as NodeJS.ErrnoException) })
      }
    },
    close: async () => (await opened)?.agent.destroy(),
  }
}

/**
 * Runs work under a signal that aborts with another one, or after a time. AbortSignal.any and AbortSignal.timeout take
 * 10 % longer per request, and the timer of each request would stay for 15 seconds.
 */
async function withLimit<T>(signal: Signal, limitMs: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const ending = new AbortController()
  const abort = () => ending.abort(signal.reason)
  const timer = setTimeout(() => ending.abort(new DOMException('', 'TimeoutError')), limitMs)
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort)
  try {
    return await work(ending.signal)
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', abort)
  }
}

function headersOf({ id, body, secrets, headers }: Message, at: Date): Record<string, string> {
  return {
    ...headers,
    'content-type': 'application/json',
    'user-agent': `kith/${version}`,
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
    'webhook-signature': secrets.map(secret => new Webhook(secret).sign(id, at, body)).join(' '),
  }
}

/** The look-up of a connection, which returns only checked addresses. */
function lookupReachable(allowed: AllowedRanges, resolve: Resolve): LookupFunction {
  return (host, options, callback) => {
    resolveReachable(host, allowed, resolve).then(
      addresses => {
        const found = addresses.map(address => ({ address, family: isIPv6(address) ? 6 : 4 }))
        if (options.all) callback(null, found)
        else callback(null, found[0]!.address, found[0]!.family)
      },
      (error: NodeJS.ErrnoException) => callback(error, '', 0),
    )
  }
}

/** Reads the first 1 KiB of a response, and closes the connection if there is more. */
async function readStart(body: Dispatcher.ResponseData['body']): Promise<string> {
  const parts: Buffer[] = []
  let bytes = 0
  const timer = setTimeout(() => body.destroy(), bodyMs)
  try {
    for await (const part of body) {
      parts.push(part)
      bytes += part.length
      if (bytes > maxResponseBytes) break
    }
  } catch {
    // The status is known, and the received part of the body is enough.
  } finally {
    clearTimeout(timer)
  }
  // PostgreSQL cannot store the character of code 0.
  return Buffer.concat(parts).subarray(0, maxResponseBytes).toString().replaceAll('\0', '\u{fffd}')
}

/** The seconds of Retry-After (RFC 9110, 10.2.3), which is a number or a date. */
function retryAfterOf(header: string | string[] | undefined, nowMs: number): number | undefined {
  const text = [header].flat()[0]?.trim()
  if (text === undefined) return undefined
  if (/^\d{1,9}$/.test(text)) return Number(text)
  const untilMs = Date.parse(text)
  return Number.isNaN(untilMs) ? undefined : Math.max(0, Math.ceil((untilMs - nowMs) / 1_000))
}

const sentences: Record<string, string> = {
  ADDRESS_REFUSED: 'The host resolves to an address that webhooks may not reach.',
  ENOTFOUND: 'The host has no address.',
  ENODATA: 'The host has no address.',
  ECONNREFUSED: 'The receiver refused the connection.',
  ECONNRESET: 'The receiver closed the connection.',
  UND_ERR_SOCKET: 'The receiver closed the connection.',
  UND_ERR_CONNECT_TIMEOUT: 'The connection took too long.',
  UND_ERR_HEADERS_OVERFLOW: 'The header of the response is too large.',
}

function describe(error: NodeJS.ErrnoException): string {
  if (error.name === 'TimeoutError' || error.code === 'UND_ERR_HEADERS_TIMEOUT')
    return 'The receiver did not respond in time.'
  const code = error.code ?? (error.cause as NodeJS.ErrnoException | undefined)?.code
  return sentences[code ?? ''] ?? `The request failed (${code ?? error.name}).`
}
