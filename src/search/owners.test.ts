import { describe, expect, it } from 'vitest'
import { follow } from '../../test/support/followers.ts'
import { type Send, useOwnService } from '../../test/support/service.ts'
import { type Shop, useShop } from '../../test/support/shop.ts'
import { searchFollower } from '../entities/indexes/search-index.ts'

const service = useOwnService()
const note = { key: 'note', owner: 'orders', type: 'text', searchable: true } as const
const shop = useShop(service, 'companies', 'orders', note)

const index = () => follow(service.db, [searchFollower({ entitiesPerBatch: 3 })])
type Hit = { owner: string; entity: { external_id: string } }
const hitsIn = async (body: object, { ok }: Pick<Shop, 'ok'> = shop): Promise<string[]> =>
  (await ok('POST', '/v1/search', body)).items.map(({ owner, entity }: Hit) => `${owner} ${entity.external_id}`)
const refusalOf = async (body: object, send: Send = shop.send) => {
  const { status, body: answer } = await send('POST', '/v1/search', body)
  return [status, ...(answer.details ?? []).map(({ path, message }) => `${path} ${message}`)]
}
const order = (external_id: string, note = '') =>
  shop.ok('POST', '/v1/stacks/orders', { external_id, attribute_values: { note } })
const person = (external_id: string, first_name: string | null = null) =>
  shop.ok('POST', '/v1/people', { external_id, first_name })
const all = ['people', 'orders', 'companies']

