import { setTimeout } from 'node:timers/promises'
import {
  type Context,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api'
import { parseTraceParent, setGlobalErrorHandler } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { Config, Traces } from '../process/config.ts'
import type { EndSpan, QueuedItem, RequestEnd, Tracer, Work } from '../process/observer.ts'
import type { Signal } from '../process/signal.ts'

export type Tracing = { tracer: Tracer; stop(): Promise<void> }

/** The maximum number of items of a batch. */
const linksLimit = 256
const reportIntervalMs = 60_000
const stopPatienceMs = 1_000

/**
 * Sends traces over OTLP/HTTP, in JSON. The exporter itself reads the endpoint, headers and timeout from the
 * environment, by the names of its specification. `report` receives problems, at most once a minute.
 */
export function startTracing(traces: NonNullable<Config['traces']>, report: (problem: string) => void): Tracing {
  const reportError = throttleReports(report)
  setGlobalErrorHandler(reportError)
  const provider = new TracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': 'kith' }))
      .merge(detectResources({ detectors: [envDetector] })),
    sampler: samplerOf(traces),
    spanLimits: { linkCountLimit: linksLimit },
    spanProcessors: [new BatchSpanProcessor({ exporter: new OTLPTraceExporter() })],
  })
  return {
    tracer: createTracer(provider),
    // Spans that are not sent by then are lost. The exporter would retry for ten seconds, but an unreachable collector
    // must not delay the end of the process.
    stop: () =>
      Promise.race([provider.shutdown().catch(reportError), setTimeout(stopPatienceMs, undefined, { ref: false })]),
  }
}

function throttleReports(report: (problem: string) => void): (error: unknown) => void {
  let reportedAtMs = Number.NEGATIVE_INFINITY
  return error => {
    if (performance.now() - reportedAtMs < reportIntervalMs) return
    reportedAtMs = performance.now()
    report(`traces are not sent: ${reasonOf(error)}`)
  }
}

/** The exporter throws one error, or a list with the errors of every processor. */
const reasonOf = (error: unknown): string =>
  [error]
    .flat()
    .map(each => (each instanceof Error ? each.message || each.name : String(each)))
    .join(', ')

function samplerOf({ sampler, ratio }: Traces): Sampler {
  const roots: Record<string, () => Sampler> = {
    always_on: () => new AlwaysOnSampler(),
    always_off: () => new AlwaysOffSampler(),
    traceidratio: () => new TraceIdRatioBasedSampler(ratio),
  }
  const root = roots[sampler.replace(/^parentbased_/, '')]!()
  return sampler.startsWith('parentbased_') ? new ParentBasedSampler({ root }) : root
}

/** Spans are keyed by objects that functions pass on anyway, so no AsyncLocalStorage has to follow every promise. */
function createTracer(provider: TracerProvider): Tracer {
  const spans = provider.getTracer('kith')
  const spanByKey = new WeakMap<object, Span>()
  const contextOf = (key: object | undefined): Context => {
    const span = key && spanByKey.get(key)
    return span ? trace.setSpan(ROOT_CONTEXT, span) : ROOT_CONTEXT
  }

  /** Work outside a request, such as a background task, is not traced. */
  const isTraced = (parent: object | undefined): parent is object => parent !== undefined && spanByKey.has(parent)

  function begin(name: string, parent: object | undefined, key?: object): EndSpan {
    if (!isTraced(parent)) return () => {}
    const span = spans.startSpan(name, { startTime: performance.now() }, contextOf(parent))
    if (key) spanByKey.set(key, span)
    return failed => end(span, failed)
  }

  function beginBatch(work: Work, items: readonly QueuedItem[], signal: Signal): EndSpan {
    const name = `${work} batch`
    const startTime = performance.now()
    const waiting = items.flatMap(({ signal }) => (isTraced(signal) ? [spanByKey.get(signal)!] : []))
    const sampled = waiting.filter(span => span.spanContext().traceFlags & TraceFlags.SAMPLED)
    for (const { signal, sinceMs } of items)
      if (isTraced(signal)) end(spans.startSpan('wait', { startTime: sinceMs }, contextOf(signal)), false)
    if (sampled.length === 0) return () => {}
    const attributes = { 'kith.batch.items': items.length }
    // A batch of one request continues its trace. A batch of several belongs to none of them, so batch and requests
    // link to each other.
    const isSingle = items.length === 1
    const links = isSingle ? [] : sampled.map(span => ({ context: span.spanContext() }))
    const context = isSingle ? trace.setSpan(ROOT_CONTEXT, sampled[0]!) : ROOT_CONTEXT
    const span = spans.startSpan(name, { startTime, attributes, links }, context)
    if (!isSingle) for (const each of sampled) each.addLink({ context: span.spanContext() })
    spanByKey.set(signal, span)
    return failed => end(span, failed)
  }

  return {
    begin,
    request: (signal, method, traceparent) => {
      const attributes = { 'http.request.method': method }
      const startTime = performance.now()
      spanByKey.set(
        signal,
        spans.startSpan(method, { kind: SpanKind.SERVER, startTime, attributes }, callerContext(traceparent)),
      )
    },
    requestEnded: (signal, requestEnd) => endRequest(spanByKey.get(signal)!, requestEnd),
    traceIdOf: signal => spanByKey.get(signal)?.spanContext().traceId,
    batch: beginBatch,
    statement: (name, startedMs, failed, parent) => {
      if (!isTraced(parent)) return
      const attributes = { 'db.system.name': 'postgresql', 'db.query.summary': name }
      const options = { kind: SpanKind.CLIENT, startTime: startedMs, attributes }
      end(spans.startSpan(name || 'unnamed', options, contextOf(parent)), failed)
    },
  }
}

/** The caller's W3C Trace Context. A malformed one starts a new trace. `tracestate` is ignored. */
function callerContext(traceparent: string | undefined): Context {
  const caller = traceparent === undefined ? null : parseTraceParent(traceparent)
  if (!caller || !isSpanContextValid(caller)) return ROOT_CONTEXT
  return trace.setSpanContext(ROOT_CONTEXT, { ...caller, isRemote: true })
}

function end(span: Span, failed: boolean | undefined) {
  if (failed) span.setStatus({ code: SpanStatusCode.ERROR })
  span.end(performance.now())
}

function endRequest(span: Span, { method, route, status, error }: RequestEnd) {
  span.updateName(route === undefined ? method : `${method} ${route}`)
  if (route !== undefined) span.setAttribute('http.route', route)
  if (status === undefined) span.setAttribute('kith.aborted', true)
  else span.setAttribute('http.response.status_code', status)
  if (error !== undefined) span.setAttribute('error.type', error)
  end(span, status !== undefined && status >= 500)
}
