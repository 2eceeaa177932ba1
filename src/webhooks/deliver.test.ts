import { createHmac } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { follow, throwReported } from '../../test/support/followers.ts'
import { readMetrics } from '../../test/support/metrics.ts'
import { createLoopbackSender, type Receiver, startReceiver } from '../../test/support/receiver.ts'
import { useOwnService } from '../../test/support/service.ts'
import { createShop, useShop } from '../../test/support/shop.ts'
import type { Database } from '../db/db.ts'
import { createFollowers, type Followers } from '../followers/followers.ts'
import { createRequestPools, webhookFollower } from './deliver.ts'
import { forgetDeliveries, readWebhookStates } from './deliveries.ts'
import type { Sender } from './send.ts'

const service = useOwnService({ KITH_WEBHOOK_ALLOW: '127.0.0.0/8' })
let receiver: Receiver
let sender: Sender
let secret: string
let nowMs: number
const organization = useShop(service, 'companies')
beforeEach(async () => {
  receiver = await startReceiver()
  sender = makeSender()
  nowMs = Date.now()
})
afterEach(async () => {
  // Without this, the webhooks of one test would deliver in the next one.
  await service.sql('delete from followers')
  await sender.close()
  await receiver.close()
})

const dayMs = 86_400_000
const hourMs = 3_600_000
const makeSender = (timeoutMs = 5_000) => createLoopbackSender({ timeoutMs, nowMs: () => nowMs })
const clock = { nowMs: () => nowMs, random: () => 0.5 }
const makeFollower = (more: object = {}) => webhookFollower({ sender, ...clock, roundMs: 20, ...more })
/** Delivers until nothing is due. */
function deliver(more: object = {}) {
  // A request that wakes a webhook uses the real time.
  nowMs = Math.max(nowMs, Date.now())
  return follow(service.db, [makeFollower(more)], clock)
}
const events = ['person.*', 'record.*']

async function create(body: object = {}, { send } = organization): Promise<number> {
  const reply = await send('POST', '/v1/webhooks', { url: receiver.url, events, ...body })
  if (reply.status !== 201) throw new Error(JSON.stringify(reply.body))
  secret = reply.body.data.secret
  return reply.body.data.id
}
const person = (external_id: string, body: object = {}) =>
  organization.send('POST', '/v1/people', { external_id, ...body })
const patch = (external_id: string, body: object) => organization.send('PATCH', `/v1/people/${external_id}`, body)
const deliveries = async (query = '', id = 1) =>
  (await organization.send('GET', `/v1/webhooks/${id}/deliveries${query}`)).body.data.items
const read = async (id = 1) => (await organization.send('GET', `/v1/webhooks/${id}`)).body.data
const sequences = () => receiver.received.map(({ sequence }) => sequence)
const statusesOf = (items: { sequence: number; status: string }[]) =>
  Object.fromEntries(items.map(({ sequence, status }) => [sequence, status]))
const logId = async () =>
  (
    await service.sql<{ log_id: string }>('select log_id from change_heads where organization_id = $1', [
      organization.id,
    ])
  )[0]!.log_id

