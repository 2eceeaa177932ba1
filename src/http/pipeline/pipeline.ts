import type { Logger } from 'pino'
import type { Authenticator } from '../../auth/authenticator.ts'
import type { CellPool } from '../../cells/cell-pool.ts'
import type { Config } from '../../config.ts'
import { persistentErrorMessage } from '../../db/pg-errors.ts'
import { describeFault } from '../../describe-fault.ts'
import { Fault, type Refusal } from '../../errors.ts'
import { warnOfCondition } from '../../logger.ts'
import type { Instruments } from '../../observer.ts'
import type { Reads } from '../../readers/reads.ts'
import { hasBody, readBody, throwIfTooLarge } from '../input/body.ts'
import type { RateLimiter } from '../rate-limit/rate-limit.ts'
import { createCorsHandler } from '../server/cors.ts'
import type { Drain } from '../server/drain.ts'
import { type Serve, throwIfMalformed } from '../server/server.ts'
import { beginRequest } from './begin-request.ts'
import type { Endpoint, Exchange } from './exchange.ts'
import { refusalOf } from './reply.ts'
import type { Router } from './router.ts'

export type Services = {
  db: CellPool
  /** Selects the database of each read. */
  reads: Reads
  config: Config
  authenticator: Authenticator
  drain: Drain
  logger: Logger
  instruments: Instruments
  /** Absent if no rate limit is configured. */
  rateLimiter?: RateLimiter | undefined
}

/** The limit of a body outside `/v1`, in bytes, unless the endpoint has its own. Such a body needs no token. */
const maxOpenBodyBytes = 16_384

/**
 * Returns a function that runs the steps of every admitted request, in this order: malformed request · CORS · path · guard · body · slot · handler. An exception in any step becomes an error response. `notFound` answers unknown
 * paths.
 */
export function createPipeline(services: Services, router: Router, notFound: Endpoint): Serve {
  const { config, drain, logger } = services
  const { observer } = services.instruments
  const { limits } = config
  const handleCors = createCorsHandler(config.corsOrigins)

  async function run(exchange: Exchange): Promise<void> {
    const { request, url, deadline } = exchange
    throwIfMalformed(exchange)
    if (handleCors(exchange)) return
    const endpoint = router.find(request.method!, url) ?? notFound
    exchange.route = endpoint.path
    exchange.statuses = endpoint.row?.statuses
    const guarded = endpoint.guard ? endpoint.guard(exchange) : endpoint.handle
    // A synchronous guard is not awaited: each turn of the microtask queue would cost a microsecond.
    const handle = guarded instanceof Promise ? await guarded : guarded
    const { streams, bodyBytes = endpoint.row ? limits.bodyBytes : maxOpenBodyBytes } = endpoint
    const withBody = hasBody(request)
    if (withBody && !streams) throwIfTooLarge(request, bodyBytes)
    if (withBody) exchange.requestBody()
    const body = withBody && !streams ? await readBody(request, bodyBytes) : undefined
    deadline.signal.throwIfAborted()
    exchange.enter()
    exchange.work = handle(exchange, body) ?? Promise.resolve()
    await exchange.work
  }

  return exchange => {
    beginRequest(exchange, { limits, drain, logger, observer })
    // A refusal is sent after the parser has read its chunk. If the parser rejects the rest, only that is answered.
    run(exchange).catch(error => exchange.refuse(explain(exchange, error, logger)))
  }
}

/** Returns the refusal for an error. Logs the error if it is a fault of kith or of the database. */
export function explain({ id, statuses }: Exchange, error: unknown, logger: Logger): Refusal {
  const refusal = refusalOf(error, statuses)
  const persistentMessage = persistentErrorMessage(error)
  if (persistentMessage !== undefined) warnOfCondition(logger, persistentMessage)
  else if (!(error instanceof Fault) && refusal.status >= 500) logger.error({ request_id: id, ...describeFault(error) })
  return refusal
}
