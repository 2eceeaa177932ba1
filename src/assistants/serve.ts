import { createHash } from 'node:crypto'
import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { parseJson } from '../http/input/json.ts'
import { authorizationsOf } from '../http/pipeline/authenticate.ts'
import type { Exchange } from '../http/pipeline/exchange.ts'
import type { Router } from '../http/pipeline/router.ts'
import type { Services } from '../http/pipeline/services.ts'
import type { Signal } from '../process/signal.ts'
import type { Caller } from '../route/caller.ts'
import { type Detail, Fault, refuse } from '../values/errors.ts'
import { parseWithAllDigits } from '../values/parse-json.ts'
import { type Api, ApiRefusal, type ApiRequest } from './api.ts'
import { createConfirmations } from './confirmations.ts'
import type { loadAssistant } from './server.ts'

const path = '/mcp'
/** The maximum size of a body. A filter has at most 32 KiB. */
const maxBodyBytes = 65_536

type Assistant = Awaited<ReturnType<typeof loadAssistant>>

/**
 * Serves the tools to assistants at POST /mcp (MCP, Streamable HTTP). There are no sessions, so any process may answer
 * any request. `connect` opens a connection to the service for the address of a client. The first request with a valid
 * token loads the SDK.
 */
export function serveAssistants(router: Router, services: Services, connect: (address: string) => Duplex): void {
  const { config, authenticator, rateLimiter } = services
  const { jsonDepth } = config.limits
  const origins = new Set([...config.corsOrigins, ...(config.publicUrl ? [new URL(config.publicUrl).origin] : [])])
  let loading: Promise<Assistant> | undefined

  /**
   * Refuses a foreign origin. Otherwise a page of another site could reach the service by a name that resolves to this
   * machine.
   */
  const requireOrigin = ({ request: { headers } }: Exchange) => {
    if (headers.origin === undefined || origins.has(headers.origin)) return
    refuse('forbidden', 'A page of this origin may not call /mcp. KITH_CORS_ORIGINS lists those that may.')
  }

  const authenticate = (exchange: Exchange): Caller | Promise<Caller> =>
    authenticator.authenticate(authorizationsOf(exchange), exchange.deadline.signal)

  const apiFor = ({ request, id, deadline: { signal } }: Exchange) => {
    const { authorization, 'x-forwarded-for': forwarded } = request.headers
    const headers = {
      Authorization: authorization!,
      'X-Request-Id': id,
      ...(forwarded !== undefined && { 'X-Forwarded-For': String(forwarded) }),
    }
    return innerApi({ connect: () => connect(request.socket.remoteAddress ?? ''), headers, signal })
  }

  router.add({
    method: 'POST',
    path,
    bodyBytes: maxBodyBytes,
    check: async exchange => {
      requireOrigin(exchange)
      const caller = await authenticate(exchange)
      exchange.organization = caller.organization.key
      if (rateLimiter) exchange.headers(await rateLimiter.spend(caller, 'read'))
    },
    handle: async (exchange, body) => {
      const { scopes } = await authenticate(exchange)
      // Each request of a tool has its own deadline. If the client disconnects, these requests end.
      exchange.deadline.end()
      exchange.isRead = true
      loading ??= import('./server.ts').then(({ loadAssistant }) => loadAssistant())
      const { sdk, createServer } = await loading
      const mayWrite = asksToWrite(exchange) && (scopes.has('people:write') || scopes.has('records:write'))
      const confirmations = createConfirmations(keyOf(exchange))
      const handler = sdk.createMcpHandler(() => createServer({ api: apiFor(exchange), mayWrite, confirmations }), {
        // An assistant reads new definitions with describe_schema, so it needs no subscriptions.
        maxSubscriptions: 0,
      })
      const response = await handler.fetch(toRequest(exchange, body), messageIn(body, jsonDepth))
      const type = response.headers.get('Content-Type') ?? 'application/json'
      exchange.send(response.status, await response.text(), type)
    },
  })
}

/** The levels of nesting of a message around the values of a write. */
const envelopeDepth = 3

/**
 * Parses the message of a body like any other body, because JSON.parse would round numbers, and a request may have only
 * one message. Throws a Fault. The SDK answers a body that is not JSON.
 */
function messageIn(body: Buffer | undefined, jsonDepth: number): { parsedBody?: unknown } {
  try {
    return { parsedBody: parseJson(body ?? Buffer.alloc(0), { jsonDepth: jsonDepth + envelopeDepth }) }
  } catch (error) {
    if (error instanceof Fault && error.refusal.code === 'failed_binding_json') return {}
    throw error
  }
}

const asksToWrite = ({ url }: Exchange) => new URLSearchParams(url.split('?')[1]).get('write') === 'true'

/** Derives the key from the token, a secret of the caller that every process gets with the request and no model sees. */
const keyOf = ({ request }: Exchange) =>
  createHash('sha256').update(`kith mcp ${request.headers.authorization}`).digest()

/** The headers that the protocol reads. */
const isOfProtocol = (name: string) => name === 'accept' || name === 'content-type' || name.startsWith('mcp-')

function toRequest({ request }: Exchange, body: Buffer | undefined): Request {
  const headers = Object.entries(request.headers).filter(([name]) => isOfProtocol(name)) as [string, string][]
  return new Request(`http://localhost${path}`, { method: 'POST', headers, body: body ?? null })
}

// A regular import of node:http reads all its properties, and reading WebSocket loads undici.
const { request: sendRequest } = process.getBuiltinModule('node:http')

/** The maximum size of a response that a tool reads. */
const maxResponseBytes = 8 * 1_048_576

type Origin = {
  /** Opens a connection to the service within the process. */
  connect: () => Duplex
  /** The headers of all requests, which are those of the caller. */
  headers: Record<string, string>
  /** Aborts the requests under way when the caller disconnects. */
  signal: Signal
}

/** The API for the tools of a request. Each of their requests passes the whole pipeline, like one from outside. */
const innerApi =
  (origin: Origin): Api =>
  async request => {
    const { status, text } = await sendInside(origin, request)
    const body = parseWithAllDigits(text) as { data: unknown; error: string; message: string; details: Detail[] }
    if (status < 400) return body.data
    throw new ApiRefusal({ status, error: body.error, message: body.message, details: body.details })
  }

function sendInside(origin: Origin, request: ApiRequest): Promise<{ status: number; text: string }> {
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

/** The target of a request. A path parameter cannot leave its segment. */
function targetOf({ path, params = {}, query = {}, dryRun }: ApiRequest): string {
  const values = new URLSearchParams(dryRun ? { dry_run: 'true' } : {})
  for (const [name, value] of Object.entries(query))
    for (const each of value === undefined ? [] : [value].flat()) values.append(name, String(each))
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ''))
  return values.size > 0 ? `${filled}?${values}` : filled
}