describe('a change', () => {
  it('is sent in the form of Standard Webhooks, with all that the log has', async () => {
    await create()
    await person('ada', { first_name: 'Ada' })
    await patch('ada', { email: 'ada@example.com', attribute_values: { n: 0.1 } })
    const ada = (await organization.send('GET', '/v1/people/ada')).body.data
    await deliver()
    const [, update] = receiver.received
    const change = update!.event.data
    expect(update!.event).toEqual({ type: 'person.updated', timestamp: change.at, data: change })
    expect(change).toEqual({
      sequence: update!.sequence,
      at: ada.updated_at,
      subject: 'person',
      id: ada.id,
      external_id: 'ada',
      stack_key: null,
      operation: 'update',
      version: 2,
      before: { email: null, attribute_values: { n: null } },
      after: { email: 'ada@example.com', attribute_values: { n: 0.1 } },
      links: null,
      actor: 'tests',
      request_id: expect.any(String),
    })
    expect(update!.id).toBe(`${await logId()}:${update!.sequence}`)
    const timestamp = update!.headers['webhook-timestamp']
    const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
    const signature = createHmac('sha256', key).update(`${update!.id}.${timestamp}.${update!.body}`).digest('base64')
    expect(update!.headers['webhook-signature']).toBe(`v1,${signature}`)
    expect((await deliveries())[0]).toMatchObject({
      sequence: update!.sequence,
      message_id: update!.id,
      type: 'person.updated',
      status: 'delivered',
      attempts: 1,
      response_status: 204,
      response: '',
      error: null,
      next_attempt_at: null,
    })
  })

  it('is sent with the headers of the webhook, as a test event is', async () => {
    await create({ headers: { Authorization: 'Bearer s3cret', 'x-tenant': 'shop' } })
    receiver.answer = response => response.end('Bearer s3cret is unknown')
    await person('ada')
    await deliver()
    await organization.send('POST', '/v1/webhooks/1/test')
    const sent = { authorization: 'Bearer s3cret', 'x-tenant': 'shop' }
    expect(receiver.received.map(({ headers }) => headers)).toMatchObject([sent, sent])
    expect((await deliveries())[0]!.response).toBe('[header] is unknown')
  })

  it('has the JSON of the feed, byte for byte', async () => {
    const subjects = ['person', 'record', 'stack', 'attribute', 'consent_type', 'webhook']
    await create({ events: subjects.map(subject => `${subject}.*`) })
    const { send, token } = organization
    await send('POST', '/v1/schema/stacks', { key: 'orders', kind: 'item', name: 'Orders "1"' })
    await send('POST', '/v1/schema/attributes', { key: 'city', owner: 'people', type: 'text' })
    await send('POST', '/v1/schema/consent-types', { key: 'news', channels: [{ channel: 'sms' }] })
    await person('ada', { first_name: '\n\u2028"', attribute_values: { n: 12345678901.5, city: 'Łódź', list: [{}] } })
    await send('POST', '/v1/people', {})
    await send('POST', '/v1/stacks/orders', { external_id: 'o1' })
    await patch('ada', { consents: [{ consent_type_id: 1, channel: 'email', state: true }] })
    const { id } = (await send('GET', '/v1/people/ada')).body.data
    await send('DELETE', '/v1/people/ada')
    await send('POST', `/v1/people/internal/${id}/restore`)
    await send('PATCH', '/v1/webhooks/1', { description: 'all' })
    await deliver()
    const headers = { Authorization: `Bearer ${token}` }
    const { sequence } = receiver.received.toSorted((a, b) => a.sequence - b.sequence)[0]!
    const feed = await (await fetch(`${service.address}/v1/changes?after=${sequence - 1}`, { headers })).text()
    const data = receiver.received
      .toSorted((a, b) => a.sequence - b.sequence)
      .map(({ body }) => body.slice(body.indexOf('"data":') + '"data":'.length, -1))
    expect(data).toHaveLength(10)
    expect(feed).toContain(`"items":[${data.join()}],`)
  })

  it('of a record has its record_id and stack', async () => {
    await create()
    const { send } = organization
    await send('POST', '/v1/stacks/companies', { external_id: 'acme' })
    const { record_id } = (await send('GET', '/v1/stacks/companies/acme')).body.data
    await deliver()
    expect(receiver.received[0]!.event).toMatchObject({
      type: 'record.created',
      data: { subject: 'record', id: record_id, external_id: 'acme', stack_key: 'companies', before: null },
    })
  })

  it('of a deleted person has the external identifier that it had last', async () => {
    await create({ events: ['person.deleted'] })
    await person('ada')
    await patch('ada', { external_id: 'ada2' })
    await organization.send('DELETE', '/v1/people/ada2')
    await deliver()
    expect(receiver.received.map(({ event }) => [event.type, event.data.external_id])).toEqual([
      ['person.deleted', 'ada2'],
    ])
  })

  it('has no values with the payload ids', async () => {
    await create({ payload: 'ids' })
    await person('ada@example.com', { email: 'ada@example.com' })
    const { id } = (await organization.send('GET', '/v1/people/ada@example.com')).body.data
    await deliver()
    const [{ event, body }] = receiver.received as [(typeof receiver.received)[0]]
    expect(event.data).toEqual({
      sequence: expect.any(Number),
      at: expect.any(String),
      subject: 'person',
      id,
      stack_key: null,
      operation: 'create',
      version: 1,
    })
    expect(body).not.toContain('ada@example.com')
  })

  it('is sent only if events, stacks and keys want it', async () => {
    const { send } = organization
    await send('POST', '/v1/schema/stacks', { key: 'orders', kind: 'item' })
    const wanted: [object, string[]][] = [
      [{ events: ['person.updated'] }, ['city', 'email', 'consent']],
      [{ events: ['record.*'] }, ['order', 'company']],
      [{ events: ['record.*', 'person.created'], stacks: ['orders'] }, ['person', 'order', 'other']],
      [{ events: ['person.*'], keys: ['attribute_values.city'] }, ['city', 'erasure']],
      [{ events: ['person.*'], keys: ['email', 'consents'] }, ['email', 'consent', 'erasure']],
      [{ events: ['person.updated'], keys: ['email'] }, ['email']],
      [{ events: ['consent.*'] }, ['consent']],
      [{ events: ['consent.created'] }, []],
      [{ events: ['stack.created', 'attribute.*'] }, ['stack', 'attribute']],
    ]
    for (const [body] of wanted) await create(body)
    const head = async () =>
      (
        await service.sql<{ sequence: number }>('select sequence from change_heads where organization_id = $1', [
          organization.id,
        ])
      )[0]!.sequence
    const names = new Map<number, string>()
    const write = async (name: string, method: string, path: string, body: object) => {
      const { status } = await send(method, path, body)
      expect(status).toBeLessThan(300)
      names.set(await head(), name)
    }
    await write('person', 'POST', '/v1/people', { external_id: 'ada' })
    await write('city', 'PATCH', '/v1/people/ada', { attribute_values: { city: 'Rome' } })
    await write('email', 'PATCH', '/v1/people/ada', { email: 'ada@example.com' })
    await write('consent', 'PATCH', '/v1/people/ada', {
      consents: [{ consent_type_id: 1, channel: 'email', state: true }],
    })
    await write('order', 'POST', '/v1/stacks/orders', { external_id: '1' })
    await write('company', 'POST', '/v1/stacks/companies', { external_id: 'acme' })
    await write('stack', 'POST', '/v1/schema/stacks', { key: 'visits', kind: 'event' })
    await write('attribute', 'POST', '/v1/schema/attributes', { key: 'total', owner: 'orders', type: 'number' })
    await write('other', 'POST', '/v1/people', { external_id: 'bob', email: 'bob@example.com' })
    await write('erasure', 'POST', '/v1/people/bob/erase', { reason: 'request', records: 'keep' })
    await deliver()
    for (const [index, [, expected]] of wanted.entries()) {
      const items = (await deliveries('', index + 1)) as { sequence: number }[]
      expect(items.map(({ sequence }) => names.get(sequence)).reverse()).toEqual(expected)
    }
  })

  it('before the webhook is not sent', async () => {
    await person('ada')
    await create()
    await person('bob')
    await deliver()
    expect(receiver.received.map(({ event }) => event.data.external_id)).toEqual(['bob'])
  })
})

