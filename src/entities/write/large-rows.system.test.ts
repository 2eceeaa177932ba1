import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readFeed } from '../../../test/support/changes.ts'
import { someRuns } from '../../../test/support/runs.ts'
import { useOwnService } from '../../../test/support/service.ts'
import { useShop } from '../../../test/support/shop.ts'

// A set reads the values of large rows in part. They must not differ from small ones in any response.

const service = useOwnService({ KITH_LIMIT_ENTITY_KEYS: '150', KITH_LIMIT_ENTITY_BYTES: '200000' })
const shop = useShop(service, 'friends', 'city', 'score', {
  ...{ key: 'code', owner: 'people', type: 'text', indexed: true, unique: true },
})

const filler = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`filler${n}`, 'x'.repeat(40)]))
const create = (external_id: string, attribute_values: object) =>
  shop.ok('POST', '/v1/people', { external_id, attribute_values })
const patch = (attribute_values: object, name = 'large') =>
  shop.send('PATCH', `/v1/people/${name}`, { attribute_values })
const valuesOf = async (name: string) => (await shop.ok('GET', `/v1/people/${name}`)).attribute_values

const key = fc.constantFrom('a', 'b', '', '__proto__', 'toString', 'city', 'score', 'code', 'friends')
const value = fc.oneof(
  fc.constantFrom(null, 'x', 'y', 1, 2.5, 1e-300, true, { a: 1 }, { a: 2, b: null }, [], ['x', null], 'bo'),
  fc.double({ noDefaultInfinity: true, noNaN: true }),
)
const body = fc.array(fc.tuple(key, value), { maxLength: 3 }).map(entries => ({
  attribute_values: Object.fromEntries(entries.filter(([name]) => name !== '__proto__')),
  ...(entries.length === 0 && { first_name: 'Ada' }),
}))
const operation = fc.record({
  op: fc.constantFrom('patch', 'patch', 'patch', 'upsert'),
  body,
})

describe('a person with many values', () => {
  it('has the responses, the values and the log of a person with few', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(operation, { minLength: 1, maxLength: 4 }), { maxLength: 5 }),
        async batches => {
          const told = []
          for (const values of [{}, filler]) {
            await shop.renew('friends', 'city', 'score', {
              ...{ key: 'code', owner: 'people', type: 'text', indexed: true, unique: true },
            })
            await create('ada', { a: 'x', city: 'Rome', ...values })
            await create('other', { code: 'y' })
            const before = await shop.head()
            const replies = []
            for (const operations of batches) {
              const sent = operations.map(each => ({ external_id: 'ada', ...each }))
              const { status, body } = await shop.send('POST', '/v1/people/batch', { operations: sent })
              const items = body.data?.items.map((item: object) => ({ ...item, id: '' }))
              replies.push([status, items, body.details])
            }
            const { items } = await readFeed(shop, `after=${before}`)
            const logged = items.map(({ before, after, operation, version }) => ({ before, after, operation, version }))
            const own = Object.entries(await valuesOf('ada')).filter(([name]) => !name.startsWith('filler'))
            const found = await shop.ok('POST', '/v1/people/filter', { filter: { 'attribute_values.city': 'x' } })
            told.push({ replies, logged, own: Object.fromEntries(own), found: found.items.length })
          }
          expect(told[1]).toEqual(told[0])
        },
      ),
      someRuns(40),
    )
  })

  it('keeps the other values, and the log has only those that change', async () => {
    await create('large', filler)
    const before = await shop.head()
    await patch({ filler7: 'new', added: [1], filler8: null })
    await patch({ filler7: 'newer' })
    await patch({ filler9: filler.filler9 })
    const { filler8, ...rest } = filler
    expect(await valuesOf('large')).toEqual({ ...rest, filler7: 'newer', added: [1] })
    const { items } = await readFeed(shop, `after=${before}`)
    expect(items.map(({ before, after }) => [before, after])).toEqual([
      [
        { attribute_values: { filler7: filler.filler7, filler8, added: null } },
        { attribute_values: { filler7: 'new', filler8: null, added: [1] } },
      ],
      [{ attribute_values: { filler7: 'new' } }, { attribute_values: { filler7: 'newer' } }],
    ])
  })

  it('has at most as many values as the limit', async () => {
    await create('large', filler)
    const more = (count: number, prefix: string) =>
      Object.fromEntries(Array.from({ length: count }, (_, n) => [`${prefix}${n}`, 'y']))
    expect((await patch(more(49, 'm'))).status).toBe(200)
    expect((await patch({ last: 1 })).status).toBe(200)
    const refused = await patch({ beyond: 1 })
    expect([refused.status, refused.body.details?.[0]?.message]).toEqual([
      400,
      expect.stringContaining('more than 150'),
    ])
    expect((await patch({ last: 2 })).status).toBe(200)
    expect((await patch({ beyond: 1, last: null })).status).toBe(200)
  })

  it('has at most as many bytes as the limit', async () => {
    await create('large', { ...filler, long: 'x'.repeat(60_000) })
    expect((await patch({ longer: 'y'.repeat(60_000) })).status).toBe(200)
    expect((await patch({ longest: 'z'.repeat(60_000) })).status).toBe(200)
    const refused = await patch({ beyond: '0'.repeat(60_000) })
    expect([refused.status, refused.body.details?.[0]?.message]).toEqual([400, expect.stringContaining('larger than')])
    expect((await patch({ long: 'short' })).status).toBe(200)
  })

  it('is replaced, deleted and restored whole', async () => {
    await create('large', filler)
    await patch({ filler1: 'new' })
    const { id } = await shop.ok('GET', '/v1/people/large')
    await shop.ok('DELETE', '/v1/people/large')
    await shop.ok('POST', `/v1/people/internal/${id}/restore`)
    expect(await valuesOf('large')).toEqual({ ...filler, filler1: 'new' })
    await shop.ok('PUT', '/v1/people/large', { attribute_values: { a: 1 } })
    expect(await valuesOf('large')).toEqual({ a: 1 })
  })
})
