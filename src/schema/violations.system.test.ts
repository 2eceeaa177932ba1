import { describe, expect, it } from 'vitest'
import { type Reply, useOwnService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'
import { backfillIndexes } from '../entities/indexes/index-backfill.ts'

const service = useOwnService()
const organization = useShop(service, 'orders')
const { send } = organization

const attributesPath = '/v1/schema/attributes'
const declare = async (body: object): Promise<number> =>
  (await send('POST', attributesPath, { key: 'a', owner: 'people', ...body })).body.data.id
const store = (values: Record<string, unknown>, path = '/v1/people') =>
  send('POST', `${path}/batch`, {
    operations: Object.entries(values).map(([external_id, a]) => ({
      op: 'create',
      body: { external_id, attribute_values: { a } },
    })),
  })
const list = (id: number, query = '') => send('GET', `${attributesPath}/${id}/violations${query}`)
const shown = async (id: number, query = '') =>
  Object.fromEntries(
    (await list(id, query)).body.data.items.map((item: { external_id: string; rules: string[] }) => [
      item.external_id,
      item.rules,
    ]),
  )

describe('the violations of an attribute', () => {
  it('name each entity whose stored value stands against a rule, and the rules', async () => {
    await store({ fits: 'ab', type: 5, enum: 'xy', both: 'toolong', none: null })
    const id = await declare({ type: 'text', required: true, enum: ['ab', 'toolong', 'x'], pattern: '^..$' })
    expect(await shown(id)).toEqual({ type: ['type'], enum: ['enum'], both: ['pattern'], none: ['required'] })
    expect(await shown(id, '?rule=required')).toEqual({ none: ['required'] })
    expect(await shown(id, '?rule=type')).toEqual({ type: ['type'] })
    const { items, has_more, next_after_id } = (await list(id)).body.data
    expect([has_more, next_after_id]).toEqual([false, null])
    expect(items[0]).toEqual({ id: expect.any(String), external_id: expect.any(String), rules: expect.any(Array) })
  })

  it('end a page early where a pattern takes long, and report no value that was not compared', async () => {
    let seed = 7
    const letters = (count: number) =>
      Array.from({ length: count }, () => {
        seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
        return seed > 2 ** 30 ? 'a' : 'b'
      }).join('')
    // The pattern has too many states to cache, so each text takes some 50 ms.
    const slow = (end: string) => `${letters(3_500)}a${letters(400)}${end}`
    const values = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`p${n}`, slow(n % 10 === 9 ? 'd' : 'c')]))
    await store(values)
    const id = await declare({ type: 'text' })
    const pattern = encodeURIComponent('[ab]*a[ab]{400}c')
    const found: string[] = []
    let after = ''
    do {
      const { body } = await list(id, `?pattern=${pattern}${after}`)
      found.push(...body.data.items.map(({ external_id }: { external_id: string }) => external_id))
      after = body.data.next_after_id === null ? '' : `&after_id=${body.data.next_after_id}`
    } while (after !== '')
    expect(found.sort()).toEqual(['p19', 'p29', 'p9'])
  })

  it('are of the type exactly where a write refuses the value and a declaration counts it as a misfit', async () => {
    const values = { empty: [], text: 'x', number: 1, list: ['x'], truth: true, none: null }
    for (const type of ['text', 'number', 'boolean', 'date', 'datetime', 'json'])
      for (const cardinality of ['one', 'many']) {
        await organization.renew()
        await store(values)
        const declared = { owner: 'people', key: 'a', type, cardinality }
        const { data } = (await send('PUT', '/v1/schema/observed/declare', { ...declared, dry_run: true })).body
        const id = await declare(declared)
        const refused: string[] = []
        for (const [name, value] of Object.entries(values)) {
          const written = await send('POST', '/v1/people', { attribute_values: { a: value } })
          if (written.status === 400) refused.push(name)
          else await send('DELETE', `/v1/people/internal/${written.body.data.id}`)
        }
        expect([type, cardinality, await shown(id)]).toEqual([
          type,
          cardinality,
          Object.fromEntries(refused.map(name => [name, ['type']])),
        ])
        expect([type, cardinality, data.misfits]).toEqual([type, cardinality, refused.length])
      }
  })

  it('of a required attribute with one value are of both rules for an empty list', async () => {
    await store({ empty: [], none: null })
    const id = await declare({ type: 'text', required: true, pattern: '^x' })
    expect(await shown(id)).toEqual({ empty: ['type', 'required'], none: ['required'] })
    expect(await shown(id, '?rule=type')).toEqual({ empty: ['type'] })
  })

  it('of records have a record_id, and lists are checked element by element', async () => {
    await store({ fits: [1, 2], high: [1, 12], none: [] }, '/v1/stacks/orders')
    const id = await declare({ owner: 'orders', type: 'number', cardinality: 'many', maximum: 10, required: true })
    expect(await shown(id)).toEqual({ high: ['maximum'], none: ['required'] })
    expect((await list(id)).body.data.items[0].record_id).toMatch(/^[\da-f]{24}$/)
  })

  it('of a required relationship are the entities without a link, and not the placeholders', async () => {
    const id = await declare({ type: 'person' })
    await store({ linked: 'unknown', none: null })
    await send('PATCH', `${attributesPath}/${id}`, { required: true })
    expect(await shown(id)).toEqual({ none: ['required'] })
  })

  it('of a unique attribute are the entities that share a value, also before it is unique', async () => {
    await store({ a: 'x', b: 'x', c: 'y', d: 'y'.repeat(100), e: `${'y'.repeat(100)}z` })
    const id = await declare({ type: 'text', indexed: true })
    expect((await list(id, '?rule=unique')).status).toBe(409)
    await backfillIndexes(service.db)
    expect(await shown(id, '?rule=unique')).toEqual({ a: ['unique'], b: ['unique'] })
    expect(await shown(id)).toEqual({})
  })

  it('are found by a rule that the attribute does not have yet, and the attribute stays as it is', async () => {
    await store({ low: 5, high: 12, none: null }, '/v1/stacks/orders')
    const id = await declare({ owner: 'orders', type: 'number', maximum: 10 })
    expect(await shown(id, '?minimum=10')).toEqual({ low: ['minimum'] })
    expect(await shown(id, '?enum=5&enum=7')).toEqual({ high: ['enum'] })
    expect(await shown(id, '?required=true&maximum=20')).toEqual({ none: ['required'] })
    expect(await shown(id)).toEqual({ high: ['maximum'] })
    for (const [query, path] of [
      ['?minimum=x', '/minimum'],
      ['?pattern=a', '/pattern'],
      ['?enum=5&enum=x', '/enum/1'],
      ['?minimum=5&maximum=4', '/minimum'],
      ['?required=perhaps', '/required'],
    ] as const) {
      const reply = await list(id, query)
      expect([reply.status, reply.body.details?.[0]?.path]).toEqual([400, path])
    }
  })

  it('come in pages in the order of the identifiers, each once', async () => {
    await store(Object.fromEntries(Array.from({ length: 250 }, (_, n) => [`p${n}`, n])))
    const id = await declare({ type: 'number', maximum: 100 })
    const ids: string[] = []
    let after: string | null = ''
    while (after !== null) {
      const reply: Reply = await list(id, `?size=40${after && `&after_id=${after}`}`)
      const { items, has_more, next_after_id } = reply.body.data
      expect(items.length).toBeLessThanOrEqual(40)
      expect(has_more).toBe(next_after_id !== null)
      ids.push(...items.map((item: { id: string }) => item.id))
      after = next_after_id
    }
    expect(ids).toEqual([...new Set(ids)].sort())
    expect(ids).toHaveLength(149)
  })

  it('follow the writes: a corrected value is none any more', async () => {
    await store({ ada: 5 })
    const id = await declare({ type: 'number', maximum: 3 })
    expect(await shown(id)).toEqual({ ada: ['maximum'] })
    await send('PATCH', '/v1/people/ada', { attribute_values: { a: 3 } })
    expect(await shown(id)).toEqual({})
  })
})

