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
import type { Config, Traces } from '../config.ts'
import type { Arrived, EndSpan, RequestEnd, Tracer, Work } from '../observer.ts'
import type { Signal } from '../signal.ts'

export type Tracing = { tracer: Tracer; stop(): Promise<void> }

/** As many as a batch may have items. */
const linksLimit = 256
const reportIntervalMs = 60_000
const stopPatienceMs = 1_000

/**
 * Sends traces over OTLP/HTTP, in JSON. Where they go, with which headers and how long that may take, the exporter reads
 * from the environment itself, by the names of its specification. `report` is told what goes wrong, once a minute at most.
 */
export function startTracing(traces: NonNullable<Config['traces']>, report: (problem: string) => void): Tracing {
  const tell = tellSeldom(report)
  setGlobalErrorHandler(tell)
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
    // What cannot be sent by then is lost: the exporter would try for ten seconds, and a collector that is away must not
    // keep the process.
    stop: () => Promise.race([provider.shutdown().catch(tell), setTimeout(stopPatienceMs, undefined, { ref: false })]),
  }
}

function tellSeldom(report: (problem: string) => void): (error: unknown) => void {
  let toldMs = Number.NEGATIVE_INFINITY
  return error => {
    if (performance.now() - toldMs < reportIntervalMs) return
    toldMs = performance.now()
    report(`traces are not sent: ${reasonOf(error)}`)
  }
}

/** What the exporter throws is one error, or those of every processor. */
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

/** Spans hang on what is handed from function to function anyway, so that no AsyncLocalStorage has to follow every promise. */
function createTracer(provider: TracerProvider): Tracer {
  const spans = provider.getTracer('kith')
  const known = new WeakMap<object, Span>()
  const contextOf = (self: object | undefined): Context => {
    const span = self && known.get(self)
    return span ? trace.setSpan(ROOT_CONTEXT, span) : ROOT_CONTEXT
  }

  /** What belongs to no request, such as the tasks in the background, is not told. */
  const isTold = (under: object | undefined): under is object => under !== undefined && known.has(under)

  function begin(name: string, under: object | undefined, self?: object): EndSpan {
    if (!isTold(under)) return () => {}
    const span = spans.startSpan(name, { startTime: performance.now() }, contextOf(under))
    if (self) known.set(self, span)
    return failed => end(span, failed)
  }

  function beginBatch(work: Work, arrived: readonly Arrived[], signal: Signal): EndSpan {
    const name = `${work} batch`
    const startTime = performance.now()
    const waiting = arrived.flatMap(({ signal }) => (isTold(signal) ? [known.get(signal)!] : []))
    const sampled = waiting.filter(span => span.spanContext().traceFlags & TraceFlags.SAMPLED)
    for (const { signal, sinceMs } of arrived)
      if (isTold(signal)) end(spans.startSpan('wait', { startTime: sinceMs }, contextOf(signal)), false)
    if (sampled.length === 0) return () => {}
    const attributes = { 'kith.batch.items': arrived.length }
    // One alone goes on in its own trace; a batch of several belongs to none of them, and each names the other.
    const alone = arrived.length === 1
    const links = alone ? [] : sampled.map(span => ({ context: span.spanContext() }))
    const context = alone ? trace.setSpan(ROOT_CONTEXT, sampled[0]!) : ROOT_CONTEXT
    const span = spans.startSpan(name, { startTime, attributes, links }, context)
    if (!alone) for (const each of sampled) each.addLink({ context: span.spanContext() })
    known.set(signal, span)
    return failed => end(span, failed)
  }

  return {
    begin,
    request: (signal, method, traceparent) => {
      const attributes = { 'http.request.method': method }
      const startTime = performance.now()
      known.set(
        signal,
        spans.startSpan(method, { kind: SpanKind.SERVER, startTime, attributes }, callerOf(traceparent)),
      )
    },
    requestEnded: (signal, ended) => endRequest(known.get(signal)!, ended),
    traceIdOf: signal => known.get(signal)?.spanContext().traceId,
    batch: beginBatch,
    statement: (name, begunMs, failed, under) => {
      if (!isTold(under)) return
      const attributes = { 'db.system.name': 'postgresql', 'db.query.summary': name }
      const options = { kind: SpanKind.CLIENT, startTime: begunMs, attributes }
      end(spans.startSpan(name || 'unnamed', options, contextOf(under)), failed)
    },
  }
}

/** W3C Trace Context. What is malformed begins a trace of its own; the caller's `tracestate` is nobody's here. */
function callerOf(traceparent: string | undefined): Context {
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
