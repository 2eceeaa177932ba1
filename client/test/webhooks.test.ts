import { Webhook as StandardWebhook } from 'standardwebhooks'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { webhookFollower } from '../../src/webhooks/deliver.ts'
import type { Sender } from '../../src/webhooks/send.ts'
import { follow } from '../../test/support/followers.ts'
import { createLoopbackSender, type Receiver, startReceiver } from '../../test/support/receiver.ts'
import { useOwnService } from '../../test/support/service.ts'
import { type Client, createClient, verifyWebhook, type WebhookBody, WebhookVerificationError } from '../index.ts'

const service = useOwnService({ KITH_WEBHOOK_ALLOW: '127.0.0.0/8' })
let client: Client
let receiver: Receiver
let sender: Sender
beforeAll(() => {
  sender = createLoopbackSender()
})
afterAll(() => sender.close())
beforeEach(async () => {
  const { token } = await service.organization()
  client = createClient({ url: service.address, token, retries: 0 })
  receiver = await startReceiver()
})
afterEach(async () => {
  await service.sql('delete from followers')
  await receiver.close()
})

const deliver = () => follow(service.db, [webhookFollower({ sender })])
const create = (events: WebhookBody['events'] = ['person.*']) => client.webhooks.create({ url: receiver.url, events })

describe('client.webhooks', () => {
  it('creates, reads, lists, changes and deletes webhooks', async () => {
    const { secret, ...created } = await create()
    expect(secret).toMatch(/^whsec_/)
    expect(created).toMatchObject({ id: 1, url: receiver.url, events: ['person.*'], active: true })
    expect(await client.webhooks.get(1)).toEqual(created)
    expect(await client.webhooks.list().all()).toEqual([created])
    const changed = await client.webhooks.update(1, { events: ['record.*'], active: false })
    expect(changed).toMatchObject({ events: ['record.*'], active: false })
    expect(await client.webhooks.delete(1)).toBe(true)
    await expect(client.webhooks.get(1)).rejects.toMatchObject({ code: 'not_found', missing: 'entity' })
    await expect(
      client.webhooks.create({ url: 'http://receiver.example', events: ['person.*'] }),
    ).rejects.toMatchObject({
      status: 400,
      details: [{ path: '/url' }],
    })
  })

  it('sends a test event, which its receiver verifies with the secret', async () => {
    const { secret } = await create()
    expect(await client.webhooks.test(1)).toMatchObject({ delivered: true, response_status: 204, error: null })
    const [{ body, headers }] = receiver.received as [Receiver['received'][0]]
    expect(await verifyWebhook(body, headers, secret)).toMatchObject({ type: 'webhook.test', data: { webhook_id: 1 } })
  })

  it('lists deliveries by pages, and sends changes again', async () => {
    const { secret } = await create()
    for (const external_id of ['ada', 'bob', 'eve']) await client.people.create({ external_id })
    await deliver()
    const newest = await client.webhooks.deliveries(1, { size: 2 }).page()
    expect(newest).toMatchObject({ items: [{ status: 'delivered', attempts: 1 }, {}], has_more: true })
    const older = await client.webhooks.deliveries(1, { after: newest.next! }).page()
    expect(older).toMatchObject({ items: [{ sequence: 2 }], has_more: false })
    expect((await client.webhooks.deliveries(1, { status: 'failed' }).page()).items).toEqual([])
    expect(await client.webhooks.replay(1, { after: 2, until: 3 })).toEqual({ after: 2, until: 3 })
    await deliver()
    const ids = receiver.received.map(({ id }) => id)
    expect([ids.length, new Set(ids).size]).toEqual([4, 3])
    for (const { body, headers } of receiver.received) {
      const event = await verifyWebhook(body, headers, secret)
      expect(event).toMatchObject({ type: 'person.created', data: { subject: 'person', before: null } })
    }
  })

  it('rotates the secret: receivers that know either one verify the request', async () => {
    const { secret: older } = await create()
    const { secret: newer } = await client.webhooks.rotate(1)
    expect(newer).not.toBe(older)
    await client.webhooks.test(1)
    const [{ body, headers }] = receiver.received as [Receiver['received'][0]]
    for (const secrets of [older, newer, [older, newer]])
      expect(await verifyWebhook(body, headers, secrets)).toMatchObject({ type: 'webhook.test' })
  })
})