describe('the order', () => {
  it('of the changes of an entity holds while up to 16 requests run at a time', async () => {
    await create()
    const names = Array.from({ length: 40 }, (_, n) => `p${n}`)
    for (const name of names) await person(name)
    for (let version = 2; version <= 4; version += 1)
      await Promise.all(names.map(name => patch(name, { first_name: `v${version}` })))
    receiver.answer = response => setImmediate(() => response.writeHead(204).end())
    await deliver()
    expect(receiver.received).toHaveLength(160)
    expect(receiver.maxConcurrent()).toBeLessThanOrEqual(16)
    expect(receiver.maxConcurrent()).toBeGreaterThan(4)
    const versions = Map.groupBy(receiver.received, ({ event }) => event.data.external_id)
    for (const received of versions.values())
      expect(received.map(({ event }) => event.data.version)).toEqual([1, 2, 3, 4])
  })

  it('holds for a backlog, which is sent without a pause between its parts', async () => {
    await create()
    const names = Array.from({ length: 300 }, (_, n) => `p${n}`)
    const operations = names.map(external_id => ({ op: 'create', external_id, body: {} }))
    await organization.ok('POST', '/v1/people/batch', { operations })
    for (let version = 2; version <= 40; version += 1) await patch('p0', { first_name: `v${version}` })
    // No round ends by its time limit during the test.
    const following = createFollowers(service.db, [makeFollower({ roundMs: hourMs })], {
      report: throwReported,
      ...clock,
    })
    await following.tick()
    await expect.poll(() => receiver.received.length).toBe(339)
    await following.stop()
    const ofFirst = receiver.received.filter(({ event }) => event.data.external_id === 'p0')
    expect(ofFirst.map(({ event }) => event.data.version)).toEqual(Array.from({ length: 40 }, (_, n) => n + 1))
    expect((await read()).backlog).toMatchObject({ changes: 0, deliveries: 0 })
  })

  it('lets later changes of an entity wait for a failed one, and those of others go on', async () => {
    await create()
    await person('ada')
    await person('bob')
    await patch('ada', { first_name: 'Ada' })
    await patch('bob', { first_name: 'Bob' })
    let isAdaRefused = true
    receiver.answer = (response, { event }) =>
      response.writeHead(isAdaRefused && event.data.external_id === 'ada' ? 500 : 204).end()
    const shown = () => receiver.received.map(({ event }) => `${event.data.external_id} ${event.data.version}`).sort()
    await deliver()
    expect(shown()).toEqual(['ada 1', 'bob 1', 'bob 2'])
    isAdaRefused = false
    nowMs += 4_999
    await deliver()
    expect(shown()).toHaveLength(3)
    nowMs += 1
    await deliver()
    expect(receiver.received.slice(3).map(({ event }) => event.data.version)).toEqual([1, 2])
    // A retry has the identifier of the first attempt.
    expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(4)
  })
})

