import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Service, startService, useOwnService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'
import { contextOf } from '../db/context.ts'
import { createWebhook } from './webhooks.ts'

const service = useOwnService({ KITH_WEBHOOK_ALLOW: '127.0.0.0/8' })
let closed: Service
beforeAll(async () => {
  closed = await startService({}, service.databaseUrl)
})
afterAll(() => closed.stop())
const organization = useShop(service)

const url = 'https://127.0.0.1:9/kith'
const events = ['person.updated']
const create = (body: object = {}) => organization.send('POST', '/v1/webhooks', { url, events, ...body })
const logged = async () =>
  service.sql<{ operation: string; definition_id: number; before: object; after: object; actor: string }>(
    `select operation, definition_id, before, after, actor from changes
     where organization_id = $1 and subject = 'webhook' order by sequence`,
    [organization.id],
  )
const stored = () => service.sql('select * from webhooks where organization_id = $1 order by id', [organization.id])

/** Expects a refusal of one value, and that kith stored nothing. */
async function expectRefused(body: object, path: string, message: RegExp, send = organization.send) {
  const before = await stored()
  const reply = await send('POST', '/v1/webhooks', { url, events, ...body })
  expect([reply.status, reply.body.details?.map(detail => detail.path)]).toEqual([400, [path]])
  expect(reply.body.details![0]!.message).toMatch(message)
  expect(await stored()).toEqual(before)
}