describe('a request for violations', () => {
  it.each([
    ['?rule=minimum', 400, '/rule'],
    ['?rule=other', 400, '/rule'],
    ['?size=0', 400, '/size'],
    ['?size=501', 400, '/size'],
    ['?after_id=x', 400, '/after_id'],
    ['?after_id=ffffffffffffffffffffffff', 400, '/after_id'],
    ['?unknown=1', 400, '/unknown'],
  ])('with %s is refused with %i at %s', async (query, status, path) => {
    const id = await declare({ type: 'number', maximum: 3 })
    const reply = await list(id, query)
    expect([reply.status, reply.body.details?.map(detail => detail.path)]).toEqual([status, [path]])
  })

  it('of an attribute that does not exist is 404, and of an archived one 400', async () => {
    expect((await list(7)).status).toBe(404)
    const id = await declare({ type: 'number' })
    await send('PATCH', `${attributesPath}/${id}`, { state: 'archived' })
    expect((await list(id)).status).toBe(400)
  })

  it('needs schema:read and the scope that reads the owner', async () => {
    const people = await declare({ type: 'number' })
    const orders = await declare({ type: 'number', owner: 'orders' })
    const statuses = async (scope: string) => {
      const reader = service.sender(await service.tokenFor(organization.key, scope))
      const replies = [people, orders].map(id => reader('GET', `${attributesPath}/${id}/violations`))
      return (await Promise.all(replies)).map(({ status }) => status)
    }
    expect(await statuses('schema:read')).toEqual([403, 403])
    expect(await statuses('people:read records:read')).toEqual([403, 403])
    expect(await statuses('schema:read people:read')).toEqual([200, 403])
    expect(await statuses('schema:read records:read')).toEqual([403, 200])
  })
})