describe('a receiver that fails', () => {
  it('gets ten attempts in three days, and then the next change', async () => {
    await create()
    await person('ada')
    await patch('ada', { first_name: 'Ada' })
    receiver.answer = (response, { event }) => response.writeHead(event.data.version === 1 ? 503 : 204).end('busy')
    const begunMs = nowMs
    const attemptsMs: number[] = []
    for (let attempt = 1; attempt <= 10; attempt += 1) {
      await deliver()
      expect(receiver.received).toHaveLength(attempt === 10 ? 11 : attempt)
      attemptsMs.push(nowMs - begunMs)
      const [, item] = await deliveries()
      if (attempt < 10) {
        expect(item).toMatchObject({ status: 'waiting', attempts: attempt, response_status: 503, response: 'busy' })
        nowMs = Date.parse(item.next_attempt_at)
      } else expect(item).toMatchObject({ status: 'failed', attempts: 10, next_attempt_at: null })
    }
    expect(attemptsMs.map(ms => Math.round(ms / 1_000))).toEqual([
      0, 5, 305, 2_105, 9_305, 27_305, 63_305, 113_705, 185_705, 272_105,
    ])
    expect((await deliveries())[0]).toMatchObject({ status: 'delivered' })
    expect((await deliveries('?status=failed')).map(({ status }: { status: string }) => status)).toEqual(['failed'])
  })

  it('has the outcome of an attempt listed at once', async () => {
    await create()
    await person('ada')
    receiver.answer = response => response.writeHead(500).end()
    const following = createFollowers(service.db, [makeFollower({ roundMs: hourMs })], {
      report: throwReported,
      ...clock,
    })
    await following.tick()
    await expect.poll(async () => (await deliveries())[0]).toMatchObject({ attempts: 1, response_status: 500 })
    await following.stop()
  })

  it('is retried after Retry-After', async () => {
    await create()
    await person('ada')
    receiver.answer = response => response.writeHead(429, { 'Retry-After': '3600' }).end()
    await deliver()
    expect(Date.parse((await deliveries())[0].next_attempt_at) - nowMs).toBe(hourMs)
  })

  it('gets one request at a time until one succeeds', async () => {
    await create()
    for (let n = 0; n < 60; n += 1) await person(`p${n}`)
    receiver.answer = response => setImmediate(() => response.writeHead(500).end())
    await deliver()
    expect(receiver.received).toHaveLength(60)
    const failingSince = (await read()).failing_since
    expect(Date.parse(failingSince)).toBe(nowMs)
    const { send } = organization
    await send('POST', '/v1/people', { external_id: 'more' })
    receiver.received.length = 0
    let running = 0
    let most = 0
    receiver.answer = response => {
      running += 1
      most = Math.max(most, running)
      setImmediate(() => {
        running -= 1
        response.writeHead(500).end()
      })
    }
    nowMs += 5_000
    await deliver()
    expect([receiver.received.length, most]).toEqual([61, 1])
  })

  it('is disabled by 410 at once, and goes on from there when it is activated', async () => {
    await create()
    const disabled: object[] = []
    await person('ada')
    await person('bob')
    receiver.answer = response => response.writeHead(410).end()
    await deliver({ onDisabled: (webhook: object) => disabled.push(webhook) })
    await person('eve')
    await deliver()
    expect(await read()).toMatchObject({ active: false, disabled: { reason: 'gone' } })
    expect(disabled).toEqual([{ organization_id: organization.id, id: 1, reason: 'gone' }])
    const [change] = await service.sql(
      `select after, actor from changes where organization_id = $1 and subject = 'webhook' and operation = 'update'`,
      [organization.id],
    )
    expect(change).toMatchObject({ actor: 'kith', after: { active: false, disabled: { reason: 'gone' } } })
    expect((await readMetrics(service.address)).text).toMatch(/kith_webhooks_disabled_total\{reason="gone"\} [1-9]/)
    receiver.received.length = 0
    receiver.answer = response => response.writeHead(204).end()
    await organization.send('PATCH', '/v1/webhooks/1', { active: true })
    nowMs += 10_000
    await deliver()
    expect(new Set(receiver.received.map(({ event }) => event.data.external_id))).toEqual(
      new Set(['ada', 'bob', 'eve']),
    )
    expect(await read()).toMatchObject({ active: true, disabled: null, failing_since: null })
  })

  it('is disabled after five days without a success', async () => {
    await create()
    await person('ada')
    receiver.answer = response => response.writeHead(500).end()
    await deliver()
    nowMs += 5 * dayMs - 1
    await person('bob')
    await deliver()
    expect((await read()).active).toBe(true)
    nowMs += 2 * dayMs
    await person('eve')
    await deliver()
    expect(await read()).toMatchObject({ active: false, disabled: { reason: 'failing' } })
  })

  it('for a day is caught up in order', async () => {
    await create()
    receiver.answer = response => response.writeHead(500).end()
    await person('ada')
    await deliver()
    for (let hour = 0; hour < 24; hour += 4) {
      nowMs += 4 * hourMs
      await patch('ada', { first_name: `h${hour}` })
      await deliver()
    }
    receiver.received.length = 0
    receiver.answer = response => response.writeHead(204).end()
    nowMs += dayMs
    await deliver()
    expect(receiver.received.map(({ event }) => event.data.version)).toEqual([1, 2, 3, 4, 5, 6, 7])
    expect((await read()).failing_since).toBeNull()
  })

  it('delays no other organization, however many of its receivers never answer', async () => {
    receiver.answer = () => {}
    for (let n = 0; n < 20; n += 1) await create()
    await person('ada')
    const other = await createShop(service)
    const otherReceiver = await startReceiver()
    await create({ url: otherReceiver.url }, other)
    await other.send('POST', '/v1/people', { external_id: 'bob' })
    const following = createFollowers(service.db, [makeFollower()], { report: () => {}, ...clock })
    await following.tick()
    await expect.poll(() => otherReceiver.received.length).toBe(1)
    await following.stop()
    await otherReceiver.close()
  })
})