describe('a webhook', () => {
  it('is created with a secret of 32 bytes that no read shows again', async () => {
    const created = await create({ description: 'mail', keys: ['email'] })
    const { secret, ...shown } = created.body.data
    expect([created.status, created.headers.get('Location')]).toEqual([201, '/v1/webhooks/1'])
    expect(Buffer.from(secret.replace(/^whsec_/, ''), 'base64')).toHaveLength(32)
    expect(shown).toMatchObject({
      id: 1,
      url,
      events,
      stacks: null,
      keys: ['email'],
      description: 'mail',
      payload: 'full',
      active: true,
      disabled: null,
      failing_since: null,
      state: 'active',
      position: 1,
      backlog: { changes: 0, deliveries: 0, oldest_at: null, blocking: null },
    })
    const read = await organization.send('GET', '/v1/webhooks/1')
    expect(read.body.data).toEqual(shown)
    const list = await organization.send('GET', '/v1/webhooks')
    expect(list.body.data).toEqual({ items: [shown] })
  })

  it('shows its secret once also under an Idempotency-Key, whose response is not stored', async () => {
    const keyed = (path: string, body?: object) =>
      organization.send('POST', path, body, { 'Idempotency-Key': 'once' }).then(reply => reply.body.data)
    const [first, second] = [await keyed('/v1/webhooks', { url, events }), await keyed('/v1/webhooks', { url, events })]
    expect([first.id, second.id]).toEqual([1, 2])
    const rotated = [await keyed('/v1/webhooks/1/rotate'), await keyed('/v1/webhooks/1/rotate')]
    expect(new Set([first, second, ...rotated].map(({ secret }) => secret)).size).toBe(4)
    const stored = 'select 1 from idempotency_keys where organization_id = $1'
    expect(await service.sql(stored, [organization.id])).toEqual([])
  })

  it('is logged as a change when it is created, changed and deleted, without its secret', async () => {
    await create()
    await organization.send('PATCH', '/v1/webhooks/1', { payload: 'ids', description: null })
    await organization.send('PATCH', '/v1/webhooks/1', { payload: 'ids' })
    await organization.send('POST', '/v1/webhooks/1/rotate')
    await organization.send('DELETE', '/v1/webhooks/1')
    const settings = {
      url,
      events,
      stacks: null,
      keys: null,
      description: null,
      payload: 'full',
      active: true,
      links: false,
      headers: [],
    }
    expect(await logged()).toEqual(
      [
        { operation: 'create', before: {}, after: settings },
        { operation: 'update', before: { payload: 'full' }, after: { payload: 'ids' } },
        { operation: 'update', before: { secrets: 1 }, after: { secrets: 2 } },
        { operation: 'delete', before: { ...settings, payload: 'ids' }, after: {} },
      ].map(change => ({ ...change, definition_id: 1, actor: 'tests' })),
    )
  })

  it('keeps its id to itself after its deletion, and its secrets are gone', async () => {
    await create()
    expect((await organization.send('DELETE', '/v1/webhooks/1')).body.data).toBe(true)
    for (const [method, path] of [
      ['GET', ''],
      ['PATCH', ''],
      ['DELETE', ''],
      ['POST', '/rotate'],
      ['POST', '/test'],
      ['GET', '/deliveries'],
    ] as const)
      expect(
        (await organization.send(method, `/v1/webhooks/1${path}`, method === 'PATCH' ? {} : undefined)).status,
      ).toBe(404)
    expect((await create()).body.data.id).toBe(2)
    expect((await stored())[0]).toMatchObject({ secrets: [], headers: {}, url: '' })
  })

  it('shows, logs and dry-runs the names of its headers, and never a value', async () => {
    const values = ['Bearer s3cret-token', 'another-s3cret', 'third-s3cret']
    const headers = { Authorization: values[0], 'X-Tenant': values[1] }
    const created = await create({ headers })
    expect(created.body.data.headers).toEqual(['authorization', 'x-tenant'])
    const patched = await organization.send('PATCH', '/v1/webhooks/1', {
      headers: { 'X-Tenant': null, apikey: values[2] },
    })
    expect(patched.body.data.headers).toEqual(['apikey', 'authorization'])
    await organization.send('PATCH', '/v1/webhooks/1', { headers: { APIKEY: values[1] } })
    expect(await service.sql('select headers from webhooks where organization_id = $1', [organization.id])).toEqual([
      { headers: { authorization: values[0], apikey: values[1] } },
    ])
    const dry = await organization.send('PATCH', '/v1/webhooks/1?dry_run=true', { headers: null })
    const read = await organization.send('GET', '/v1/webhooks')
    const feed = await organization.send('GET', '/v1/changes')
    expect(read.body.data.items[0].headers).toEqual(['apikey', 'authorization'])
    expect((await logged()).map(({ before, after }) => [before, after])).toMatchObject([
      [{}, { headers: ['authorization', 'x-tenant'] }],
      [{ headers: ['authorization', 'x-tenant'] }, { headers: ['apikey', 'authorization'] }],
      [{ headers: ['apikey', 'authorization'] }, { headers: ['apikey', 'authorization'] }],
    ])
    const shown = JSON.stringify([created.body, patched.body, dry.body, read.body, feed.body])
    expect(values.filter(value => shown.includes(value))).toEqual([])
    await organization.send('PATCH', '/v1/webhooks/1', { headers: null })
    expect((await organization.send('GET', '/v1/webhooks/1')).body.data.headers).toEqual([])
  })

  it('never sends a header that it keeps to another origin', async () => {
    await create({ headers: { Authorization: 'Bearer s3cret', 'X-Tenant': 'a' } })
    const patch = (body: object) => organization.send('PATCH', '/v1/webhooks/1', body)
    const elsewhere = 'https://127.0.0.2:9/kith'
    const refused = await patch({ url: elsewhere, headers: { 'X-Tenant': 'b' } })
    expect([refused.status, refused.body.details]).toEqual([
      400,
      [{ path: '/headers', message: expect.stringMatching(/must have authorization again/) }],
    ])
    expect((await patch({ url: `${url}/more` })).status).toBe(200)
    expect((await patch({ url: elsewhere, headers: { Authorization: null, 'X-Tenant': 'b' } })).status).toBe(200)
  })

  it('takes five headers, none of which kith or HTTP sets itself', async () => {
    const many = Object.fromEntries(Array.from({ length: 5 }, (_, n) => [`x-${n}`, 'a']))
    expect((await create({ headers: many })).status).toBe(201)
    const refused = await organization.send('PATCH', '/v1/webhooks/1', { headers: { 'x-6': 'a' } })
    expect([refused.status, refused.body.details![0]!.path]).toEqual([400, '/headers'])
    await expectRefused({ headers: { ...many, 'x-6': 'a' } }, '/headers', /at most 5/)
    for (const name of ['Host', 'content-length', 'Transfer-Encoding', 'webhook-signature', 'User-Agent', 'Connection'])
      await expectRefused({ headers: { [name]: 'a' } }, `/headers/${name}`, /kith or HTTP sets itself/)
    await expectRefused({ headers: { 'a b': 'a' } }, '/headers/a b', /not the name of a header/)
    await expectRefused({ headers: { 'a:': 'a' } }, '/headers/a:', /not the name of a header/)
    await expectRefused({ headers: { a: '1', A: '2' } }, '/headers/A', /twice/)
    for (const value of ['a\r\nb: c', 'ü', 'a'.repeat(4_097)])
      await expectRefused({ headers: { a: value } }, '/headers/a', /printable ASCII|4096/)
  })

  it('that is paused and activated keeps its position', async () => {
    await create()
    await organization.send('PATCH', '/v1/webhooks/1', { active: false })
    await organization.send('POST', '/v1/people', { external_id: 'ada' })
    const { body } = await organization.send('PATCH', '/v1/webhooks/1', { active: true })
    expect(body.data).toMatchObject({ active: true, position: 1 })
  })

  it('is refused past 100 of an organization', async () => {
    for (let n = 0; n < 100; n += 1) await create()
    const reply = await create()
    expect([reply.status, reply.body.details]).toEqual([
      400,
      [{ path: '', message: 'exceeds the limit of 100 webhooks per organization' }],
    ])
  })
})

