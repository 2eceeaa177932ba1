import { beforeAll, describe, expect, it } from 'vitest'
import { useOwnService } from '../../../test/support/service.ts'
import { useSharedShop } from '../../../test/support/shop.ts'

const service = useOwnService()
const shop = useSharedShop(service, 'orders', 'city', 'buyer')
const { send, ok } = shop
// biome-ignore lint/suspicious/noExplicitAny: tests read any field of an item
const get = async (body: object, owner = 'people'): Promise<any[]> =>
  (await ok('POST', owner === 'people' ? '/v1/people/get' : `/v1/stacks/${owner}/get`, body)).items

let ids: Record<string, string>
beforeAll(async () => {
  for (const external_id of ['ada', 'bob', 'eve'])
    await ok('POST', '/v1/people', { external_id, first_name: external_id, attribute_values: { city: 'Rome' } })
  await ok('POST', '/v1/stacks/orders', { external_id: 'o-1', attribute_values: { total: 10, buyer: 'ada' } })
  const named = await Promise.all(['ada', 'bob', 'eve'].map(name => ok('GET', `/v1/people/${name}`)))
  ids = Object.fromEntries(named.map(({ external_id, id }) => [external_id, id]))
  await ok('POST', '/v1/people/ada/merge', { from: 'eve' })
})

const namesOf = (items: { external_id: string }[]) => items.map(item => item?.external_id ?? null)

describe('the get of many', () => {
  it('returns entities in the order of their identifiers, and null where there is none', async () => {
    const items = await get({ external_ids: ['bob', 'nobody', 'ada', 'bob'] })
    expect(namesOf(items)).toEqual(['bob', null, 'ada', 'bob'])
    expect(items[2]).toEqual(await ok('GET', '/v1/people/ada'))
    expect(
      namesOf(await get({ ids: [ids.ada, '00000000-0000-0000-0000-000000000000', ids.bob!.toUpperCase()] })),
    ).toEqual(['ada', null, 'bob'])
  })

  it('finds a person by a further identifier, also of one who was merged', async () => {
    expect(namesOf(await get({ external_ids: ['eve', 'ada'] }))).toEqual(['ada', 'ada'])
    expect(namesOf(await get({ ids: [ids.eve] }))).toEqual(['ada'])
  })

  it('reads only the named fields, and adds what is included, labels and links by id', async () => {
    const [order, missing] = await get(
      { external_ids: ['o-1', 'o-2'], fields: ['attribute_values.total'], include: ['buyer'] },
      'orders',
    )
    expect([order.attribute_values, order.included.buyer.external_id, missing]).toEqual([{ total: 10 }, 'ada', null])
    const [labeled] = await get({ external_ids: ['o-1'], labels: true, links: 'id' }, 'orders')
    expect([labeled.label, labeled.attribute_values.buyer]).toEqual(['o-1', { id: ids.ada }])
    const [byId] = await get({ ids: [labeled.record_id] }, 'orders')
    expect(byId.external_id).toBe('o-1')
  })

  it('takes 1,000 identifiers, whose entities may be larger than one statement reads', async () => {
    const notes = 'x'.repeat(60_000)
    const externalIds = Array.from({ length: 30 }, (_, index) => `large-${index}`)
    for (const external_id of externalIds) await ok('POST', '/v1/people', { external_id, attribute_values: { notes } })
    const asked = Array.from({ length: 1_000 }, (_, index) => (index < 30 ? externalIds[index]! : `none-${index}`))
    const items = await get({ external_ids: asked })
    expect(namesOf(items)).toEqual(asked.map((name, index) => (index < 30 ? name : null)))
  })

  it.each([
    [{}, ''],
    [{ external_ids: ['ada'], ids: ['00000000-0000-0000-0000-000000000000'] }, ''],
    [{ external_ids: [] }, '/external_ids'],
    [{ external_ids: Array(1_001).fill('ada') }, '/external_ids'],
    [{ ids: ['ada'] }, '/ids/0'],
    [{ external_ids: ['ada'], fields: ['shoe_size'] }, '/fields/0'],
    [{ external_ids: ['ada'], include: ['city'] }, '/include/0'],
  ])('refuses %j at the place of the fault', async (body, path) => {
    const { status, body: refused } = await send('POST', '/v1/people/get', body)
    expect([status, refused.details![0]!.path]).toEqual([400, path])
  })

  it('shows a caller nothing of another organization', async () => {
    const other = await service.organization()
    const items = await other.send('POST', '/v1/people/get', { ids: [ids.ada] })
    expect(items.body.data).toEqual({ items: [null] })
  })
})