describe('receivers that are slow', () => {
  it('leave room for a fifth and a sixth organization, whether they fail or not', () => {
    for (const pool of Object.values(createRequestPools())) {
      for (const organization of [1, 2, 3, 4]) while (pool.tryTake(organization));
      expect([5, 6].map(organization => pool.tryTake(organization) !== undefined)).toEqual([true, true])
    }
  })

  it('delay no other organization, though four of them hold as many requests as they may', async () => {
    receiver.answer = () => {}
    const pools = createRequestPools({ healthy: 16 })
    // No request ends by its time limit during the test.
    const patient = makeSender(60_000)
    const others = await Promise.all([1, 2, 3, 4].map(() => createShop(service)))
    for (const other of others) {
      await create({}, other)
      for (let n = 0; n < 5; n += 1) await other.send('POST', '/v1/people', { external_id: `p${n}` })
    }
    const following = createFollowers(service.db, [makeFollower({ pools, sender: patient })], {
      report: () => {},
      ...clock,
    })
    await following.tick()
    // Without a place for a fifth organization, all 16 requests would be under way.
    await expect.poll(() => receiver.received.length).toBeGreaterThanOrEqual(12)
    const ownReceiver = await startReceiver()
    await create({ url: ownReceiver.url })
    await person('ada')
    await expect
      .poll(async () => {
        await following.tick()
        return ownReceiver.received.length
      })
      .toBe(1)
    await following.stop()
    await patient.close()
    await ownReceiver.close()
  })
})

describe('the secret', () => {
  it('and the one before it sign for 24 hours after a rotation', async () => {
    await create()
    const first = secret
    const second = (await organization.send('POST', '/v1/webhooks/1/rotate')).body.data.secret
    expect(second).not.toBe(first)
    const signaturesOf = async (external_id: string) => {
      await person(external_id)
      await deliver()
      const { headers, id, body } = receiver.received.at(-1)!
      const sign = (text: string) =>
        `v1,${createHmac('sha256', Buffer.from(text.slice(6), 'base64'))
          .update(`${id}.${headers['webhook-timestamp']}.${body}`)
          .digest('base64')}`
      return String(headers['webhook-signature'])
        .split(' ')
        .map(signature => [first, second].findIndex(each => sign(each) === signature))
    }
    expect(await signaturesOf('ada')).toEqual([0, 1])
    nowMs = Date.now() + dayMs + 1_000
    expect(await signaturesOf('bob')).toEqual([1])
  })
})

