import { refuse } from '../../errors.ts'
import { createCorsHandler } from '../server/cors.ts'
import { type Serve, throwIfMalformed } from '../server/server.ts'
import { authenticate } from './authenticate.ts'
import { beginRequest, isVersioned } from './begin-request.ts'
import type { Exchange, OpenEndpoint } from './exchange.ts'
import { explain } from './log.ts'
import type { Router } from './router.ts'
import { serveRow } from './serve-row.ts'
import type { RowServices } from './services.ts'

/** The limit of a body outside `/v1`, in bytes, unless the endpoint has its own. Such a body needs no token. */
const maxOpenBodyBytes = 16_384

/**
 * Returns a function that serves each admitted request: malformed request · CORS · path, then {@link serveRow} or {@link serveOpen}. An
 * exception in any step becomes an error response.
 */
export function createPipeline(services: RowServices, router: Router): Serve {
  const { config, drain, logger } = services
  const { observer } = services.instruments
  const { limits } = config
  const handleCors = createCorsHandler(config.corsOrigins)

  async function serve(exchange: Exchange): Promise<void> {
    throwIfMalformed(exchange)
    if (handleCors(exchange)) return
    const endpoint = router.find(exchange.request.method!, exchange.url)
    exchange.route = endpoint?.path
    if (!endpoint) await refuseUnknown(services, router, exchange)
    else if ('row' in endpoint) await serveRow(services, endpoint, exchange)
    else await serveOpen(endpoint, exchange)
  }

  return exchange => {
    beginRequest(exchange, { limits, drain, logger, observer })
    // A refusal is sent after the parser has read its chunk. If the parser rejects the rest, only that is answered.
    serve(exchange).catch(error => exchange.refuse(explain(exchange, error, logger)))
  }
}

/** Serves a request outside the route table: check · body · slot · handle. */
async function serveOpen(endpoint: OpenEndpoint, exchange: Exchange): Promise<void> {
  await endpoint.check?.(exchange)
  if (exchange.response.headersSent) return
  const body = await exchange.readBody(endpoint.bodyBytes ?? maxOpenBodyBytes)
  exchange.enter()
  exchange.work = endpoint.handle(exchange, body) ?? Promise.resolve()
  await exchange.work
}

/**
 * Refuses a request that no endpoint takes: 405 if the path allows other methods, otherwise 404. Below `/v1` it needs a token first, so that
 * a client without one learns nothing. It counts as a read.
 */
async function refuseUnknown(services: RowServices, router: Router, exchange: Exchange): Promise<never> {
  const found = router.findAll(exchange.url)
  // The log and the metrics name the path, even if only other methods have it.
  exchange.route = found[0]?.endpoint.path
  if (isVersioned(exchange.url)) {
    const caller = await authenticate(services, exchange)
    exchange.organization = caller.organization.key
    if (services.rateLimiter) exchange.headers(await services.rateLimiter.spend(caller, 'read'))
  }
  if (found.length === 0)
    refuse('not_found', 'There is no such address.', {
      details: [{ path: '', message: 'is not an address of this API' }],
    })
  const Allow = found.map(({ method }) => method).join(', ')
  return refuse('invalid_parameter', `This address allows only these methods: ${Allow}.`, {
    status: 405,
    headers: { Allow },
  })
}