describe('verifyWebhook', () => {
  const secret = `whsec_${Buffer.from('0123456789abcdef0123456789abcdef').toString('base64')}`
  const otherSecret = `whsec_${Buffer.from('another secret').toString('base64')}`
  const body = '{"type":"person.created","timestamp":"2027-01-15T08:00:00.000Z","data":{"external_id":"ä"}}'

  /** The headers of a request as the library of the standard signs it. */
  function signed({ at = Date.now(), secrets = [secret], payload = body, id = 'log:1' } = {}) {
    const timestamp = new Date(at)
    const signatures = secrets.map(each => new StandardWebhook(each).sign(id, timestamp, payload))
    return {
      'webhook-id': id,
      'webhook-timestamp': `${Math.floor(at / 1_000)}`,
      'webhook-signature': signatures.join(' '),
    }
  }
  const verify = (
    headers: Record<string, string>,
    secrets: string | string[] = secret,
    payload: string | Buffer = body,
  ) =>
    verifyWebhook(payload, headers, secrets).then(
      event => event.type as string,
      error => error.name as string,
    )
  const refused = 'WebhookVerificationError'

  it('accepts what the library of the standard signs, as text and as bytes, with headers of any kind', async () => {
    const headers = signed()
    expect(await verify(headers)).toBe('person.created')
    expect(await verify(headers, secret, Buffer.from(body))).toBe('person.created')
    const upper = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]))
    expect(await verify(upper)).toBe('person.created')
    expect(await verifyWebhook(body, new Headers(headers), secret)).toMatchObject({ data: { external_id: 'ä' } })
    expect(await verify(headers, secret.replace('whsec_', ''))).toBe('person.created')
  })

  it('accepts one of several signatures and one of several secrets', async () => {
    expect(await verify(signed({ secrets: [otherSecret, secret] }))).toBe('person.created')
    expect(await verify(signed(), [otherSecret, secret])).toBe('person.created')
    const headers = signed()
    headers['webhook-signature'] = `v1a,x v1,!!! v2,AAAA ${headers['webhook-signature']}`
    expect(await verify(headers)).toBe('person.created')
  })

  it('refuses another secret, body, id or time, and a signature of another version', async () => {
    expect(await verify(signed(), otherSecret)).toBe(refused)
    expect(await verify(signed(), [])).toBe(refused)
    expect(await verify(signed(), secret, `${body} `)).toBe(refused)
    expect(await verify({ ...signed(), 'webhook-id': 'log:2' })).toBe(refused)
    expect(await verify({ ...signed(), 'webhook-timestamp': `${Math.floor(Date.now() / 1_000) - 1}` })).toBe(refused)
    const headers = signed()
    expect(await verify({ ...headers, 'webhook-signature': headers['webhook-signature'].replace('v1', 'v2') })).toBe(
      refused,
    )
  })

  it('accepts a time up to five minutes off, in both directions', async () => {
    const at = (seconds: number) => signed({ at: Date.now() + seconds * 1_000 })
    for (const seconds of [-290, 290]) expect(await verify(at(seconds))).toBe('person.created')
    for (const seconds of [-310, 310]) expect(await verify(at(seconds))).toBe(refused)
    expect(await verify({ ...signed(), 'webhook-timestamp': 'now' })).toBe(refused)
  })

  it.each(['webhook-id', 'webhook-timestamp', 'webhook-signature'])('refuses a request without %s', async name => {
    await expect(verifyWebhook(body, { ...signed(), [name]: undefined }, secret)).rejects.toThrow(
      WebhookVerificationError,
    )
  })

  it.each([JSON.parse(body), new ArrayBuffer(2), undefined])(
    'throws a TypeError for a body that is %o',
    async parsed => {
      await expect(verifyWebhook(parsed, signed(), secret)).rejects.toThrow('the body as it arrived')
    },
  )

  it.each(['', 'whsec_', 'not base64!', undefined as never])('throws a TypeError for the secret %j', async text => {
    await expect(verifyWebhook(body, signed(), text)).rejects.toThrow(TypeError)
  })
})
