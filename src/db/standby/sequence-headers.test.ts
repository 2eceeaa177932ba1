import { beforeEach, describe, expect, it } from 'vitest'
import { type Organization, type Reply, useOwnService } from '../../../test/support/service.ts'
import { useShop } from '../../../test/support/shop.ts'

const service = useOwnService({ KITH_WEBHOOK_ALLOW: '127.0.0.0/8' })
const organization = useShop(service, 'orders')
beforeEach(async () => {
  await organization.client.people.create({ external_id: 'ada', first_name: 'Ada' })
  await organization.client.people.create({ external_id: 'bob', email: 'bob@example.org' })
})

const send = (...request: Parameters<Organization['send']>) => organization.send(...request)
const sequenceOf = ({ headers }: Reply) => headers.get('X-Kith-Sequence')
const head = async () => {
  const [row] = await service.sql('select sequence from change_heads where organization_id = $1', [organization.id])
  return `${row!.sequence}`
}

const person = { external_id: 'eve', first_name: 'Eve' }
const url = 'https://127.0.0.1/hook'

type Write = [what: string, method: string, path: string, body?: unknown, headers?: Record<string, string>]
const writes: Write[] = [
  ['a create', 'POST', '/v1/people', person],
  ['a create under a key', 'POST', '/v1/people', person, { 'Idempotency-Key': 'a key' }],
  ['an upsert that merges', 'POST', '/v1/people/upsert', { external_id: 'ada', language: 'en' }],
  ['a PUT', 'PUT', '/v1/people/ada', { first_name: 'Augusta' }],
  ['a PATCH', 'PATCH', '/v1/people/ada', { first_name: 'Augusta' }],
  ['a PATCH with its representation', 'PATCH', '/v1/people/ada', person, { Prefer: 'return=representation' }],
  ['a PATCH of a record', 'PATCH', '/v1/stacks/orders/o-1', { attribute_values: { total: 1 } }],
  ['a deletion', 'DELETE', '/v1/people/ada'],
  ['a record', 'POST', '/v1/stacks/orders', { external_id: 'o-2' }],
  [
    'a batch',
    'POST',
    '/v1/people/batch',
    {
      operations: [
        { op: 'create', body: person },
        { op: 'delete', external_id: 'ada' },
      ],
    },
  ],
  ['an atomic batch', 'POST', '/v1/people/batch', { operations: [{ op: 'create', body: person }], atomic: true }],
  [
    'a batch of 300',
    'POST',
    '/v1/people/batch',
    { operations: Array.from({ length: 300 }, () => ({ op: 'create', body: {} })) },
  ],
  ['a merge', 'POST', '/v1/people/ada/merge', { from: 'bob' }],
  ['an erasure', 'POST', '/v1/people/ada/erase', { reason: 'request' }],
  ['a stack', 'POST', '/v1/schema/stacks', { key: 'visits', kind: 'event' }],
  ['an attribute', 'POST', '/v1/schema/attributes', { key: 'total', owner: 'orders', type: 'number' }],
  [
    'a consent type',
    'POST',
    '/v1/schema/consent-types',
    { key: 'news', name: 'News', channels: [{ channel: 'email' }] },
  ],
  ['settings', 'PATCH', '/v1/schema/settings', { display_name: 'Shop' }],
  ['a segment', 'POST', '/v1/segments', { key: 'all', name: 'All', filter: { state: 'active' } }],
  ['a webhook', 'POST', '/v1/webhooks', { url, events: ['person.created'] }],
]

