import { createHash } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { authorizationsOf } from '../http/pipeline/authenticate.ts'
import type { Exchange } from '../http/pipeline/exchange.ts'
import type { Router } from '../http/pipeline/router.ts'
import type { Services } from '../http/pipeline/services.ts'
import type { Caller } from '../route/caller.ts'
import { refuse } from '../values/errors.ts'
import { createConfirmations } from './confirmations.ts'
import { innerApi } from './inner-api.ts'
import type { loadAssistant } from './server.ts'

const path = '/mcp'
/** A filter has at most 32 KiB. */
const maxBodyBytes = 65_536

type Assistant = Awaited<ReturnType<typeof loadAssistant>>

/**
 * Serves the tools to assistants at POST /mcp (MCP, Streamable HTTP), without sessions, so any process may answer any request. `connect` opens a
 * connection to the service for the address of a client. The SDK is loaded with the first request that has a valid token.
 */
export function serveAssistants(router: Router, services: Services, connect: (address: string) => Duplex): void {
  const { config, authenticator, rateLimiter } = services
  const origins = new Set([...config.corsOrigins, ...(config.publicUrl ? [new URL(config.publicUrl).origin] : [])])
  let loading: Promise<Assistant> | undefined

  /** A page of another site could reach the service by a name that it points to this machine. */
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
      // Each request of a tool has a deadline of its own. A disconnected client ends them.
      exchange.deadline.end()
      exchange.isRead = true
      loading ??= import('./server.ts').then(({ loadAssistant }) => loadAssistant())
      const { sdk, createServer } = await loading
      const mayWrite = asksToWrite(exchange) && (scopes.has('people:write') || scopes.has('records:write'))
      const confirmations = createConfirmations(keyOf(exchange))
      const handler = sdk.createMcpHandler(() => createServer({ api: apiFor(exchange), mayWrite, confirmations }), {
        // An assistant learns of new definitions by describe_schema, so there is nothing to listen to.
        maxSubscriptions: 0,
      })
      const response = await handler.fetch(toRequest(exchange, body), messageIn(body))
      const type = response.headers.get('Content-Type') ?? 'application/json'
      exchange.send(response.status, await response.text(), type)
    },
  })
}

/** The message of a body, parsed. Throws a Fault for several at once, which would be many tools for one read. The SDK answers what is no JSON. */
function messageIn(body: Buffer | undefined): { parsedBody?: unknown } {
  let parsedBody: unknown
  try {
    parsedBody = JSON.parse(String(body))
  } catch {
    return {}
  }
  if (Array.isArray(parsedBody)) refuse('invalid_parameter', 'Send one message at a time.')
  return { parsedBody }
}

const asksToWrite = ({ url }: Exchange) => new URLSearchParams(url.split('?')[1]).get('write') === 'true'

/** The token is a secret of the caller, which every process gets with the request, and no model sees. */
const keyOf = ({ request }: Exchange) =>
  createHash('sha256').update(`kith mcp ${request.headers.authorization}`).digest()

/** The headers that the protocol reads. */
const isOfProtocol = (name: string) => name === 'accept' || name === 'content-type' || name.startsWith('mcp-')

function toRequest({ request }: Exchange, body: Buffer | undefined): Request {
  const headers = Object.entries(request.headers).filter(([name]) => isOfProtocol(name)) as [string, string][]
  return new Request(`http://localhost${path}`, { method: 'POST', headers, body: body ?? null })
}
