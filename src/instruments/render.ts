import type { Metric, Registry } from '@prometheus-io/client'
import { yieldIfDue } from '../process/event-loop.ts'

/** The samples that one step renders, which takes one to two milliseconds. */
const samplesInAStep = 250

type Family = { values: unknown[] }

/** Renders the metrics of a registry as `registry.metrics()` does, over several turns of the event loop. */
export async function renderMetrics(registry: Registry): Promise<string> {
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
