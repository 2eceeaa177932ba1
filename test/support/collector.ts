import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'

/** A span as the collector received it, with its attributes by name. */
export type ReceivedSpan = {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  kind: number
  attributes: Record<string, string | number | boolean>
  links: { traceId: string; spanId: string }[]
  startTimeUnixNano: string
  endTimeUnixNano: string
  status: { code?: number }
  /** The `service.name` of the resource. */
  service: string
}

export type Collector = { address: string; spans: ReceivedSpan[]; stop(): void }

type Attribute = { key: string; value: Record<string, string | number | boolean> }
type Batch = {
  resourceSpans: {
    resource: { attributes: Attribute[] }
    scopeSpans: { spans: (Omit<ReceivedSpan, 'attributes' | 'service'> & { attributes: Attribute[] })[] }[]
  }[]
}

const readAttributes = (attributes: Attribute[]) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]!]))

/** Starts a collector for OTLP over HTTP in JSON (https://opentelemetry.io/docs/specs/otlp/#otlphttp). */
export async function startCollector(): Promise<Collector> {
  const spans: ReceivedSpan[] = []
  const server = createServer(async (request, response) => {
    const { resourceSpans } = (await json(request)) as Batch
    for (const { resource, scopeSpans } of resourceSpans)
      for (const span of scopeSpans.flatMap(scope => scope.spans))
        spans.push({
          ...span,
          links: span.links ?? [],
          attributes: readAttributes(span.attributes),
          service: String(readAttributes(resource.attributes)['service.name']),
        })
    response.setHeader('Content-Type', 'application/json').end('{}')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { address: `http://127.0.0.1:${port}`, spans, stop: () => server.close() }
}
