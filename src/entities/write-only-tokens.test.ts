import { beforeEach, describe, expect, it } from 'vitest'
import { type Send, useService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'

const service = useService()
const organization = useShop(service, 'orders', 'visits')

const represent = { Prefer: 'return=representation' }
const tokenFor = async (scope: string) => service.sender(await service.tokenFor(organization.key, scope))

describe.each([
  ['/v1/people', 'people', 'id'],
  ['/v1/stacks/orders', 'records', 'record_id'],
])('a write-only token at %s', (path, kind, field) => {
  let writer: Send
  let secret: { external_id: string; attribute_values: object }
  let identifiers: Record<string, unknown>
  beforeEach(async () => {
    // The read scope of the other kind does not help.
    writer = await tokenFor(`${kind}:write ${kind === 'people' ? 'records' : 'people'}:read schema:read`)
    secret = { external_id: 'ada', attribute_values: { secret: 'told to nobody' } }
    const { data } = (await organization.send('POST', path, secret)).body
    identifiers = { [field]: data[field], external_id: 'ada' }
  })

  it('receives only the identifiers from an upsert that creates or merges', async () => {
    const merged = await writer('POST', `${path}/upsert`, { external_id: 'ada' })
    expect([merged.status, merged.body.data, merged.headers.get('etag')]).toEqual([200, identifiers, '"1"'])
    const created = await writer('POST', `${path}/upsert`, { external_id: 'new' })
    expect([created.status, created.body.data, created.headers.get('location')]).toEqual([
      201,
      { [field]: expect.any(String), external_id: 'new' },
      `${path}/new`,
    ])
  })

  it('receives only the identifiers when it asks for a representation', async () => {
    for (const address of [`${path}/ada`, `${path}/internal/${identifiers[field]}`])
      for (const method of ['PATCH', 'PUT']) {
        await organization.send('PATCH', `${path}/ada`, secret)
        const reply = await writer(method, address, { attribute_values: { city: 'Rome' } }, represent)
        expect([reply.status, reply.body.data, reply.headers.get('preference-applied')]).toEqual([
          200,
          identifiers,
          null,
        ])
        expect(reply.headers.get('etag')).toMatch(/^"\d+"$/)
        expect((await writer(method, address, {})).body.data).toBe(true)
      }
  })

  it('receives only the identifiers from the replay of a response to a reading token of its subject', async () => {
    for (const [method, address, body] of [
      ['POST', `${path}/upsert`, { external_id: 'ada' }],
      ['PATCH', `${path}/ada`, { attribute_values: { city: 'Rome' } }],
    ] as const) {
      const headers = { ...represent, 'Idempotency-Key': 'k' }
      const first = await organization.send(method, address, body, headers)
      expect(first.body.data.attribute_values.secret).toBe('told to nobody')
      const replayed = await writer(method, address, body, headers)
      expect(replayed.headers.get('idempotency-replayed')).toBe('true')
      expect([replayed.status, replayed.body.data, replayed.headers.get('preference-applied')]).toEqual([
        first.status,
        identifiers,
        null,
      ])
      expect((await organization.send(method, address, body, headers)).body).toEqual(first.body)
    }
  })

  it('receives only the identifiers from a batch', async () => {
    const operations = [
      { op: 'upsert', external_id: 'ada', body: {} },
      { op: 'patch', external_id: 'ada', body: {} },
    ]
    const { items } = (await writer('POST', `${path}/batch`, { operations }, represent)).body.data
    expect(items).toEqual([0, 1].map(index => ({ index, status: 200, id: identifiers[field], external_id: 'ada' })))
  })

  it('receives the entity that it sent from a create, also one that completes a placeholder', async () => {
    const attribute = { owner: 'people', key: 'other', type: kind === 'people' ? 'person' : 'stack' }
    await organization.send('POST', '/v1/schema/attributes', {
      ...attribute,
      ...(kind === 'records' && { target_stack: 'orders' }),
    })
    await organization.send('POST', '/v1/people', { attribute_values: { other: 'later' } })
    const sent = { external_id: 'later', attribute_values: { city: 'Rome' } }
    const reply = await writer('POST', path, sent)
    expect([reply.status, reply.body.data.attribute_values]).toEqual([201, { city: 'Rome' }])
    expect((await writer('POST', path, { external_id: 'ada' })).status).toBe(409)
  })
})

it('returns the entity to a token that may read and write', async () => {
  const both = await tokenFor('people:write people:read')
  const made = await both('POST', '/v1/people/upsert', { external_id: 'ada', first_name: 'Ada' })
  expect(made.body.data.first_name).toBe('Ada')
  const patched = await both('PATCH', '/v1/people/ada', { last_name: 'L' }, represent)
  expect([patched.body.data.last_name, patched.headers.get('preference-applied')]).toEqual([
    'L',
    'return=representation',
  ])
})

it('returns a repeated event to a write-only token only if it is equal to the stored one', async () => {
  const writer = await tokenFor('records:write')
  const event = { external_id: 'e', attribute_values: { page: '/' } }
  await organization.send('POST', '/v1/stacks/visits', event)
  const again = await writer('POST', '/v1/stacks/visits', event)
  expect([again.status, again.body.data.attribute_values]).toEqual([200, { page: '/' }])
  expect((await writer('POST', '/v1/stacks/visits', { ...event, attribute_values: {} })).status).toBe(409)
})
