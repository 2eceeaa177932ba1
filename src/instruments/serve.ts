import type { Router } from '../http/pipeline/router.ts'
import type { Instruments } from '../process/observer.ts'
import type { OpenRoute } from '../route/route.ts'
import { refuse, retryInASecond } from '../values/errors.ts'
import { Type } from '../values/json-schema.ts'
import { singleFlight } from './single-flight.ts'

/** The OpenAPI entry of /metrics. */
export const metricsRow: OpenRoute = {
  path: '/metrics',
  operationId: 'getMetrics',
  summary: 'Read the metrics',
  description:
    'In Prometheus’ text format, version 0.0.4. The metrics describe the service and name no organization, but they are meant for ' +
    'its operator: block this path at the proxy.',
  tag: 'System',
  answer: Type.String(),
  answerType: 'text/plain',
  enveloped: false,
  refusals: { 503: 'operation_failed' },
}

/**
 * The minimum time between the starts of renderings, also as a multiple of the duration of the last one: scrapes take
 * at most an eighth of the time.
 */
const pause = { minMs: 50, runs: 8 }

/** Serves /metrics, which needs no token. */
export function serveMetrics(router: Router, { scrape }: Instruments): void {
  const render = singleFlight(async () => {
    const { text, contentType } = await scrape()
    return { bytes: Buffer.from(text), contentType }
  }, pause)
  router.get(metricsRow.path, async exchange => {
    const { bytes, contentType } = await render().catch(() => refuse('operation_failed', unavailable, retryInASecond))
    exchange.send(200, bytes, contentType)
  })
}

const unavailable = 'The metrics of the other workers are not available. Retry after 1 second.'
