import { Type } from 'typebox'
import { fail } from '../errors.ts'
import type { OpenRoute } from '../http/pipeline/route.ts'
import type { Router } from '../http/pipeline/router.ts'
import { singleFlight } from '../http/routes/single-flight.ts'
import type { Instruments } from '../observer.ts'

/** What the document says of /metrics. */
export const metricsRow: OpenRoute = {
  path: '/metrics',
  operationId: 'getMetrics',
  summary: 'Read the metrics',
  description:
    'In Prometheus’ text format, version 0.0.4. They tell of the service and of no organization; all the same they are ' +
    'for whoever runs it: let the proxy in front keep this address from the outside.',
  tag: 'System',
  answer: Type.String(),
  answerType: 'text/plain',
  enveloped: false,
  refusals: { 503: 'operation_failed' },
}

/** Rendering 128 kB takes 6 ms of the event loop: an eighth of its time, however many ask. */
const pauseMs = 50

/** Serves /metrics, which wants no token. */
export function serveMetrics(places: Router, { scrape }: Instruments): void {
  const render = singleFlight(async () => {
    const { text, contentType } = await scrape()
    return { bytes: Buffer.from(text), contentType }
  }, pauseMs)
  places.add({
    method: 'GET',
    path: metricsRow.path,
    handle: async exchange => {
      const { bytes, contentType } = await render().catch(() => notTold())
      exchange.send(200, bytes, contentType)
    },
  })
}

function notTold(): never {
  fail('operation_failed', 'The metrics of the other workers cannot be had at the moment.', {
    status: 503,
    headers: { 'Retry-After': '1' },
  })
}