describe('the scopes', () => {
  const sendWith = async (scope: string) => service.sender(await service.tokenFor(organization.key, scope))

  it('that read what a webhook tells of are needed to create or change it', async () => {
    const needed = {
      'person.updated': 'people:read',
      'consent.*': 'people:read',
      'record.*': 'records:read',
      'stack.created': 'schema:read',
      'attribute.*': 'schema:read',
      'consent_type.*': 'schema:read',
      'webhook.*': 'webhooks:read',
      'settings.*': 'schema:read',
    }
    for (const [event, scope] of Object.entries(needed)) {
      const writer = await sendWith('webhooks:write')
      const refused = await writer('POST', '/v1/webhooks', { url, events: [event] })
      expect([refused.status, refused.headers.get('WWW-Authenticate')]).toEqual([
        403,
        `Bearer realm="kith", error="insufficient_scope", scope="${scope}"`,
      ])
      const reader = await sendWith(`webhooks:write ${scope}`)
      const created = await reader('POST', '/v1/webhooks', { url, events: [event] })
      expect(created.status).toBe(201)
      // With another address, the webhook would send the changes there.
      const patched = await writer('PATCH', `/v1/webhooks/${created.body.data.id}`, { url: `${url}/mine` })
      expect(patched.status).toBe(403)
    }
    expect((await stored()).map(({ url }) => url)).toEqual(Array(8).fill(url))
  })

  it('that read what a webhook told of are needed to send what waits to another URL', async () => {
    await create({ events: ['record.*'] })
    const writer = await sendWith('webhooks:write people:read')
    const patched = await writer('PATCH', '/v1/webhooks/1', { url: `${url}/mine`, events: ['person.*'] })
    expect(patched.status).toBe(403)
    expect((await stored())[0]).toMatchObject({ url })
  })

  it('webhooks:read and webhooks:write are needed', async () => {
    await create()
    const reader = await sendWith('webhooks:read')
    const writer = await sendWith('webhooks:write people:read')
    expect((await writer('GET', '/v1/webhooks')).status).toBe(403)
    expect((await writer('GET', '/v1/webhooks/1/deliveries')).status).toBe(403)
    expect((await reader('GET', '/v1/webhooks')).status).toBe(200)
    for (const path of ['', '/1/rotate', '/1/test', '/1/replay'])
      expect((await reader('POST', `/v1/webhooks${path}`, {})).status).toBe(403)
    expect((await reader('DELETE', '/v1/webhooks/1')).status).toBe(403)
  })
})

