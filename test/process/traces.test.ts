import { afterEach, beforeEach, expect, it } from 'vitest'
import { type Collector, type ReceivedSpan, startCollector } from '../support/collector.ts'
import { createTestDatabase } from '../support/database.ts'
import { endProcesses, type Kith, launch, lockPerson, senderTo, terminate, tokenFrom } from '../support/process.ts'
import type { Send } from '../support/service.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
let collector: Collector
let environment: Record<string, string>

beforeEach(async () => {
  database = await createTestDatabase()
  collector = await startCollector()
  environment = { DATABASE_URL: database.url, OTEL_EXPORTER_OTLP_ENDPOINT: collector.address }
})

afterEach(async () => {
  await endProcesses()
  collector.stop()
  await database.drop()
})

async function start(settings: Record<string, string> = {}): Promise<{ kith: Kith; send: Send }> {
  const kith = launch({ ...environment, ...settings })
  const send = senderTo(await kith.ready, await tokenFrom({ DATABASE_URL: database.url }))
  await send('POST', '/v1/people', { external_id: 'ada' })
  return { kith, send }
}

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const callerId = '00f067aa0ba902b7'

/** The child spans of a span, by name, in order of their start. */
type Tree = { [name: string]: Tree }

function treeOf(span: ReceivedSpan): Tree {
  const children = collector.spans
    .filter(other => other.parentSpanId === span.spanId && other.traceId === span.traceId)
    .sort((a, b) => (BigInt(a.startTimeUnixNano) < BigInt(b.startTimeUnixNano) ? -1 : 1))
  return Object.fromEntries(children.map(child => [child.name, treeOf(child)]))
}

const spansOf = (name: string) => collector.spans.filter(span => span.name === name)

it('sends a span for each stage of a PATCH, below the span of the caller', async () => {
  const { kith, send } = await start({ OTEL_SERVICE_NAME: 'contacts' })
  const traceparent = `00-${traceId}-${callerId}-01`
  await send('PATCH', '/v1/people/ada', { first_name: 'Ada' }, { traceparent })
  expect(await terminate(kith)).toBe(0)
  const [request] = spansOf('PATCH /v1/people/{external_id}')
  expect(request).toMatchObject({ traceId, parentSpanId: callerId, service: 'contacts' })
  expect(request!.attributes).toEqual({
    'http.request.method': 'PATCH',
    'http.route': '/v1/people/{external_id}',
    'http.response.status_code': 200,
  })
  expect(treeOf(request!)).toEqual({
    authenticate: {},
    bind: {},
    wait: {},
    'write batch': {
      transaction: { lock_head: {}, read_named: {}, store_changes: {}, insert_changes: {}, commit: {} },
    },
  })
  const line = kith.output.stdout.split('\n').find(text => text.includes('"PATCH"'))
  expect(JSON.parse(line!).trace_id).toBe(traceId)
})

it('sends one span for a batch of several requests, linked with their spans', async () => {
  const { kith, send } = await start()
  for (const external_id of ['b', 'c', 'd']) await send('POST', '/v1/people', { external_id })
  const lock = await lockPerson(database.url, 'ada')
  const patch = (external_id: string) => send('PATCH', `/v1/people/${external_id}`, { first_name: 'x' })
  const first = patch('ada')
  await expect.poll(lock.waiting).toBe(1)
  const others = ['b', 'c', 'd'].map(patch)
  const address = await kith.ready
  await expect
    .poll(async () => (await fetch(`${address}/metrics`)).text())
    .toContain('kith_queue_waiting{work="write"} 3')
  await lock.release()
  await Promise.all([first, ...others])
  expect(await terminate(kith)).toBe(0)
  const shared = spansOf('write batch').find(({ attributes }) => attributes['kith.batch.items'] === 3)!
  expect(shared.parentSpanId ?? '').toBe('')
  expect(shared.links).toHaveLength(3)
  const requests = shared.links.map(link => collector.spans.find(({ spanId }) => spanId === link.spanId)!)
  for (const request of requests) {
    expect(request.name).toBe('PATCH /v1/people/{external_id}')
    expect(request.traceId).not.toBe(shared.traceId)
    expect(request.links).toMatchObject([{ traceId: shared.traceId, spanId: shared.spanId }])
    expect(treeOf(request)).toEqual({ authenticate: {}, bind: {}, wait: {} })
  }
  expect(Object.keys(treeOf(shared))).toEqual(['transaction'])
})

