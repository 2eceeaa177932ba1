import cluster from 'node:cluster'
import { ClusterRegistry, collectDefaultMetrics, type Metric, Registry } from '@prometheus-io/client'
import { yieldIfDue } from '../process/event-loop.ts'
import type { Instruments, Observer, Tracer } from '../process/observer.ts'
import {
  type EmbeddedSource,
  eventLoopResolutionMs,
  registerEmbeddedGauges,
  registerProcessGauges,
  registerSourceGauges,
  type Sources,
} from './gauges.ts'
import { createMetrics } from './metrics.ts'

export type RunningInstruments = Instruments & {
  /** The observer of a standby's database, whose answers do not show that the primary is up. */
  readerObserver: Observer
  /** Registers the gauges of sources that exist only after the observer. */
  watch(sources: Sources): void
  stop(): void
}

type Options = {
  /** The embedded server. Absent if this process does not manage one. */
  embedded?: EmbeddedSource | undefined
  /** The end of the certificate for new connections. Absent without TLS. */
  certificateEndsAt?: (() => Date | undefined) | undefined
  tracer?: Tracer | undefined
}

/** Creates the instruments of a process that serves requests. */
export function createInstruments({ embedded, certificateEndsAt, tracer }: Options = {}): RunningInstruments {
  const registry = new Registry()
  const metrics = createMetrics(registry)
  const observer: Observer = {
    ...metrics,
    batch: (work, items, signal) => {
      metrics.batch(work, items.length)
      return tracer?.batch(work, items, signal)
    },
    tracer,
  }
  if (tracer)
    observer.statement = (name, startedMs, failed, parent) => {
      metrics.statement(name, startedMs, failed, parent)
      tracer.statement(name, startedMs, failed, parent)
    }
  const readerObserver: Observer = {
    ...observer,
    statement: (name, startedMs, failed, parent) => {
      metrics.statementOfReader(name, startedMs, failed, parent)
      tracer?.statement(name, startedMs, failed, parent)
    },
  }
  registerEmbeddedGauges(registry, embedded)
  const stop = registerProcessGauges(registry, certificateEndsAt)
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: eventLoopResolutionMs })
  const scrape = cluster.isWorker ? scrapeThroughStarter(registry) : () => renderMetrics(registry)
  return {
    observer,
    readerObserver,
    scrape: async () => ({ contentType: Registry.PROMETHEUS_CONTENT_TYPE, text: await scrape() }),
    watch: sources => registerSourceGauges(registry, sources, metrics.answeredAt),
    stop,
  }
}

/** Creates the instruments of the process that starts workers and serves no requests itself. */
export function instrumentStarter({ embedded }: Pick<Options, 'embedded'>): void {
  const registry = new Registry()
  registerEmbeddedGauges(registry, embedded)
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: eventLoopResolutionMs })
  aggregateForWorkers(registry)
}

/** The number of samples that one step renders, in one to two milliseconds. */
const samplesInAStep = 250

type Family = { values: unknown[] }

/** Renders the metrics of a registry as `registry.metrics()` does, over several turns of the event loop. */
async function renderMetrics(registry: Registry): Promise<string> {
  const texts: string[] = []
  for (const metric of registry.getMetricsAsArray() as unknown as (Metric & { getForPromString?: unknown })[]) {
    await yieldIfDue()
    if (metric.getForPromString) {
      texts.push(await registry.getMetricsAsString(metric), '')
      continue
    }
    const family = (await metric.get()) as Family
    for (let start = 0; start === 0 || start < family.values.length; start += samplesInAStep) {
      await yieldIfDue()
      const values = family.values.slice(start, start + samplesInAStep)
      const text = await registry.getMetricsAsString({ get: async () => ({ ...family, values }) } as unknown as Metric)
      texts.push(start === 0 ? text : withoutHead(text))
    }
    texts.push('')
  }
  return texts.join('\n')
}

/** The samples without the two lines of help and type. */
const withoutHead = (text: string) => text.slice(text.indexOf('\n', text.indexOf('\n') + 1) + 1)

const requestType = 'kith scrape'
const responseType = 'kith scraped'
/**
 * The timeout is longer than the library's own one for the workers, so that the library's more precise error arrives
 * first.
 */
const patienceMs = 6_000

type Message = { type?: string; id?: number; text?: string; problem?: string }

/**
 * For the process that starts the workers: answers a worker's request for the metrics with those of all workers and of
 * this process.
 */
function aggregateForWorkers(own: Registry): void {
  ClusterRegistry.setRegistries([own as never])
  const all = new ClusterRegistry()
  cluster.on('message', async (worker, message: Message) => {
    if (message?.type !== requestType) return
    const response = await all.clusterMetrics().then(
      text => ({ text }),
      (error: Error) => ({ problem: error.message }),
    )
    if (worker.isConnected()) worker.send({ type: responseType, id: message.id, ...response })
  })
}

/**
 * For a worker: returns a function that requests the metrics of all workers from the starting process. It rejects if
 * they are unavailable.
 */
function scrapeThroughStarter(own: Registry): () => Promise<string> {
  ClusterRegistry.setRegistries([own as never])
  // The constructor registers this worker with the starting process, and answers its requests.
  void new ClusterRegistry()
  let lastId = 0
  return () => {
    lastId += 1
    return requestMetrics(lastId)
  }
}

function requestMetrics(id: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const settle = (message: Message) => {
      if (message?.type !== responseType || message.id !== id) return
      end()
      if (message.text === undefined) reject(new Error(message.problem))
      else resolve(message.text)
    }
    const timer = setTimeout(() => {
      end()
      reject(new Error('the metrics of the other workers did not arrive in time'))
    }, patienceMs)
    const end = () => {
      clearTimeout(timer)
      process.off('message', settle)
    }
    process.on('message', settle)
    process.send!({ type: requestType, id }, (error: Error | null) => {
      if (!error) return
      end()
      reject(error)
    })
  })
}