describe('a URL', () => {
  it.each([
    ['https://user:word@receiver.example/', /no user and no password/],
    ['https://user@receiver.example/', /no user and no password/],
    ['https://receiver.example/#part', /no fragment/],
    ['https://receiver.example/#', /no fragment/],
    ['http://receiver.example/', /must be an https URL/],
    ['ftp://receiver.example/', /must be an https URL/],
    ['receiver.example', /must be an https URL/],
    ['https://127.0.0.1/', /may not reach/],
    ['https://127.1/', /may not reach/],
    ['https://2130706433/', /may not reach/],
    ['https://0x7f.0.0.1/', /may not reach/],
    ['https://[::1]/', /may not reach/],
    ['https://[::ffff:127.0.0.1]/', /may not reach/],
    ['https://[::ffff:a00:1]/', /may not reach/],
    ['https://0.0.0.0/', /may not reach/],
    ['https://[::]/', /may not reach/],
    ['https://10.1.2.3/', /may not reach/],
    ['https://172.16.0.1/', /may not reach/],
    ['https://192.168.1.1/', /may not reach/],
    ['https://100.64.0.1/', /may not reach/],
    ['https://169.254.169.254/latest/meta-data', /may not reach/],
    ['https://168.63.129.16/', /may not reach/],
    ['https://[fe80::1]/', /may not reach/],
    ['https://[fd00:ec2::254]/', /may not reach/],
    ['https://224.0.0.1/', /may not reach/],
    ['https://[ff02::1]/', /may not reach/],
    ['https://[64:ff9b::a00:1]/', /may not reach/],
    ['https://[::169.254.169.254]/', /may not reach/],
    ['https://[::10.0.0.1]/', /may not reach/],
    ['https://[1::1]/', /may not reach/],
    ['https://[4000::1]/', /may not reach/],
    ['https://[2001:db8::1]/', /may not reach/],
    ['https://[2002:a00:1::1]/', /may not reach/],
    ['https://240.0.0.1/', /may not reach/],
    ['https://localhost/', /may not reach/],
    ['https://api.localhost./', /may not reach/],
    ['http://127.0.0.1/', /must be an https URL/],
  ])('%s is refused', async (address, message) => {
    const { id, key } = organization
    const send = closed.sender(await closed.tokenFor(key))
    await expectRefused({ url: address }, '/url', message, send)
    expect(id).toBe(organization.id)
  })

  it('with http is accepted only to loopback within KITH_WEBHOOK_ALLOW', async () => {
    for (const address of ['http://127.0.0.1:9/', 'http://localhost:9/', 'https://127.0.0.1/'])
      expect((await create({ url: address })).status).toBe(201)
    for (const address of ['http://10.0.0.1/', 'http://[::1]/', 'http://93.184.216.34/', 'https://10.0.0.1/'])
      await expectRefused({ url: address }, '/url', /must be an https URL|may not reach/)
  })

  it('whose name has one address that webhooks may not reach is refused', async () => {
    const { signal } = new AbortController()
    for (const address of ['127.0.0.1', '::1', '0.0.0.0', '10.0.0.1', '169.254.169.254', '::ffff:10.0.0.1']) {
      const creating = createWebhook(
        {
          ...contextOf(service.db, organization.id),
          actor: 'tests',
          request_id: 'tests',
          signal,
          allowed: [],
          resolve: async () => ['93.184.216.34', address],
        },
        { url: 'https://receiver.example/', events },
      )
      await expect(creating).rejects.toMatchObject({
        refusal: { status: 400, details: [{ path: '/url', message: expect.stringMatching(/may not reach/) }] },
      })
    }
    expect(await stored()).toEqual([])
  })

  it('is checked by a patch too', async () => {
    await create()
    const reply = await organization.send('PATCH', '/v1/webhooks/1', { url: 'https://10.0.0.1/' })
    expect([reply.status, reply.body.details![0]!.path]).toEqual([400, '/url'])
    expect((await stored())[0]).toMatchObject({ url })
  })
})

