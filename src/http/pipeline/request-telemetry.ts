import type { Observer, RequestEnd, Tracer } from '../../observer.ts'
import type { Exchange } from './exchange.ts'

/** Reports the start of a request to metrics and traces. */
export function beginObserving({ request, deadline }: Exchange, observer: Observer): void {
  observer.requestBegan()
  observer.tracer?.request(deadline.signal, request.method!, request.headers.traceparent as string | undefined)
}

/** Reports the end of a request, with the route's template and never its path, as in the log. */
export function endObserving(exchange: Exchange, observer: Observer): void {
  const { request, response, route, startedMs, followsSinceMs, deadline, refused } = exchange
  const end: RequestEnd = {
    method: request.method!,
    route,
    status: response.writableFinished ? response.statusCode : undefined,
    // The time that a request waits for events says nothing about the service.
    durationMs: (followsSinceMs ?? performance.now()) - startedMs,
    error: refused,
  }
  observer.requestEnded(end)
  observer.tracer?.requestEnded(deadline.signal, end)
}

/** Wraps a stage of every request in a span. Without a tracer it returns the stage itself. */
export function traced<Rest extends unknown[], T>(
  tracer: Tracer | undefined,
  name: string,
  stage: (exchange: Exchange, ...rest: Rest) => T,
): (exchange: Exchange, ...rest: Rest) => T {
  if (!tracer) return stage
  return (exchange, ...rest) => {
    const end = tracer.begin(name, exchange.deadline.signal)
    try {
      const result = stage(exchange, ...rest)
      if (result instanceof Promise) result.then(() => end()).catch(() => end(true))
      else end()
      return result
    } catch (error) {
      end(true)
      throw error
    }
  }
}