describe('X-Kith-Sequence', () => {
  it.each(writes)(
    'is the number of the newest change in the response to %s',
    async (_, method, path, body, headers) => {
      if (path.endsWith('/o-1')) await send('POST', '/v1/stacks/orders', { external_id: 'o-1' })
      const before = Number(await head())
      const reply = await send(method, path, body, headers)
      expect(reply.status, JSON.stringify(reply.body)).toBeLessThan(300)
      expect(Number(await head())).toBeGreaterThan(before)
      expect(sequenceOf(reply)).toBe(await head())
    },
  )

  it('is also in responses to writes that change nothing', async () => {
    await send('PATCH', '/v1/schema/settings', { display_name: 'Shop' })
    const newest = await head()
    for (const [method, path, body] of [
      ['PATCH', '/v1/people/ada', { first_name: 'Ada' }],
      ['PATCH', '/v1/schema/stacks/orders', {}],
      ['PATCH', '/v1/schema/settings', { display_name: 'Shop' }],
    ] as const)
      expect([path, sequenceOf(await send(method, path, body))]).toEqual([path, newest])
    expect(await head()).toBe(newest)
  })

  it('is in the replay of a response what it was in the first one', async () => {
    const key = { 'Idempotency-Key': 'a key' }
    const first = await send('POST', '/v1/people', person, key)
    await send('PATCH', '/v1/people/ada', { first_name: 'Augusta' })
    const replay = await send('POST', '/v1/people', person, key)
    expect(replay.headers.get('Idempotency-Replayed')).toBe('true')
    expect(sequenceOf(replay)).toBe(sequenceOf(first))
  })

  it('is absent from reads, dry runs and refusals', async () => {
    expect(sequenceOf(await send('GET', '/v1/people/ada'))).toBeNull()
    expect(sequenceOf(await send('PATCH', '/v1/people/ada?dry_run=true', { first_name: 'A' }))).toBeNull()
    expect(sequenceOf(await send('PATCH', '/v1/people/ada', { birthday: 'no' }))).toBeNull()
    expect(sequenceOf(await send('POST', '/v1/people', { external_id: 'ada' }))).toBeNull()
  })

  it('never is behind its own write, next to other writes of the organization', async () => {
    const replies = await Promise.all(
      Array.from({ length: 60 }, (_, index) => send('POST', '/v1/people', { external_id: `p-${index}` })),
    )
    for (const reply of replies) {
      const rows = await service.sql('select sequence from changes where organization_id = $1 and entity_id = $2', [
        organization.id,
        reply.body.data.id,
      ])
      expect(Number(sequenceOf(reply))).toBeGreaterThanOrEqual(Number(rows[0]!.sequence))
    }
  })
})

describe('If-Sequence on a primary', () => {
  const read = (sequence: string, path = '/v1/people/ada') => send('GET', path, undefined, { 'If-Sequence': sequence })

  it('is answered at once for a change that was made', async () => {
    const written = await send('PATCH', '/v1/people/ada', { first_name: 'Augusta' })
    expect((await read(sequenceOf(written)!)).body.data.first_name).toBe('Augusta')
    expect((await read('0')).status).toBe(200)
    const listed = await send('POST', '/v1/people/list', {}, { 'If-Sequence': sequenceOf(written)! })
    expect(listed.body.data.items).toHaveLength(2)
  })

  it('is 503 for a change that the organization does not have, also if another one has it', async () => {
    const foreign = await service.organization()
    await foreign.client.people.batch(Array.from({ length: 50 }, () => ({ op: 'create', body: {} })))
    const newest = Number(await head())
    for (const sequence of [newest + 1, 50, Number.MAX_SAFE_INTEGER]) {
      const { status, headers, body } = await read(`${sequence}`)
      expect([status, headers.get('Retry-After'), body.error]).toEqual([503, '1', 'operation_failed'])
      const message = `the newest change of the organization is ${newest} here`
      expect(body.details).toEqual([{ path: '/If-Sequence', message }])
    }
  })

  it.each(['', '-1', '1.5', '1e3', '0x10', 'one', '1, 2', '9007199254740993', '99999999999999999999'])(
    'is 400 for %j',
    async sequence => {
      const { status, body } = await read(sequence)
      expect([status, body.error, body.details![0]!.path]).toEqual([400, 'invalid_parameter', '/If-Sequence'])
    },
  )

  it('is ignored by a write', async () => {
    const headers = { 'If-Sequence': '9007199254740991' }
    expect((await send('PATCH', '/v1/people/ada', { first_name: 'A' }, headers)).status).toBe(200)
  })
})
