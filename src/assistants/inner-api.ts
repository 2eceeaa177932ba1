import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Signal } from '../process/signal.ts'
import type { Detail } from '../values/errors.ts'
import { parseWithAllDigits } from '../values/parse-json.ts'
import { type Api, ApiRefusal, type ApiRequest } from './api.ts'

// An import of node:http reads its properties, and that of WebSocket loads undici.
const { request: sendRequest } = process.getBuiltinModule('node:http')

/** The longest response that a tool reads. */
const maxResponseBytes = 8 * 1_048_576

type Origin = {
  /** Opens a connection to the service within the process. */
  connect: () => Duplex
  /** The headers that all requests have: those of the caller. */
  headers: Record<string, string>
  /** Aborts the requests under way when the caller has gone. */
  signal: Signal
}

/** The API for the tools of a request to the service: each of their requests passes the whole pipeline, as one from outside does. */
export const innerApi =
  (origin: Origin): Api =>
  async request => {
    const { status, text } = await exchange(origin, request)
    const body = parseWithAllDigits(text) as { data: unknown; error: string; message: string; details: Detail[] }
    if (status < 400) return body.data
    throw new ApiRefusal({ status, error: body.error, message: body.message, details: body.details })
  }

function exchange(origin: Origin, request: ApiRequest): Promise<{ status: number; text: string }> {
  origin.signal.throwIfAborted()
  const connection = origin.connect()
  const { method, body, ifMatch, idempotencyKey } = request
  const bytes = body === undefined ? undefined : Buffer.from(JSON.stringify(body))
  const headers = {
    ...origin.headers,
    Host: 'localhost',
    ...(bytes && { 'Content-Type': 'application/json', 'Content-Length': bytes.length }),
    ...(ifMatch !== undefined && { 'If-Match': `"${ifMatch}"` }),
    ...(idempotencyKey !== undefined && { 'Idempotency-Key': idempotencyKey }),
  }
  const sent = sendRequest({ method, path: targetOf(request), headers, createConnection: () => connection })
  const abort = () => sent.destroy(new Error('The client disconnected.'))
  origin.signal.addEventListener('abort', abort)
  return readResponse(sent.end(bytes)).finally(() => {
    origin.signal.removeEventListener('abort', abort)
    connection.destroy()
  })
}

async function readResponse(sent: ClientRequest): Promise<{ status: number; text: string }> {
  const response = await new Promise<IncomingMessage>((resolve, reject) =>
    sent.on('response', resolve).on('error', reject),
  )
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of response) {
    parts.push(part)
    bytes += part.length
    if (bytes > maxResponseBytes) throw tooLarge
  }
  return { status: response.statusCode!, text: Buffer.concat(parts).toString() }
}

const tooLarge = new ApiRefusal({
  status: 413,
  error: 'invalid_parameter',
  message: 'The response would be larger than 8 MiB. Ask for fewer items, or for fields.',
  details: [],
})

/** The target of a request. A parameter of the path cannot leave its segment. */
function targetOf({ path, params = {}, query = {}, dryRun }: ApiRequest): string {
  const values = new URLSearchParams(dryRun ? { dry_run: 'true' } : {})
  for (const [name, value] of Object.entries(query))
    for (const each of value === undefined ? [] : [value].flat()) values.append(name, String(each))
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ''))
  return values.size > 0 ? `${filled}?${values}` : filled
}
