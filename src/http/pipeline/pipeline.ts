import type { Logger } from 'pino'
import type { Authenticator } from '../../auth/authenticator.ts'
import type { Config } from '../../config.ts'
import type { DatabasePool } from '../../db/db.ts'
import { persistentErrorMessage } from '../../db/pg-errors.ts'
import { describeFault } from '../../describe-fault.ts'
import { Fault, type Refusal } from '../../errors.ts'
import { warnOfCondition } from '../../logger.ts'
import type { Instruments } from '../../observer.ts'
import { hasBody, readBody } from '../input/body.ts'
import { guardConnections, tooManyPipelined } from '../overload/connection-limits.ts'
import type { Gate } from '../overload/gate.ts'
import type { RateLimiter } from '../rate-limit/rate-limit.ts'
import { createCorsHandler } from '../server/cors.ts'
import type { Drain } from '../server/drain.ts'
import { throwIfMalformed } from '../server/server.ts'
import { admit, throwIfDraining } from './admission.ts'
import type { Endpoint, Exchange } from './exchange.ts'
import { refusalOf } from './reply.ts'
import type { Router } from './router.ts'

export type Services = {
  db: DatabasePool
  config: Config
  authenticator: Authenticator
  drain: Drain
  logger: Logger
  instruments: Instruments
  /** Absent if no rate limit is configured. */
  rateLimiter?: RateLimiter | undefined
}

/** The services that the pipeline needs. */
type PipelineServices = Services & { gate: Gate }

/**
 * Returns a function that runs the steps of every request, in this order: connection · admission · malformed request ·
 * CORS · path · guard · body · handler. An exception in any step becomes an error response. `notFound` answers unknown
 * paths.
 */
export function createPipeline(
  services: PipelineServices,
  router: Router,
  notFound: Endpoint,
): (exchange: Exchange) => void {
  const { config, drain, logger, gate } = services
  const { observer } = services.instruments
  const { limits } = config
  const connections = guardConnections(limits)
  const admission = { requestMs: limits.requestMs, drain, connections, gate, logger, observer }
  const handleCors = createCorsHandler(config.corsOrigins)

  async function run(exchange: Exchange): Promise<void> {
    const { request } = exchange
    throwIfDraining(exchange, observer)
    throwIfMalformed(exchange)
    if (handleCors(exchange)) return
    exchange.endpoint = router.find(request.method!, exchange.url)
    const { guard, handle, streams, bodyBytes = limits.bodyBytes } = exchange.endpoint ?? notFound
    // A synchronous guard is not awaited: each turn of the microtask queue would cost a microsecond.
    const guarded = guard?.(exchange)
    if (guarded) await guarded
    if (!streams && hasBody(request)) exchange.body = await readBody(request, bodyBytes)
    exchange.deadline.signal.throwIfAborted()
    exchange.work = handle(exchange) ?? Promise.resolve()
    gate.hold(request, exchange.work)
    await exchange.work
  }

  return exchange => {
    const decision = connections.enter(exchange)
    if (decision === 'dropped') return
    admit(exchange, admission)
    if (decision === 'refused') {
      observer.overloaded('connection')
      exchange.refuse(tooManyPipelined.refusal)
    } else run(exchange).catch(error => exchange.refuse(explain(exchange, error, logger)))
  }
}

/** Returns the refusal for an error. Logs the error if it is a fault of kith or of the database. */
export function explain({ id, endpoint }: Exchange, error: unknown, logger: Logger): Refusal {
  const refusal = refusalOf(error, endpoint?.row?.statuses)
  const persistentMessage = persistentErrorMessage(error)
  if (persistentMessage !== undefined) warnOfCondition(logger, persistentMessage)
  else if (!(error instanceof Fault) && refusal.status >= 500) logger.error({ request_id: id, ...describeFault(error) })
  return refusal
}