describe('bad input', () => {
  it('in events, stacks and keys is refused with its path', async () => {
    await organization.send('POST', '/v1/schema/stacks', { key: 'orders', kind: 'item' })
    for (const event of ['person', 'person.changed', 'people.updated', '*', 'person.*.x', ''])
      await expectRefused({ events: ['person.updated', event] }, '/events/1', /must match/)
    await expectRefused({ events: [] }, '/events', /at least 1/)
    await expectRefused({ stacks: ['orders', 'nothing'] }, '/stacks/1', /not the key of a stack/)
    for (const key of ['nothing', 'id', 'answers', 'attribute_values.'])
      await expectRefused({ keys: ['email', key] }, '/keys/1', /is not a field/)
    const keys = [
      'email',
      'external_id',
      'state',
      'consents',
      'attribute_values',
      'attribute_values.city',
      'attribute_values.undeclared',
    ]
    expect((await create({ keys, stacks: ['orders'] })).status).toBe(201)
  })

  it('past the range of a setting is refused with its path', async () => {
    const many = (length: number, value: string) => Array.from({ length }, () => value)
    for (const [body, path] of [
      [{ url: `https://receiver.invalid/${'x'.repeat(2_024)}` }, '/url'],
      [{ url: '' }, '/url'],
      [{ events: many(51, 'person.*') }, '/events'],
      [{ stacks: many(101, 'orders') }, '/stacks'],
      [{ stacks: [] }, '/stacks'],
      [{ keys: many(101, 'email') }, '/keys'],
      [{ keys: [] }, '/keys'],
      [{ description: 'x'.repeat(2_001) }, '/description'],
      [{ payload: 'all' }, '/payload'],
      [{ secret: 'mine' }, '/secret'],
    ] as const)
      await expectRefused(body, path, /./)
  })

  it('past the range of a parameter is refused', async () => {
    await create()
    const get = (query: string) => organization.send('GET', `/v1/webhooks/1/deliveries?${query}`)
    for (const query of [
      'limit=0',
      'limit=501',
      'limit=x',
      'before=0',
      'before=1e400',
      'before=9007199254740992',
      'status=lost',
      'state=waiting',
      'nothing=1',
    ])
      expect((await get(query)).status, query).toBe(400)
    for (const body of [
      {},
      { after: -1 },
      { after: 1.5 },
      { after: 0, until: -1 },
      { after: 0, more: 1 },
      { after: 2 ** 53 },
    ])
      expect((await organization.send('POST', '/v1/webhooks/1/replay', body)).status).toBe(400)
    const backwards = await organization.send('POST', '/v1/webhooks/1/replay', { after: 5, until: 4 })
    expect([backwards.status, backwards.body.details![0]!.path]).toEqual([400, '/until'])
    for (const id of ['0', '-1', 'x', '1.5', '99999999999'])
      expect((await organization.send('GET', `/v1/webhooks/${id}`)).status, id).toBe(400)
    expect((await organization.send('GET', '/v1/webhooks/2')).status).toBe(404)
  })

  it('a replay after the position is accepted and sends nothing', async () => {
    await create()
    const reply = await organization.send('POST', '/v1/webhooks/1/replay', { after: 1_000 })
    expect([reply.status, reply.body.data]).toEqual([202, { after: 1_000, until: 1_000 }])
    expect((await stored())[0]).toMatchObject({ replay_after: null })
  })
})