describe('a replay', () => {
  it('sends the matching changes of a range again, in order, with the same identifiers', async () => {
    await create({ events: ['person.*'] })
    await person('ada')
    await patch('ada', { first_name: 'A' })
    await organization.send('POST', '/v1/stacks/companies', { external_id: 'acme' })
    await patch('ada', { first_name: 'B' })
    await deliver()
    const first = receiver.received.map(({ id }) => id)
    expect(first).toHaveLength(3)
    receiver.received.length = 0
    const after = Number(first[0]!.split(':')[1])
    const reply = await organization.send('POST', '/v1/webhooks/1/replay', { after })
    expect([reply.status, reply.body.data]).toEqual([202, { after, until: after + 3 }])
    await deliver()
    expect(receiver.received.map(({ id }) => id)).toEqual(first.slice(1))
    expect(statusesOf(await deliveries())).toEqual({
      [after]: 'delivered',
      [after + 1]: 'delivered',
      [after + 3]: 'delivered',
    })
  })

  it('sends what was given up, before the changes that wait', async () => {
    await create()
    await person('ada')
    receiver.answer = response => response.writeHead(500).end()
    for (let attempt = 1; attempt <= 10; attempt += 1) {
      await deliver()
      nowMs += 25 * hourMs
      // A success in between keeps the webhook active.
      await service.sql('update webhooks set failing_since = null where organization_id = $1', [organization.id])
    }
    expect((await deliveries())[0]).toMatchObject({ status: 'failed' })
    await patch('ada', { first_name: 'A' })
    await deliver()
    receiver.received.length = 0
    receiver.answer = response => response.writeHead(204).end()
    await organization.send('POST', '/v1/webhooks/1/replay', { after: 0 })
    await deliver()
    expect(receiver.received.map(({ event }) => event.data.version)).toEqual([1, 2])
    expect((await deliveries()).map(({ status }: { status: string }) => status)).toEqual(['delivered', 'delivered'])
  })
})

describe('a test', () => {
  it('sends one event and returns the outcome', async () => {
    await create({ active: false })
    receiver.answer = response => response.writeHead(201).end('thanks')
    const { body } = await organization.send('POST', '/v1/webhooks/1/test')
    expect(body.data).toMatchObject({ delivered: true, response_status: 201, response: 'thanks', error: null })
    expect(receiver.received[0]!.event).toMatchObject({ type: 'webhook.test', data: { webhook_id: 1 } })
    expect(receiver.received[0]!.headers['webhook-signature']).toMatch(/^v1,/)
    receiver.answer = response => response.destroy()
    const failed = await organization.send('POST', '/v1/webhooks/1/test')
    expect(failed.body.data).toMatchObject({ delivered: false, response_status: null })
    expect(failed.body.data.error).toBeTruthy()
    expect(await deliveries()).toEqual([])
  })

  it('is listed with the deliveries, newest first, with its response', async () => {
    await create()
    receiver.answer = response => response.writeHead(201).end('thanks')
    await organization.send('POST', '/v1/webhooks/1/test')
    receiver.answer = response => response.writeHead(500).end('broken')
    for (let n = 0; n < 20; n += 1) await organization.send('POST', '/v1/webhooks/1/test')
    const tests = async (query = '') =>
      (await organization.send('GET', `/v1/webhooks/1/deliveries${query}`)).body.data.tests
    const listed = await tests()
    expect(listed).toHaveLength(20)
    expect(listed[0]).toEqual({
      message_id: receiver.received.at(-1)!.id,
      type: 'webhook.test',
      state: 'failed',
      at: receiver.received.at(-1)!.event.timestamp,
      response_status: 500,
      duration_ms: expect.any(Number),
      response: 'broken',
      error: null,
    })
    receiver.answer = response => response.writeHead(204).end()
    await organization.send('POST', '/v1/webhooks/1/test')
    expect((await tests('?state=delivered')).map((test: { response_status: number }) => test.response_status)).toEqual([
      204,
    ])
    expect(await tests('?status=failed')).toHaveLength(19)
    expect(await tests('?state=failing')).toEqual([])
    expect(await tests('?before=9')).toEqual([])
    await organization.send('DELETE', '/v1/webhooks/1')
    expect((await service.sql('select tests from webhooks where organization_id = $1', [organization.id]))[0]).toEqual({
      tests: [],
    })
  })
})

