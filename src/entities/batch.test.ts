import { beforeEach, describe, expect, it } from 'vitest'
import { useService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'

const service = useService()
const { send, head } = useShop(service, 'referrer')
beforeEach(() => send('POST', '/v1/people', { external_id: 'ada', first_name: 'Ada' }))

const batch = (operations: unknown[], atomic?: boolean) => send('POST', '/v1/people/batch', { operations, atomic })

describe('a batch', () => {
  it('returns for each operation the status of the same single request', async () => {
    const reply = await batch([
      { op: 'create', body: { external_id: 'bob' } },
      { op: 'create', external_id: 'ada', body: {} },
      { op: 'patch', external_id: 'nobody', body: { first_name: 'x' } },
      { op: 'patch', external_id: 'ada', body: { email: 'not one', attribute_values: { x: 1 } } },
      { op: 'patch', external_id: 'ada', body: { last_name: 'L' }, if_match: '"7"' },
      { op: 'upsert', external_id: 'cy', body: { attribute_values: { referrer: 'dan' } } },
      { op: 'put', external_id: 'bob', body: { first_name: 'Bob' } },
      { op: 'patch', external_id: 'bob', body: {} },
      { op: 'delete', external_id: 'cy' },
    ])
    expect(reply.status).toBe(200)
    expect(reply.body.data.failed).toBe(4)
    const seen = reply.body.data.items.map((item: { status: number; error?: string }) => [item.status, item.error])
    expect(seen).toEqual([
      [201, undefined],
      [409, 'duplicate_entry'],
      [404, 'not_found'],
      [400, 'invalid_parameter'],
      [412, 'invalid_parameter'],
      [201, undefined],
      [200, undefined],
      [200, undefined],
      [200, undefined],
    ])
    expect(reply.body.data.items[3].details).toEqual([
      {
        path: '/operations/3/body/email',
        message: 'must be an email address, such as ada@example.com, without quotes, comments and IP addresses',
      },
    ])
    expect(reply.body.data.items[0]).toEqual({ index: 0, status: 201, id: expect.any(String), external_id: 'bob' })
    expect((await send('GET', '/v1/people/ada')).body.data).toMatchObject({ version: 1, attribute_values: {} })
    expect((await send('GET', '/v1/people/dan')).body.data.state).toBe('placeholder')
  })

  it('accepts internal identifiers as addresses', async () => {
    const { id } = (await send('GET', '/v1/people/ada')).body.data
    const reply = await batch([
      { op: 'patch', id, body: { last_name: 'L' } },
      { op: 'patch', external_id: 'ada', body: { last_name: 'M' } },
    ])
    expect(reply.body.data.items.map((item: { status: number }) => item.status)).toEqual([200, 200])
    expect((await send('GET', '/v1/people/ada')).body.data).toMatchObject({ last_name: 'M', version: 3 })
  })

  it.each([
    [{ op: 'patch', body: {} }, '/operations/0/external_id'],
    [
      { op: 'patch', external_id: 'a', id: '00000000-0000-7000-8000-000000000000', body: {} },
      '/operations/0/external_id',
    ],
    [{ op: 'patch', external_id: 'a' }, '/operations/0/body'],
    [{ op: 'delete', external_id: 'a', body: {} }, '/operations/0/body'],
    [{ op: 'upsert', body: {} }, '/operations/0/external_id'],
    [{ op: 'create', external_id: 'a', body: { external_id: 'b' } }, '/operations/0/external_id'],
    [{ op: 'create', id: '00000000-0000-7000-8000-000000000000', body: {} }, '/operations/0/id'],
    [{ op: 'patch', record_id: '0'.repeat(24), body: {} }, '/operations/0/record_id'],
    [{ op: 'patch', external_id: 'a', if_match: '3', body: {} }, '/operations/0/if_match'],
    [{ op: 'patch', external_id: 'a', if_match: '', body: {} }, '/operations/0/if_match'],
    [{ op: 'patch', external_id: 'a', body: { id: 'x' } }, '/operations/0/body/id'],
    [{ op: 'patch', external_id: 'a', body: { first_name: 1 } }, '/operations/0/body/first_name'],
    [
      { op: 'patch', external_id: 'a', body: { attribute_values: { ['k'.repeat(151)]: 1 } } },
      `/operations/0/body/attribute_values/${'k'.repeat(151)}`,
    ],
  ])('refuses %j at %s and runs the other operations', async (operation, path) => {
    const reply = await batch([operation, { op: 'patch', external_id: 'ada', body: { last_name: 'went on' } }])
    expect(reply.body.data.items[0]).toMatchObject({ index: 0, status: 400, details: [{ path }] })
    expect((await send('GET', '/v1/people/ada')).body.data.last_name).toBe('went on')
  })

  it.each([
    ['"1"', 200],
    ['*', 200],
    ['"7", "1"', 200],
    ['"2"', 412],
    ['"01"', 412],
    ['W/"1"', 412],
    ['"one,two"', 412],
    ['1', 400],
    ['"1" "2"', 400],
  ])('treats if_match %s like the header If-Match: %i', async (if_match, status) => {
    const { items } = (await batch([{ op: 'patch', external_id: 'ada', body: {}, if_match }])).body.data
    const alone = await send('PATCH', '/v1/people/ada', {}, { 'If-Match': if_match })
    expect([items[0].status, alone.status]).toEqual([status, status])
  })

  it.each([
    [{ operations: 'x' }, 'invalid_json', '/operations'],
    [{}, 'invalid_parameter', '/operations'],
    [{ operations: [{ op: 'drop', body: {} }] }, 'invalid_parameter', '/operations/0/op'],
    [{ operations: Array(1_001).fill({ op: 'create', body: {} }) }, 'invalid_parameter', '/operations'],
  ])('is refused as a whole if its body is malformed', async (body, error, path) => {
    const before = await head()
    const reply = await send('POST', '/v1/people/batch', body)
    expect([reply.status, reply.body.error, reply.body.details?.[0]?.path]).toEqual([400, error, path])
    expect(await head()).toBe(before)
  })

  it('may have 1,000 operations and more bytes than a single body', async () => {
    const body = { attribute_values: { text: 'x'.repeat(2_000) } }
    const operations = Array.from({ length: 1_000 }, (_, index) => ({ op: 'create', external_id: `p${index}`, body }))
    const reply = await batch(operations)
    expect([reply.status, reply.body.data.failed]).toEqual([200, 0])
    expect(await head()).toBe(1_002)
  })

  it('allows each operation the depth of a single body', async () => {
    const nest = (levels: number): unknown => (levels === 0 ? 1 : [nest(levels - 1)])
    // The limit is 32 levels; the body and `attribute_values` take two.
    const atLimit = await batch([{ op: 'patch', external_id: 'ada', body: { attribute_values: { deep: nest(30) } } }])
    expect(atLimit.body.data.items[0].status).toBe(200)
    const past = await batch([{ op: 'patch', external_id: 'ada', body: { attribute_values: { deep: nest(31) } } }])
    expect(past.status).toBe(400)
  })
})

describe('an atomic batch', () => {
  it('stores all operations, even ones that depend on each other', async () => {
    const reply = await batch(
      [
        { op: 'create', external_id: 'bob', body: { attribute_values: { referrer: 'cy' } } },
        { op: 'create', external_id: 'cy', body: { first_name: 'Cy' } },
        { op: 'patch', external_id: 'cy', body: { external_id: 'cyrus' } },
        { op: 'patch', external_id: 'cyrus', body: { last_name: 'the Great' } },
      ],
      true,
    )
    expect(reply.body.data.items.map((item: { status: number }) => item.status)).toEqual([201, 201, 200, 200])
    expect((await send('GET', '/v1/people/bob')).body.data.attribute_values).toEqual({ referrer: 'cyrus' })
  })

  it.each([
    [{ op: 'patch', external_id: 'nobody', body: {} }, 404, 'not_found', ['/operations/1']],
    [{ op: 'patch', external_id: 'ada', body: {}, if_match: '"9"' }, 412, 'invalid_parameter', ['/operations/1']],
    [{ op: 'create', external_id: 'ada', body: {} }, 409, 'duplicate_entry', ['/operations/1/body/external_id']],
    [{ op: 'patch', external_id: 'ada', body: { email: 'x' } }, 400, 'invalid_parameter', ['/operations/1/body/email']],
    [
      { op: 'patch', external_id: 'ada', body: { attribute_values: { referrer: {} } } },
      400,
      'invalid_parameter',
      ['/operations/1/body/attribute_values/referrer'],
    ],
  ])(
    'stores nothing and responds with the status of the failing operation %j',
    async (broken, status, error, paths) => {
      const before = await head()
      const fine = { op: 'create', external_id: 'bob', body: { attribute_values: { referrer: 'new' } } }
      const reply = await batch([fine, broken, { op: 'patch', external_id: 'nobody2', body: {} }], true)
      expect([reply.status, reply.body.error, reply.body.details?.map(detail => detail.path)]).toEqual([
        status,
        error,
        paths,
      ])
      expect(await head()).toBe(before)
      expect((await send('GET', '/v1/people/new')).status).toBe(404)
    },
  )
})
