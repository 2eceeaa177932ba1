import type { Observer, RequestEnd, Tracer } from '../../observer.ts'
import type { Exchange } from './exchange.ts'

/** Tells that a request was counted in. */
export function beginObserving({ request, deadline }: Exchange, observer: Observer): void {
  observer.requestBegan()
  observer.tracer?.request(deadline.signal, request.method!, request.headers.traceparent as string | undefined)
}

/** Tells how it ended. The route's template, never its address, as in the log. */
export function endObserving(exchange: Exchange, observer: Observer): void {
  const { request, response, place, startedMs, deadline, refused } = exchange
  const end: RequestEnd = {
    method: request.method!,
    route: place?.path,
    status: response.writableFinished ? response.statusCode : undefined,
    durationMs: performance.now() - startedMs,
    error: refused,
  }
  observer.requestEnded(end)
  observer.tracer?.requestEnded(deadline.signal, end)
}

/** A stage of every request, in a span of its own where traces are wanted; else it is the stage itself. */
export function traced<T>(
  tracer: Tracer | undefined,
  name: string,
  stage: (exchange: Exchange) => T,
): (exchange: Exchange) => T {
  if (!tracer) return stage
  return exchange => {
    const end = tracer.begin(name, exchange.deadline.signal)
    try {
      const result = stage(exchange)
      if (result instanceof Promise) result.then(() => end()).catch(() => end(true))
      else end()
      return result
    } catch (error) {
      end(true)
      throw error
    }
  }
}
