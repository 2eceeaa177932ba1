import type { Metric, Registry } from '@prometheus-io/client'
import { type Count, Distribution } from './histogram.ts'

export type Labels = Record<string, string>

type Sample = { value: number; labels: Labels; metricName?: string }
type Kind = 'counter' | 'gauge' | 'histogram'
/** How the samples of several workers make one. */
type Aggregator = 'sum' | 'max' | 'min'

/** What a metric is called and what it tells; `docs/metrics.md` has it at more length. */
export type Name = { name: string; help: string }

// A child of the library's counter takes 210 ns to count, one of its histograms 400, which for a GET is 1.5 µs of 30; these
// take 10 each. So the library is handed samples when it asks, and does the rest: the text, and the sum over workers.
function register(registry: Registry, kind: Kind, about: Name, aggregator: Aggregator, samples: () => Samples) {
  const get = async () => ({ ...about, type: kind, aggregator, values: await samples() })
  registry.registerMetric({ ...about, type: kind, aggregator, get } as unknown as Metric)
}

type Samples = Sample[] | Promise<Sample[]>

/** Children by their labels. Whoever counts keeps the child: looking it up costs more than counting. */
class Children<C> {
  readonly #children = new Map<string, { labels: Labels; child: C }>()
  readonly #make: () => C

  constructor(make: () => C) {
    this.#make = make
  }

  of(labels: Labels): C {
    const key = JSON.stringify(labels)
    const known = this.#children.get(key)
    if (known) return known.child
    const child = this.#make()
    this.#children.set(key, { labels, child })
    return child
  }

  get all(): { labels: Labels; child: C }[] {
    return [...this.#children.values()]
  }
}

/** What gives the child of some labels. */
export type Family<C> = (labels?: Labels) => C

/** A number that only grows. */
export function counters(registry: Registry, about: Name): Family<Count> {
  const children = new Children<Count>(() => ({ value: 0 }))
  register(registry, 'counter', about, 'sum', () =>
    children.all.map(({ labels, child }) => ({ labels, value: child.value })),
  )
  return (labels = {}) => children.of(labels)
}

/** Sizes in buckets. */
export function histograms(registry: Registry, about: Name, bounds: readonly number[]): Family<Distribution> {
  const children = new Children(() => new Distribution(bounds))
  register(registry, 'histogram', about, 'sum', () =>
    children.all.flatMap(({ labels, child }) => samplesOf(about.name, labels, child)),
  )
  return (labels = {}) => children.of(labels)
}

/** A bucket's sample counts what lies in it and below (https://prometheus.io/docs/concepts/metric_types/#histogram). */
function samplesOf(name: string, labels: Labels, { bounds, counts, sum }: Distribution): Sample[] {
  let count = 0
  const buckets = counts.map((own, index) => {
    count += own
    const le = index < bounds.length ? `${bounds[index]}` : '+Inf'
    return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: count }
  })
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: count },
  ]
}

/** A number that is looked up when somebody asks. */
export function gauge(
  registry: Registry,
  about: Name,
  aggregator: Aggregator,
  read: () => { value: number; labels?: Labels }[] | Promise<{ value: number; labels?: Labels }[]>,
): void {
  register(registry, 'gauge', about, aggregator, async () =>
    (await read()).map(({ value, labels = {} }) => ({ value, labels })),
  )
}
