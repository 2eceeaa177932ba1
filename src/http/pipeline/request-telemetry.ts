import type { Observer, RequestEnd, Tracer } from '../../observer.ts'
import type { Exchange } from './exchange.ts'

/** Reports the start of a request to metrics and traces. */
export function beginObserving({ request, deadline }: Exchange, observer: Observer): void {
  observer.requestBegan()
  observer.tracer?.request(deadline.signal, request.method!, request.headers.traceparent as string | undefined)
}

/**
 * Reports the end of a request, with the route's template and never its path, as in the log. In the metrics, a request whose token was not
 * accepted has no route: without a token, nobody makes them grow.
 */
export function endObserving(exchange: Exchange, observer: Observer, needsToken: boolean): void {
  const { request, response, route, startedMs, followsSinceMs, deadline, refused, organization } = exchange
  const end: RequestEnd = {
    method: request.method!,
    route,
    status: response.writableFinished ? response.statusCode : undefined,
    // The time that a request waits for events says nothing about the service.
    durationMs: (followsSinceMs ?? performance.now()) - startedMs,
    error: refused,
  }
  observer.requestEnded(needsToken && organization === undefined ? { ...end, route: undefined } : end)
  observer.tracer?.requestEnded(deadline.signal, end)
}

/** Runs a stage of a request, in a span if there is a tracer. */
export async function traced<T>(
  tracer: Tracer | undefined,
  name: string,
  { deadline }: Exchange,
  stage: () => T | Promise<T>,
): Promise<T> {
  const end = tracer?.begin(name, deadline.signal)
  try {
    const result = await stage()
    end?.()
    return result
  } catch (error) {
    end?.(true)
    throw error
  }
}