describe('the backlog of a webhook', () => {
  it('is counted while the receiver fails, also after every change was looked at, with the attempt that blocks', async () => {
    await create()
    for (const name of ['ada', 'bob', 'eve']) await person(name)
    for (const name of ['ada', 'bob']) await patch(name, { first_name: name })
    expect((await read()).backlog).toEqual({ changes: 5, deliveries: 0, oldest_at: null, blocking: null })
    receiver.answer = response => response.writeHead(503).end('busy')
    await deliver()
    const [first] = (await deliveries()).slice(-1)
    const { backlog, position, state } = await read()
    expect(state).toBe('failing')
    expect(backlog).toMatchObject({ changes: 0, deliveries: 5, oldest_at: first.created_at })
    expect(backlog.blocking).toMatchObject({
      sequence: position - 4,
      state: 'failing',
      attempts: 1,
      response_status: 503,
      response: 'busy',
    })
    expect(Date.parse(backlog.blocking.next_attempt_at) - nowMs).toBe(5_000)
    const [listed] = (await organization.send('GET', '/v1/webhooks')).body.data.items
    expect(listed.backlog).toMatchObject({ deliveries: 5, blocking: { response_status: 503 } })
    receiver.answer = response => response.writeHead(204).end()
    nowMs += 10_000
    await deliver()
    expect(await read()).toMatchObject({
      state: 'active',
      backlog: { changes: 0, deliveries: 0, oldest_at: null, blocking: null },
    })
  })

  it('is listed by state: what fails, what waits for it, what was given up', async () => {
    await create()
    for (const name of ['ada', 'bob', 'eve']) await person(name)
    await patch('ada', { first_name: 'Ada' })
    receiver.answer = (response, { event }) => response.writeHead(event.data.external_id === 'ada' ? 500 : 204).end()
    await deliver()
    const byState = async (state: string) =>
      (await deliveries(`?state=${state}`)).map((each: { sequence: number; state: string }) => [
        each.sequence,
        each.state,
      ])
    const { position } = await read()
    expect(await byState('failing')).toEqual([[position - 3, 'failing']])
    expect(await byState('blocked')).toEqual([[position, 'blocked']])
    expect(await byState('delivered')).toEqual([
      [position - 1, 'delivered'],
      [position - 2, 'delivered'],
    ])
    expect(await byState('failed')).toEqual([])
    await service.sql(
      `update webhook_deliveries set attempts = 9, next_attempt_at = created_at
       where organization_id = $1 and sequence = $2`,
      [organization.id, position - 3],
    )
    nowMs += 10_000
    await deliver()
    expect(await byState('failed')).toEqual([[position - 3, 'failed']])
    expect((await deliveries('?state=delivered&status=failed')).length).toBe(0)
  })

  it('has its next attempt now if it is due, and none while the webhook is paused', async () => {
    await create()
    await person('ada')
    receiver.answer = response => response.writeHead(500).end()
    await deliver()
    await service.sql(
      `update webhook_deliveries set next_attempt_at = now() - interval '1 hour' where organization_id = $1`,
      [organization.id],
    )
    const beganMs = Date.now()
    const [due] = await deliveries()
    expect(due).toMatchObject({ state: 'failing' })
    expect(Date.parse(due.next_attempt_at)).toBeGreaterThanOrEqual(beganMs)
    await organization.send('PATCH', '/v1/webhooks/1', { active: false })
    expect((await deliveries())[0].next_attempt_at).toBeNull()
    expect(await read()).toMatchObject({ state: 'paused', backlog: { deliveries: 1 } })
  })
})

describe('deliveries', () => {
  it('are listed by page, and forgotten 30 days after they have ended', async () => {
    await create()
    for (let n = 0; n < 5; n += 1) await person(`p${n}`)
    receiver.answer = (response, { event }) => response.writeHead(event.data.external_id === 'p4' ? 500 : 204).end()
    await deliver()
    const page = (query: string) => organization.send('GET', `/v1/webhooks/1/deliveries${query}`)
    const { items, has_more } = (await page('?limit=3')).body.data
    expect([items.length, has_more]).toEqual([3, true])
    const rest = (await page(`?limit=3&before=${items[2].sequence}`)).body.data
    expect([rest.items.length, rest.has_more]).toEqual([2, false])
    expect(await deliveries('?status=waiting')).toHaveLength(1)
    await forgetDeliveries(service.db, { nowMs: nowMs + 30 * dayMs - 1_000 })
    expect(await deliveries()).toHaveLength(5)
    await forgetDeliveries(service.db, { nowMs: nowMs + 30 * dayMs + 1_000 })
    expect(await deliveries()).toHaveLength(1)
    await organization.send('DELETE', '/v1/webhooks/1')
    await forgetDeliveries(service.db)
    expect(await service.sql('select from webhook_deliveries where organization_id = $1', [organization.id])).toEqual(
      [],
    )
  })
})

