import { isIPv6, type LookupFunction } from 'node:net'
import { Webhook } from 'standardwebhooks'
import type { Dispatcher } from 'undici'
import type { Signal } from '../process/signal.ts'
import { version } from '../process/version.ts'
import { type AllowedRanges, type Resolve, resolveReachable, urlProblem } from './addresses.ts'
import { type RequestHeaders, withoutValues } from './request-headers.ts'

/** A message to send. `secrets` are all active ones, each of which signs. `headers` are those that the webhook adds. */
export type Message = {
  url: string
  id: string
  body: string
  secrets: readonly string[]
  headers?: RequestHeaders
}

/** The end of an attempt. Without `status` there was no response, and `error` says why. */
export type DeliveryOutcome = {
  status?: number
  /** The first 1 KiB of the response. */
  response?: string
  error?: string
  durationMs: number
  /** Seconds of the header Retry-After. */
  retryAfterSeconds?: number
}

/** The columns of the end of an attempt. */
export const outcomeColumns = ({ status, durationMs, response, error }: DeliveryOutcome) => ({
  response_status: status ?? null,
  duration_ms: durationMs,
  response: response ?? null,
  error: error ?? null,
})

export type Sender = {
  /** Sends a message once. Never rejects, unless `signal` aborts. */
  send(message: Message, signal: Signal): Promise<DeliveryOutcome>
  close(): Promise<void>
}

type SenderOptions = {
  allowed: AllowedRanges
  resolve: Resolve
  nowMs?: () => number
  /** The longest time of an attempt, from the look-up of the name to the head of the response. */
  timeoutMs?: number
  /** Certificates to trust in place of the public ones, for tests. */
  ca?: string
}

const attemptMs = 15_000
const connectMs = 10_000
/** A receiver that sends the body of its response slowly does not occupy the service. */
const bodyMs = 1_000
const maxResponseBytes = 1_024
const maxHeaderBytes = 16_384
const keepAliveMs = 10_000

/**
 * Sends signed requests by Standard Webhooks. A connection goes to the very address that was checked. Redirects are not followed,
 * and TLS certificates are verified.
 */
export function createSender({ allowed, resolve, nowMs = Date.now, timeoutMs = attemptMs, ca }: SenderOptions): Sender {
  /** undici takes a tenth of the time of a start to load, so only the first message loads it. */
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
        // The look-up is not called for an address, so the URL is checked. Many messages in a row have one URL.
        const { url } = message
        if (checked?.url !== url) checked = { url, problem: urlProblem(url, allowed) }
        if (checked.problem !== undefined) return ended({ error: `The URL ${checked.problem}.` })
        opened ??= open().catch(error => {
          // The next message tries again.
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
 * Runs work under a signal that aborts with another one, or after a time. AbortSignal.any and AbortSignal.timeout take a tenth of the time of a
 * request longer, and the timer of each request would go on for 15 seconds.
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

/** The look-up of a connection, which returns only addresses that were checked. */
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
    // The status is known, and the part of the body that arrived is enough.
  } finally {
    clearTimeout(timer)
  }
  // PostgreSQL stores no character of code 0.
  return Buffer.concat(parts).subarray(0, maxResponseBytes).toString().replaceAll('\0', '\u{fffd}')
}

/** The seconds of Retry-After (RFC 9110, 10.2.3): a number, or a date. */
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
