import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createAjv } from '../../test/support/contract.ts'
import { follow } from '../../test/support/followers.ts'
import { createLoopbackSender, type Receiver, startReceiver } from '../../test/support/receiver.ts'
import { useOwnService } from '../../test/support/service.ts'
import { useSharedShop } from '../../test/support/shop.ts'
import { asyncApiDocument, routeTable } from '../process/app.ts'
import { webhookFollower } from '../webhooks/deliver.ts'
import { eventPattern } from '../webhooks/events.ts'
import type { OpenApiDocument } from './document.ts'

const service = useOwnService({ KITH_WEBHOOK_ALLOW: '127.0.0.0/8' })
const shop = useSharedShop(service, 'referrer', 'orders')
const { ok } = shop

type Channel = { address?: string; messages: Record<string, { payload: { $ref: string }; headers?: { $ref: string } }> }
type AsyncDocument = {
  asyncapi: string
  channels: Record<string, Channel>
  operations: Record<string, { channel: { $ref: string } }>
  components: { schemas: Record<string, object> }
}
let document: AsyncDocument
let receiver: Receiver
beforeAll(async () => {
  document = asyncApiDocument(service) as unknown as AsyncDocument
  receiver = await startReceiver()
  const events = ['person.*', 'record.*', 'attribute.*', 'settings.*', 'consent_type.*', 'segment.*']
  const { id } = await ok('POST', '/v1/webhooks', { url: receiver.url, events })
  await ok('POST', '/v1/webhooks', { url: receiver.url, events, payload: 'ids' })
  await ok('POST', '/v1/people', { external_id: 'ada', first_name: 'Ada', email_consent: true })
  await ok('POST', '/v1/people', { external_id: 'bob', attribute_values: { referrer: 'ada' } })
  await ok('PATCH', '/v1/people/bob', { first_name: 'Bob' })
  await ok('POST', '/v1/people/ada/merge', { from: 'bob' })
  await ok('POST', '/v1/people/ada/unmerge', { from: 'bob' })
  await ok('DELETE', '/v1/people/bob')
  const order = await ok('POST', '/v1/stacks/orders', { external_id: 'o1' })
  await ok('DELETE', '/v1/stacks/orders/o1')
  await ok('POST', `/v1/stacks/orders/internal/${order.record_id}/restore`)
  await ok('POST', '/v1/people/ada/erase', { reason: 'request' })
  await ok('POST', '/v1/schema/attributes', { owner: 'people', key: 'size', type: 'number' })
  await ok('POST', '/v1/segments', { key: 'all', name: 'All', filter: {} })
  await ok('POST', `/v1/webhooks/${id}/test`)
  const sender = createLoopbackSender({ timeoutMs: 5_000, nowMs: Date.now })
  await follow(service.db, [webhookFollower({ sender, roundMs: 20 })])
  await sender.close()
})
afterAll(() => receiver.close())

/** Returns the faults of a value by the schema of a message. Empty if it is valid. */
function faultsOf($ref: string, value: unknown): string[] {
  const ajv = createAjv(document as unknown as OpenApiDocument)
  const isValid = ajv.validate({ $ref: `contract${$ref}` }, value)
  return isValid ? [] : [`${$ref}: ${ajv.errorsText()} ${JSON.stringify(value)}`]
}

const lines = async (path: string, accept: string) => {
  const headers = { Authorization: `Bearer ${shop.token}`, Accept: accept }
  return fetch(`${service.address}${path}`, { headers })
}

describe('the AsyncAPI document', () => {
  it('is served without a token', async () => {
    const response = await fetch(`${service.address}/asyncapi.json`)
    expect([response.status, await response.json()]).toEqual([200, JSON.parse(JSON.stringify(document))])
    expect(document.asyncapi).toBe('3.0.0')
  })

  it('has a channel for each stream of the route table, and an operation for each channel', () => {
    const streams = routeTable(service).flatMap(({ operationId, streams, mediaTypes = {} }) => [
      ...(streams || 'application/x-ndjson' in mediaTypes ? [`${operationId}Lines`] : []),
      ...('text/event-stream' in mediaTypes ? [`${operationId}Events`] : []),
    ])
    expect(streams).toEqual(expect.arrayContaining(['listChangesLines', 'listChangesEvents', 'exportPeopleLines']))
    expect(Object.keys(document.channels)).toEqual(['webhooks', ...streams])
    const operated = Object.values(document.operations).map(({ channel }) => channel.$ref)
    expect(operated).toEqual(Object.keys(document.channels).map(name => `#/channels/${name}`))
  })

  it('has only events that a webhook can ask for, and refers only to schemas that it has', () => {
    const types = Object.keys(document.channels.webhooks!.messages)
    const pattern = new RegExp(eventPattern)
    expect(types.filter(type => !pattern.test(type))).toEqual(['webhook.test'])
    expect(types).toEqual(
      expect.arrayContaining(['person.merged', 'record.restored', 'settings.updated', 'role.created']),
    )
    expect(types).not.toContain('stack.merged')
    const referred = [...JSON.stringify(document).matchAll(/"#\/components\/schemas\/([^"]+)"/g)].map(
      match => match[1]!,
    )
    expect(referred.filter(name => !(name in document.components.schemas))).toEqual([])
  })

  it('describes the body and the headers of each request of a webhook', () => {
    const { messages } = document.channels.webhooks!
    const types = new Set(receiver.received.map(({ event }) => event.type))
    for (const type of ['person.created', 'person.merged', 'person.unmerged', 'person.deleted', 'person.erased'])
      expect(types).toContain(type)
    for (const type of ['record.restored', 'attribute.created', 'segment.created', 'webhook.test'])
      expect(types).toContain(type)
    const faults = receiver.received.flatMap(({ event, headers }) => {
      const message = messages[event.type]!
      const signed = Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith('webhook-')))
      return [...faultsOf(message.payload.$ref, event), ...faultsOf(message.headers!.$ref, signed)]
    })
    expect(faults).toEqual([])
  })

  it('describes the lines and the events of the change log', async () => {
    const change = document.channels.listChangesLines!.messages.line!.payload.$ref
    const text = await (await lines('/v1/changes', 'application/x-ndjson')).text()
    const changes = text
      .trim()
      .split('\n')
      .map(line => JSON.parse(line))
    expect(changes.length).toBeGreaterThan(10)
    expect(changes.flatMap(each => faultsOf(change, each))).toEqual([])
    const event = document.channels.listChangesEvents!.messages.event!.payload.$ref
    const response = await lines('/v1/changes', 'text/event-stream')
    let events = ''
    for await (const chunk of response.body!) {
      events += Buffer.from(chunk as Uint8Array).toString()
      if (events.includes(`"sequence":${changes.at(-1).sequence},`) && events.endsWith('\n\n')) break
    }
    const data = [...events.matchAll(/^data: (.*)$/gm)].map(match => JSON.parse(match[1]!))
    expect(data).toEqual(changes)
    expect(data.flatMap(each => faultsOf(event, each))).toEqual([])
  })
})
