import cluster from 'node:cluster'
import { collectDefaultMetrics, Registry } from '@prometheus-io/client'
import type { Instruments, Observer, Tracer } from '../observer.ts'
import { gatherForWorkers, scrapeThroughStarter } from './cluster.ts'
import { registerVersionGauge, type Sources, watchEmbedded, watchEventLoop, watchSources } from './gauges.ts'
import { createMetrics } from './metrics.ts'

export type RunningInstruments = Instruments & {
  /** Begins to look at what exists only after there is an observer to tell. */
  watch(sources: Sources): void
  stop(): void
}

type Options = {
  /** Whether the embedded server runs; absent where this process does not look after one. */
  embeddedUp?: (() => boolean) | undefined
  tracer?: Tracer | undefined
}

/** The instruments of a process that serves. */
export function createInstruments({ embeddedUp, tracer }: Options = {}): RunningInstruments {
  const registry = new Registry()
  const counts = createMetrics(registry)
  const observer: Observer = {
    ...counts,
    batch: (work, arrived, signal) => {
      counts.batch(work, arrived.length)
      return tracer?.batch(work, arrived, signal)
    },
    tracer,
  }
  if (tracer)
    observer.statement = (name, begunMs, failed, under) => {
      counts.statement(name, begunMs, failed, under)
      tracer.statement(name, begunMs, failed, under)
    }
  registerVersionGauge(registry)
  watchEmbedded(registry, embeddedUp)
  const unwatch = watchEventLoop(registry)
  collectDefaultMetrics({ register: registry })
  const scrape = cluster.isWorker ? scrapeThroughStarter(registry) : () => registry.metrics()
  return {
    observer,
    scrape: async () => ({ contentType: Registry.PROMETHEUS_CONTENT_TYPE, text: await scrape() }),
    watch: sources => watchSources(registry, sources, counts.answeredAt),
    stop: unwatch,
  }
}

/** The instruments of the process that starts workers, and serves nothing itself. */
export function instrumentStarter({ embeddedUp }: Pick<Options, 'embeddedUp'>): void {
  const registry = new Registry()
  watchEmbedded(registry, embeddedUp)
  collectDefaultMetrics({ register: registry })
  gatherForWorkers(registry)
}
