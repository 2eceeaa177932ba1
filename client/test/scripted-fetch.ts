import { createClient } from '../index.ts'
import type { ClientOptions } from '../src/options.ts'

/** The result of an attempt: a response, a network error, or no response until the timeout. */
export type Step = Response | Error | 'silence'

export type Sent = { url: string; method: string; headers: Headers; body: unknown }

/**
 * Creates a client whose attempts have the given results in order. Returns it with its requests and its pauses in ms.
 */
export function scriptedClient(steps: Step[], options: Partial<ClientOptions> = {}) {
  const sent: Sent[] = []
  const pauses: number[] = []
  const client = createClient({
    url: 'https://kith.test/',
    token: 'a-token',
    random: () => 0.5,
    sleep: async milliseconds => void pauses.push(milliseconds),
    fetch: async (url, init) => {
      const { method = 'GET', headers, body, signal } = init ?? {}
      const read = typeof body === 'string' ? JSON.parse(body) : undefined
      sent.push({ url: String(url), method, headers: new Headers(headers), body: read })
      const step = steps[sent.length - 1]
      if (step === undefined) throw new Error('the client sent more than was expected')
      if (step === 'silence') return silence(signal)
      if (step instanceof Error) throw step
      return step
    },
    ...options,
  } as ClientOptions)
  return { client, sent, pauses }
}

function silence(signal: AbortSignal | null | undefined): Promise<never> {
  return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
}

/** A success response of the service. */
export const success = (data: unknown, status = 200) => Response.json({ status: 'Success', data }, { status })

/** An error response of the service. */
export const refusal = (
  error: string,
  status: number,
  headers: Record<string, string> = {},
  details: { path: string; message: string }[] = [],
) => {
  const errorstack = status >= 500 ? { reason: 'a reason', request_id: 'r1' } : null
  return Response.json({ error, errorstack, message: 'A sentence.', details, request_id: 'r1' }, { status, headers })
}

/** An error of Node's fetch, which has the system's error code in its cause. */
export const networkError = (code: string) =>
  new TypeError('fetch failed', { cause: Object.assign(new Error(code), { code }) })