describe('a search of people and records', () => {
  it('finds an order by its number beside people when it is asked to, each hit with its owner', async () => {
    const ada = await person('ada', 'Ada')
    await person('o-17-fan')
    const found = await order('o-17')
    await index()
    const { items, ...rest } = await shop.ok('POST', '/v1/search', { text: 'o-17', owners: ['people', 'orders'] })
    expect(items[0]).toEqual({ owner: 'orders', entity: found })
    expect([items.length, items[1].owner]).toEqual([2, 'people'])
    expect(rest).toEqual({
      has_more: false,
      next_cursor: null,
      sequence: expect.any(Number),
      owners: ['people', 'orders'],
    })
    expect(await hitsIn({ text: 'o-17' })).toEqual(['people o-17-fan'])
    expect((await shop.ok('POST', '/v1/search', { text: 'ada' })).items).toEqual([{ owner: 'people', entity: ada }])
    expect(await hitsIn({ text: 'o-17', owners: ['orders'] })).toEqual(['orders o-17'])
  })

  it('lists hits by rank, and those of one rank in the order of the owners', async () => {
    await order('1', 'Martin')
    await order('2', 'Martinez')
    await order('3', 'Martim')
    await person('p1', 'Martin')
    await person('p2', 'Martinez')
    await person('p3', 'Martim')
    await index()
    const ranked = ['1', '2', '3'].flatMap(n => [`people p${n}`, `orders ${n}`])
    expect(await hitsIn({ text: 'martin', owners: ['people', 'orders'] })).toEqual(ranked)
    const reversed = ['1', '2', '3'].flatMap(n => [`orders ${n}`, `people p${n}`])
    expect(await hitsIn({ text: 'martin', owners: ['orders', 'people'] })).toEqual(reversed)
    // The text is the identifier of an order, so the search looks for no misspellings.
    await order('martin')
    await index()
    const unspoilt = ['orders martin', 'people p1', 'orders 1', 'people p2', 'orders 2']
    expect(await hitsIn({ text: 'martin', owners: ['people', 'orders'] })).toEqual(unspoilt)
  })

  it('returns each hit once over all pages, in the same order, whatever their size', async () => {
    const names = ['Anna', 'Anne', 'Annabel', 'Ana', 'Hanna', 'Anna Maria']
    for (let n = 0; n < 12; n += 1) {
      await person(`p${n}`, names[n % names.length])
      await order(`o${n}`, names[n % names.length])
    }
    await index()
    for (const owners of [all, ['orders', 'people']])
      for (const text of ['ann', 'anan', 'anna']) {
        const whole = await hitsIn({ text, owners, size: 100 })
        expect(new Set(whole.map(hit => hit.split(' ')[0]))).toEqual(new Set(['people', 'orders']))
        for (const size of [1, 3, 7]) {
          const paged: string[] = []
          let cursor: string | null | undefined
          do {
            const data = await shop.ok('POST', '/v1/search', { text, owners, size, ...(cursor && { cursor }) })
            paged.push(...data.items.map(({ owner, entity }: Hit) => `${owner} ${entity.external_id}`))
            cursor = data.next_cursor
          } while (cursor !== null && paged.length < 100)
          expect([text, size, paged]).toEqual([text, size, whole])
        }
      }
  })

  it('finds records of a stack without a searchable attribute by their external identifier, without an index', async () => {
    await shop.ok('POST', '/v1/stacks/companies', { external_id: 'acme-1' })
    expect(await hitsIn({ text: 'acme-1', owners: ['companies'] })).toEqual(['companies acme-1'])
    expect(await service.sql('select from search_indexes where organization_id = $1', [shop.id])).toEqual([])
    await person('acme-2', 'Acme')
    await index()
    expect(await hitsIn({ text: 'acme-1', owners: all })).toEqual(['companies acme-1'])
    expect(await hitsIn({ text: 'acme', owners: all })).toEqual(['people acme-2'])
  })

  it('looks at all that the token may search if it is asked to, and says where it looked', async () => {
    await person('ada')
    await order('ada')
    await shop.ok('POST', '/v1/stacks/companies', { external_id: 'ada' })
    await index()
    const everywhere = { text: 'ada', owners: ['*'] }
    expect(await hitsIn(everywhere)).toEqual(['people ada', 'orders ada', 'companies ada'])
    const searchedBy = async (scope: string) => {
      const send = service.sender(await service.tokenFor(shop.key, scope))
      return (await send('POST', '/v1/search', everywhere)).body.data.owners
    }
    expect(await searchedBy('people:read records:read')).toEqual(all)
    expect(await searchedBy('people:read')).toEqual(['people'])
    for (let n = 0; n < 9; n += 1) await shop.ok('POST', '/v1/schema/stacks', { key: `stack_${n}`, kind: 'item' })
    expect(await searchedBy('people:read records:read')).toHaveLength(10)
  })

  it('is refused for every owner at once if the role closes a field of each', async () => {
    await shop.ok('POST', '/v1/roles', {
      key: 'desk',
      scopes: ['people:read'],
      fields: { people: { read: ['first_name'] } },
    })
    const request = { scopes: ['people:read'], name: 'desk', expires_in: 60, role: 'desk' }
    const send = service.sender((await shop.ok('POST', '/v1/tokens', request)).token)
    const closed = '/owners/0 names a field that the role of the caller cannot read'
    for (const owners of [['*'], ['people']])
      expect(await refusalOf({ text: 'x', owners }, send)).toEqual([403, closed])
  })

  it('needs the read scope of each owner', async () => {
    const sender = async (scope: string) => service.sender(await service.tokenFor(shop.key, scope))
    const people = await sender('people:read')
    expect(await refusalOf({ text: 'x', owners: ['people', 'orders'] }, people)).toEqual([403])
    // The refusal does not reveal whether a stack exists.
    expect(await refusalOf({ text: 'x', owners: ['none'] }, people)).toEqual([403])
    expect(await refusalOf({ text: '…', owners: ['people'] }, people)).toEqual([200])
    expect(await refusalOf({ text: '…' }, people)).toEqual([200])
    expect(await refusalOf({ text: 'x', owners: ['orders'] }, await sender('records:read'))).toEqual([403])
    expect(await refusalOf({ text: '…', owners: all }, await sender('people:read records:read'))).toEqual([200])
  })

  it.each<[string, object, string]>([
    ['an unknown owner', { owners: ['people', 'none'] }, '/owners/1 must be `people` or the key of a stack'],
    ['an owner twice', { owners: ['orders', 'people', 'orders'] }, '/owners/2 occurs twice'],
    ['no owner', { owners: [] }, '/owners must have at least 1 element'],
    ['eleven owners', { owners: Array.from({ length: 11 }, () => 'people') }, '/owners must have at most 10 elements'],
    ['nine words', { text: 'a b c d e f g h i' }, '/text must have at most 8 words'],
    ['NUL', { text: '\0' }, '/text must not contain NUL'],
    ['a cursor that is none', { cursor: 'x' }, '/cursor must be the next_cursor of a page with the same text'],
  ])('refuses %s with its path', async (_, body, detail) => {
    expect(await refusalOf({ text: 'x', ...body })).toEqual([400, detail])
  })

  it('refuses the cursor of other owners, and of the search of people', async () => {
    for (const external_id of ['a1', 'a2']) await person(external_id, 'Ada')
    await index()
    const { next_cursor } = await shop.ok('POST', '/v1/search', { text: 'ada', size: 1 })
    for (const owners of [['orders'], ['people', 'orders']])
      expect((await refusalOf({ text: 'ada', owners, cursor: next_cursor }))[0]).toBe(400)
    expect(await hitsIn({ text: 'ada', cursor: next_cursor })).toEqual(['people a2'])
  })

  it('has no result for a text without a letter or digit', async () => {
    for (const text of ['', '  ', '…', '😀 😀', '\u202e', '. '.repeat(900)])
      expect(await hitsIn({ text, owners: all })).toEqual([])
  })

  it('answers 503 while the words of an owner are being indexed', async () => {
    await person('ada', 'Ada')
    await order('o-1')
    await index()
    await service.sql('update search_indexes set is_ready = false where organization_id = $1 and stack_id > 0', [
      shop.id,
    ])
    expect(await hitsIn({ text: 'ada' })).toEqual(['people ada'])
    const { status, headers } = await shop.send('POST', '/v1/search', { text: 'ada', owners: all })
    expect([status, headers.get('Retry-After')]).toEqual([503, '2'])
  })

  it('leaves out deleted entities, and fills the page with the next ones', async () => {
    for (const n of [1, 2, 3, 4]) await order(`o-${n}`, 'Kettle')
    await person('p-1', 'Kettle')
    await index()
    for (const n of [1, 2, 3]) await shop.ok('DELETE', `/v1/stacks/orders/o-${n}`)
    const owners = ['orders', 'people']
    expect(await hitsIn({ text: 'kettle', owners, size: 1 })).toEqual(['orders o-4'])
    expect(await hitsIn({ text: 'kettle', owners, size: 2 })).toEqual(['orders o-4', 'people p-1'])
  })

  it('ends a page of large entities early, and goes on at its cursor', async () => {
    const large = Object.fromEntries(['a', 'b', 'c', 'd', 'e', 'f', 'g'].map(key => [key, 'x'.repeat(60_000)]))
    for (const n of [1, 2, 3, 4, 5])
      await shop.ok('POST', '/v1/stacks/orders', {
        external_id: `o-${n}`,
        attribute_values: { ...large, note: 'Kettle' },
      })
    await person('p-1', 'Kettle')
    await index()
    const request = { text: 'kettle', owners: ['orders', 'people'] }
    const first = await shop.ok('POST', '/v1/search', request)
    expect([first.items.length, first.has_more]).toEqual([3, true])
    const rest = await hitsIn({ ...request, cursor: first.next_cursor })
    expect(rest).toEqual(['orders o-4', 'orders o-5', 'people p-1'])
  })

  it('finds nothing of another organization', async () => {
    await person('ada', 'Ada')
    await order('o-17')
    const other = await service.organization()
    await other.send('POST', '/v1/people', { external_id: 'grace' })
    await index()
    for (const text of ['ada', 'o-17', 'adda']) {
      const { data } = (await other.send('POST', '/v1/search', { text })).body
      expect([text, data.items]).toEqual([text, []])
    }
    expect(await refusalOf({ text: 'ada', owners: ['orders'] }, other.send)).toEqual([
      400,
      '/owners/0 must be `people` or the key of a stack',
    ])
  })
})
