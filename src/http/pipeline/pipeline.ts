import type { Logger } from 'pino'
import type { Authenticator } from '../../auth/authenticator.ts'
import type { Config } from '../../config.ts'
import type { DatabasePool } from '../../db/db.ts'
import { lastingMessage } from '../../db/pg-errors.ts'
import { describeFault } from '../../describe-fault.ts'
import { Fault, type Refusal } from '../../errors.ts'
import { warnOfCondition } from '../../logger.ts'
import type { Instruments } from '../../observer.ts'
import { bringsBody, readBody } from '../input/body.ts'
import { guardConnections, tooManyPipelined } from '../overload/connection-limits.ts'
import type { Gate } from '../overload/gate.ts'
import type { RateLimiter } from '../rate-limit/rate-limit.ts'
import { corsHandler } from '../server/cors.ts'
import type { Drain } from '../server/drain.ts'
import { refuseMalformed } from '../server/server.ts'
import { admit, refuseLatecomers } from './admission.ts'
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
  /** Absent: requests are not counted. */
  rateLimiter?: RateLimiter | undefined
}

/** What a server is made of. */
type Served = Services & { gate: Gate }

/**
 * The way of every request, in this order: connection · admission · malformed? · another origin's? · address · guard ·
 * body · handler. Whatever is thrown on it is answered here. `nowhere` answers what has no address.
 */
export function createPipeline(house: Served, places: Router, nowhere: Endpoint): (exchange: Exchange) => void {
  const { config, drain, logger, gate } = house
  const { observer } = house.instruments
  const { limits } = config
  const connections = guardConnections(limits)
  const admission = { requestMs: limits.requestMs, drain, connections, gate, logger, observer }
  const share = corsHandler(config.corsOrigins)

  async function carryOut(exchange: Exchange): Promise<void> {
    const { request } = exchange
    refuseLatecomers(exchange, observer)
    refuseMalformed(exchange)
    if (share(exchange)) return
    exchange.place = places.find(request.method!, exchange.url)
    const { guard, handle, streams, bodyBytes = limits.bodyBytes } = exchange.place ?? nowhere
    // What decides at once is not waited for: each turn of the queue would cost a microsecond.
    const guarded = guard?.(exchange)
    if (guarded) await guarded
    if (!streams && bringsBody(request)) exchange.body = await readBody(request, bodyBytes)
    exchange.deadline.signal.throwIfAborted()
    exchange.work = handle(exchange) ?? Promise.resolve()
    gate.hold(request, exchange.work)
    await exchange.work
  }

  return exchange => {
    const entrance = connections.enter(exchange)
    if (entrance === 'dropped') return
    admit(exchange, admission)
    if (entrance === 'refused') {
      observer.overloaded('connection')
      exchange.refuse(tooManyPipelined.refusal)
    } else carryOut(exchange).catch(error => exchange.refuse(explain(exchange, error, logger)))
  }
}

/** What an error is answered with; where it is a fault of ours, the log says so. */
export function explain({ id, place }: Exchange, error: unknown, logger: Logger): Refusal {
  const refusal = refusalOf(error, place?.row?.statuses)
  const lasting = lastingMessage(error)
  if (lasting !== undefined) warnOfCondition(logger, lasting)
  else if (!(error instanceof Fault) && refusal.status >= 500) logger.error({ request_id: id, ...describeFault(error) })
  return refusal
}
