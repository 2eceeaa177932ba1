import cluster from 'node:cluster'
import { collectDefaultMetrics, Registry } from '@prometheus-io/client'
import type { Instruments, Observer, Tracer } from '../observer.ts'
import { gatherForWorkers, scrapeThroughStarter } from './cluster.ts'
import { createCounts } from './counts.ts'
import { type Sources, tellVersion, watchEmbedded, watchEventLoop, watchSources } from './gauges.ts'

export type RunningInstruments = Instruments & {
  /** Begins to look at what exists only after there is an observer to tell. */
  watch(sources: Sources): void
  stop(): void
}

type Options = {
  /** Whether the embedded server runs; absent where this process does not look after one. */
  embedded_up?: (() => boolean) | undefined
  tracer?: Tracer | undefined
}

/** The instruments of a process that serves. */
export function createInstruments({ embedded_up, tracer }: Options = {}): RunningInstruments {
  const registry = new Registry()
  const counts = createCounts(registry)
  const observer: Observer = {
    ...counts,
    batch: (work, arrived, signal) => {
      counts.batch(work, arrived.length)
      return tracer?.batch(work, arrived, signal)
    },
    tracer,
  }
  if (tracer)
    observer.statement = (name, begun_ms, failed, under) => {
      counts.statement(name, begun_ms, failed, under)
      tracer.statement(name, begun_ms, failed, under)
    }
  tellVersion(registry)
  watchEmbedded(registry, embedded_up)
  const unwatch = watchEventLoop(registry)
  collectDefaultMetrics({ register: registry })
  const scrape = cluster.isWorker ? scrapeThroughStarter(registry) : () => registry.metrics()
  return {
    observer,
    scrape: async () => ({ content_type: Registry.PROMETHEUS_CONTENT_TYPE, text: await scrape() }),
    watch: sources => watchSources(registry, sources, counts.answeredAt),
    stop: unwatch,
  }
}

/** The instruments of the process that starts workers, and serves nothing itself. */
export function instrumentStarter({ embedded_up }: Pick<Options, 'embedded_up'>): void {
  const registry = new Registry()
  watchEmbedded(registry, embedded_up)
  collectDefaultMetrics({ register: registry })
  gatherForWorkers(registry)
}