it('does not trace a request that is not sampled, and ignores a malformed traceparent', async () => {
  const { kith, send } = await start()
  collector.spans.length = 0
  const hostile = [
    `00-${traceId.toUpperCase()}-${callerId}-01`,
    `00-${'0'.repeat(32)}-${callerId}-01`,
    `00-${traceId}-${'0'.repeat(16)}-01`,
    `ff-${traceId}-${callerId}-01`,
    `00-${traceId}-${callerId}-01-more`,
    `00-${traceId}`,
    'x'.repeat(8_000),
  ]
  for (const traceparent of hostile)
    expect((await send('GET', '/v1/people/ada', undefined, { traceparent })).status).toBe(200)
  await send('GET', '/v1/stacks/none/ada', undefined, { traceparent: `00-${traceId}-${callerId}-00` })
  expect(await terminate(kith)).toBe(0)
  const read = spansOf('GET /v1/people/{external_id}')
  expect(read).toHaveLength(hostile.length)
  expect(read.filter(({ parentSpanId }) => parentSpanId)).toEqual([])
  expect(new Set(read.map(span => span.traceId)).size).toBe(hostile.length)
  expect(collector.spans.filter(span => span.traceId === traceId)).toEqual([])
  expect(spansOf('GET /v1/stacks/{stack_key}/{external_id}')).toEqual([])
})

it('puts no stored value into a span, and only the error code of a refusal', async () => {
  const { kith, send } = await start()
  await send('PATCH', '/v1/people/zqcanary', { first_name: 'zqcanary' })
  await send('POST', '/v1/people', { external_id: 'zqcanary', email: 'zqcanary@example.com' })
  await send('GET', '/v1/people/zqcanary?zqcanary=1')
  await send('GET', '/zqcanary')
  expect(await terminate(kith)).toBe(0)
  expect(collector.spans.length).toBeGreaterThan(10)
  expect(JSON.stringify(collector.spans)).not.toContain('zqcanary')
  const [missing] = spansOf('PATCH /v1/people/{external_id}')
  expect(missing).toMatchObject({ attributes: { 'error.type': 'not_found', 'http.response.status_code': 500 } })
  expect(missing!.status.code).toBe(2)
})

it('fails no request and logs one line when the collector is unreachable', async () => {
  collector.stop()
  const { kith, send } = await start({ OTEL_EXPORTER_OTLP_TIMEOUT: '100' })
  for (let index = 0; index < 20; index += 1) expect((await send('GET', '/v1/people/ada')).status).toBe(200)
  expect(await terminate(kith)).toBe(0)
  expect(kith.output.stdout.match(/traces are not sent/g)).toHaveLength(1)
})

const reportLoadedScript = `import { registerHooks } from 'node:module'
registerHooks({ load(url, context, next) {
  if (/opentelemetry.(sdk|exporter)/.test(url)) process._rawDebug('loaded ' + url)
  return next(url, context)
} })`

it('loads no tracing modules without the OTEL variables', async () => {
  const NODE_OPTIONS = `--import data:text/javascript,${encodeURIComponent(reportLoadedScript)}`
  const without = launch({ DATABASE_URL: database.url, NODE_OPTIONS })
  await without.ready
  expect(await terminate(without)).toBe(0)
  expect(without.output.stderr).not.toContain('loaded')
  const { kith } = await start({ NODE_OPTIONS })
  expect(await terminate(kith)).toBe(0)
  expect(kith.output.stderr).toContain('loaded')
})
