import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { follow } from '../../test/support/followers.ts'
import { formOf, requestPage } from '../../test/support/pages.ts'
import { createLoopbackSender, type Receiver, startReceiver } from '../../test/support/receiver.ts'
import { useOwnService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'
import { webhookFollower } from './deliver.ts'
import type { Sender } from './send.ts'

const service = useOwnService({ KITH_WEBHOOK_ALLOW: '127.0.0.0/8', KITH_RATE_PAGES: '100000' })
// Type 1 has the default confirmation, and type 2 stores a grant as pending.
const organization = useShop(service, {
  key: 'news',
  channels: [
    { channel: 'email', double_opt_in: true },
    { channel: 'sms', double_opt_in: true },
  ],
})
const { send, ok } = organization
let receiver: Receiver
let sender: Sender
let nowMs: number
beforeEach(async () => {
  receiver = await startReceiver()
  nowMs = Date.now()
  sender = createLoopbackSender({ nowMs: () => nowMs })
})
afterEach(async () => {
  // Without this, the webhooks of one test would deliver in the next one.
  await service.sql('delete from followers')
  await sender.close()
  await receiver.close()
})

const create = (body: object = {}) =>
  ok('POST', '/v1/webhooks', { url: receiver.url, events: ['person.*'], links: true, ...body })
const clock = { nowMs: () => nowMs, random: () => 0.5 }
function deliver(linkBase: () => string | undefined = () => service.address) {
  nowMs = Math.max(nowMs, Date.now())
  return follow(service.db, [webhookFollower({ sender, linkBase, roundMs: 20, ...clock })], clock)
}
const granted = (channel = 'email', rest: object = {}) => ({ consent_type_id: 2, channel, state: true, ...rest })
const signUp = (external_id: string, body: object = {}) =>
  ok('POST', '/v1/people', { external_id, email: 'Ada@Example.com', consents: [granted()], ...body })
const events = () => receiver.received.map(({ event }) => event)
const confirmationsOf = (index: number) => events().at(index)?.confirmations
const minuteMs = 60_000
const dayMs = 86_400_000

describe('a webhook with links', () => {
  it('sends the address and the link that confirms a grant, and the link confirms it', async () => {
    const { id, links } = await create()
    expect(links).toBe(true)
    await signUp('ada')
    await deliver()
    const [{ type, confirmations }] = events()
    expect(type).toBe('person.created')
    expect(confirmations).toEqual([
      { consent_type_id: 2, channel: 'email', address: 'Ada@Example.com', confirm_url: expect.any(String) },
    ])
    const url = confirmations[0].confirm_url
    expect(url.startsWith(`${service.address}/c/`)).toBe(true)
    const { shown } = formOf(await requestPage(url))
    await requestPage(url, { form: { shown } })
    const { allowed } = await ok('POST', '/v1/people/ada/contactable', { consent_type_id: 2, channel: 'email' })
    expect(allowed).toBe(true)
    await deliver()
    expect(events().map(event => 'confirmations' in event)).toEqual([true, false])
    expect((await ok('GET', `/v1/webhooks/${id}`)).links).toBe(true)
  })

  it('sends the address though the change did not touch it, and a link for each channel', async () => {
    await ok('POST', '/v1/people', { external_id: 'ada', email: 'ada@example.com', mobile_number: '+39 333 1234567' })
    await create()
    await ok('PATCH', '/v1/people/ada', { consents: [granted(), granted('sms')] })
    await deliver()
    expect(events()[0].data.after).not.toHaveProperty('email')
    expect(confirmationsOf(0)).toMatchObject([
      { channel: 'email', address: 'ada@example.com' },
      { channel: 'sms', address: '+393331234567' },
    ])
  })

  it('sends a link again if the person grants again while the grant waits', async () => {
    await create()
    await signUp('ada')
    await ok('PATCH', '/v1/people/ada', { consents: [granted('email', { method: 'web_form' })] })
    await deliver()
    expect(events().map(({ confirmations }) => confirmations?.length)).toEqual([1, 1])
  })

  it('sends the same body in each attempt', async () => {
    await create()
    receiver.answer = response => response.writeHead(receiver.received.length < 3 ? 503 : 204).end()
    await signUp('ada')
    await deliver()
    for (const waitMs of [minuteMs, 10 * minuteMs]) {
      nowMs += waitMs
      await deliver()
    }
    expect(receiver.received).toHaveLength(3)
    expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1)
    expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(1)
  })

  it('sends no link for a grant that no longer waits, whose person is gone or has no address, or whose link has ended', async () => {
    const { id } = await create()
    receiver.answer = response => response.writeHead(503).end()
    const people = ['refused', 'deleted', 'erased', 'unreachable', 'late']
    for (const external_id of people) await signUp(external_id)
    await deliver()
    await ok('PATCH', '/v1/people/refused', { consents: [{ ...granted(), state: false }] })
    await ok('DELETE', '/v1/people/deleted')
    await ok('POST', '/v1/people/erased/erase', { reason: 'request', records: 'keep' })
    await ok('PATCH', '/v1/people/unreachable', { email: null })
    receiver.answer = response => response.writeHead(204).end()
    receiver.received.length = 0
    nowMs += minuteMs
    await deliver()
    const linked = () =>
      Object.fromEntries(
        events()
          .filter(event => event.type === 'person.created')
          .map(event => [event.data.external_id, 'confirmations' in event]),
      )
    expect(linked()).toMatchObject({ refused: false, deleted: false, unreachable: false, late: true })
    expect(events().filter(event => 'confirmations' in event)).toHaveLength(1)
    receiver.received.length = 0
    nowMs += 8 * dayMs
    await ok('POST', `/v1/webhooks/${id}/replay`, { after: 0 })
    await deliver()
    expect(linked()).toMatchObject({ late: false })
  })

  it('leads to the survivor of a merge', async () => {
    await create()
    receiver.answer = response => response.writeHead(503).end()
    await signUp('old')
    await deliver()
    await ok('POST', '/v1/people', { external_id: 'new', email: 'new@example.com' })
    await ok('POST', '/v1/people/new/merge', { from: 'old' })
    receiver.answer = response => response.writeHead(204).end()
    receiver.received.length = 0
    nowMs += minuteMs
    await deliver()
    expect(confirmationsOf(0)).toMatchObject([{ address: 'new@example.com' }])
    const statusOf = async () => (await requestPage(confirmationsOf(0)[0].confirm_url)).status
    expect(await statusOf()).toBe(200)
    await ok('PATCH', '/v1/people/new', { email: 'newer@example.com' })
    expect(await statusOf()).toBe(404)
  })

  it('keeps no link that a receiver repeats, nor in any table', async () => {
    const { id } = await create()
    receiver.answer = (response, { body }) => response.writeHead(200).end(body.slice(body.indexOf('"confirmations"')))
    await signUp('ada')
    await deliver()
    const token = confirmationsOf(0)[0].confirm_url.split('/c/')[1]
    const { items } = await ok('GET', `/v1/webhooks/${id}/deliveries`)
    expect(items[0].response).toContain('"confirm_url":"[link]"')
    const rows = await service.sql('select d::text as text from webhook_deliveries d')
    expect(JSON.stringify(rows)).not.toContain(token)
  })

  it('waits with such events until kith knows its own address', async () => {
    const { id } = await create()
    await signUp('ada')
    await signUp('bob', { consents: [] })
    await deliver(() => undefined)
    expect(events().map(({ data }) => data.external_id)).toEqual(['bob'])
    const { items } = await ok('GET', `/v1/webhooks/${id}/deliveries?state=failing`)
    expect(items[0].error).toContain('KITH_PUBLIC_URL')
    nowMs += minuteMs
    await deliver()
    expect(confirmationsOf(-1)).toHaveLength(1)
  })

  it('needs the scope people:write, to be made and to be changed', async () => {
    const scopes = 'webhooks:write webhooks:read people:read'
    const limited = service.sender(await service.tokenFor(organization.key, scopes))
    const body = { url: receiver.url, events: ['person.*'], links: true }
    const refusal = await limited('POST', '/v1/webhooks', body)
    expect([refusal.status, refusal.body.error]).toEqual([403, 'forbidden'])
    expect(refusal.body.message).toContain('people:write')
    const { id } = await create()
    expect((await limited('PATCH', `/v1/webhooks/${id}`, { description: 'mine' })).status).toBe(403)
    expect((await limited('PATCH', `/v1/webhooks/${id}`, { links: false })).status).toBe(200)
    expect((await limited('PATCH', `/v1/webhooks/${id}`, { links: true })).status).toBe(403)
  })

  it('needs the full payload, and shows the switch in the change log', async () => {
    const body = { url: receiver.url, events: ['person.*'], payload: 'ids', links: true }
    const { status, body: refusal } = await send('POST', '/v1/webhooks', body)
    expect([status, refusal.details?.[0]?.path]).toEqual([400, '/links'])
    const { id } = await create({ links: false })
    await ok('PATCH', `/v1/webhooks/${id}`, { links: true })
    expect((await send('PATCH', `/v1/webhooks/${id}`, { payload: 'ids' })).status).toBe(400)
    const { items } = await ok('GET', '/v1/changes?subject=webhook')
    expect(items.at(-1)).toMatchObject({ before: { links: false }, after: { links: true } })
  })

  it('sends nothing but the change without links', async () => {
    await create({ links: false })
    await signUp('ada')
    await deliver()
    expect(Object.keys(events()[0])).toEqual(['type', 'timestamp', 'data'])
  })
})