describe('several processes', () => {
  it('send each change once', async () => {
    await create()
    for (let n = 0; n < 50; n += 1) await person(`p${n}`)
    await Promise.all([1, 2, 3].map(() => deliver()))
    expect(sequences().toSorted((a, b) => a - b)).toEqual([...new Set(sequences())].toSorted((a, b) => a - b))
    expect(receiver.received).toHaveLength(50)
  })

  it('deliver everything, in order per entity, when one dies at any moment', async () => {
    await create()
    const names = ['ada', 'bob', 'eve']
    for (const name of names) await person(name)
    for (let version = 2; version <= 12; version += 1)
      await Promise.all(names.map(name => patch(name, { first_name: `v${version}` })))
    receiver.answer = response => setImmediate(() => response.writeHead(204).end())
    // The process dies: from one statement on, all its statements fail, and its lease ends.
    for (let diesAfter = 3; diesAfter < 20; diesAfter += 1) {
      let statements = 0
      const live = () => {
        statements += 1
        if (statements > diesAfter) throw new Error('the process is dead')
      }
      const dying: Database = {
        ...service.db,
        root: service.db,
        query: async (statement, values, signal) => {
          live()
          return service.db.query(statement, values, signal)
        },
        transaction: (work, options) =>
          service.db.transaction(
            tx =>
              work({
                ...tx,
                query: async (statement, values) => {
                  live()
                  return tx.query(statement, values)
                },
              }),
            options,
          ),
      }
      const following: Followers = createFollowers(dying, [makeFollower()], { report: () => {}, ...clock })
      await following.settle().catch(() => {})
      await following.stop()
      await service.sql('update followers set leased_until = null, owner = null')
    }
    await deliver()
    const byPerson = Map.groupBy(receiver.received, ({ event }) => event.data.external_id as string)
    expect([...byPerson.keys()].sort()).toEqual(names)
    for (const received of byPerson.values()) {
      const versions = received.map(({ event }) => event.data.version as number)
      expect([...new Set(versions)]).toEqual(Array.from({ length: 12 }, (_, n) => n + 1))
      // The next process may repeat changes, but skips none.
      for (const [index, version] of versions.entries())
        expect(version - (versions[index - 1] ?? 0)).toBeLessThanOrEqual(1)
      expect(versions.at(-1)).toBe(12)
    }
    expect((await deliveries()).every(({ status }: { status: string }) => status === 'delivered')).toBe(true)
  })

  it('take over what a stopped one has begun, and store nothing twice', async () => {
    await create()
    await person('ada')
    const { promise: arrived, resolve } = Promise.withResolvers<void>()
    receiver.answer = () => resolve()
    const first = createFollowers(service.db, [makeFollower()], { report: () => {}, ...clock })
    await first.tick()
    await arrived
    await first.stop()
    expect((await deliveries())[0]).toMatchObject({ status: 'waiting', attempts: 0 })
    receiver.answer = response => response.writeHead(204).end()
    await deliver()
    expect((await deliveries())[0]).toMatchObject({ status: 'delivered', attempts: 1 })
    expect(receiver.received).toHaveLength(2)
  })
})

describe('the metrics', () => {
  it('count attempts by outcome, webhooks by state and retries that wait', async () => {
    await create()
    await person('ada')
    await person('bob')
    receiver.answer = (response, { event }) => response.writeHead(event.data.external_id === 'ada' ? 204 : 500).end()
    await deliver()
    const { text } = await readMetrics(service.address)
    expect(text).toMatch(/kith_webhook_attempts_total\{outcome="delivered"\} [1-9]/)
    expect(text).toMatch(/kith_webhook_attempts_total\{outcome="retried"\} [1-9]/)
    expect(text).toMatch(/kith_webhooks\{state="active"\} \d/)
    expect(text).toMatch(/kith_webhook_retries_waiting \d/)
    expect(text).toMatch(/kith_webhook_deliveries_waiting \d/)
    expect(text).toMatch(/kith_webhook_delivery_lag_seconds \d/)
    expect(text.includes('kith_follower_lag_seconds{follower="webhooks"}')).toBe(true)
  })

  it('count what waits, and its age, although every change was looked at, without paused webhooks', async () => {
    await create()
    await person('ada')
    await patch('ada', { first_name: 'Ada' })
    receiver.answer = response => response.writeHead(500).end()
    await deliver()
    await service.sql(
      `update webhook_deliveries set created_at = now() - interval '1 hour' where organization_id = $1`,
      [organization.id],
    )
    // Other tests leave webhooks of their organizations active.
    await service.sql('update webhooks set active = false where organization_id <> $1', [organization.id])
    const states = await readWebhookStates(service.db)
    expect(states).toMatchObject({ failing: 1, waiting: 2, retries: 1 })
    expect(Math.round(states.seconds / 60)).toBe(60)
    await organization.send('PATCH', '/v1/webhooks/1', { active: false })
    expect(await readWebhookStates(service.db)).toMatchObject({ waiting: 0, retries: 0, seconds: 0 })
  })
})
