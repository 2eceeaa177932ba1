import { beforeAll, describe, expect, it } from 'vitest'
import { follow } from '../../../test/support/followers.ts'
import { useService } from '../../../test/support/service.ts'
import { createShop, useSharedShop } from '../../../test/support/shop.ts'
import { searchFollower } from '../indexes/search-index.ts'

const service = useService()
const text = (owner: string, key: string, more = {}) => ({ key, owner, type: 'text' as const, ...more })
const definitions = [
  ...(['companies', 'orders', 'visits', 'referrer', 'friends', 'employer', 'bought', 'buyer', 'visitor'] as const),
  text('companies', 'name', { searchable: true }),
  text('orders', 'number'),
  text('orders', 'old'),
  { key: 'order', owner: 'visits', type: 'stack' as const, target_stack: 'orders' },
  { key: 'first', owner: 'people', type: 'person' as const },
]
const shop = useSharedShop(service, ...definitions)
const { send, ok } = shop
const label = (stack: string, template: string | null) => ok('PATCH', `/v1/schema/stacks/${stack}`, { label: template })

beforeAll(async () => {
  await label('companies', '{name}')
  await label('orders', '{number} ({buyer})')
  await label('visits', '{visitor.email} {visitor}: {order}')
  const person = (external_id: string | null, attribute_values: object, more = {}) =>
    ok('POST', '/v1/people', { external_id, attribute_values, ...more })
  await ok('POST', '/v1/stacks/companies', { external_id: 'acme', attribute_values: { name: ' Acme\n Ltd ' } })
  await ok('POST', '/v1/stacks/orders', { external_id: 'o1', attribute_values: { number: '17', buyer: 'ada' } })
  await ok('POST', '/v1/stacks/orders', { external_id: 'o2' })
  await person('bob', {}, { email: 'bob@example.org' })
  await person('carl', {}, { mobile_prefix: '+39', mobile_number: '333 1' })
  const { id } = await person(null, {}, { last_name: 'Nameless' })
  await ok('POST', '/v1/people/upsert', {
    ...{ external_id: 'ada', first_name: 'Ada', last_name: 'Lovelace', email: 'ada@example.org' },
    attribute_values: {
      ...{ referrer: 'bob', employer: 'acme', bought: ['o2', 'o1'] },
      friends: ['carl', 'unborn', { id }, 'gone', 'bob', 'ada'],
    },
  })
  await send('POST', '/v1/people/upsert', { external_id: 'gone', first_name: 'Gone' })
  await send('DELETE', '/v1/people/gone')
  await ok('POST', '/v1/stacks/visits', { external_id: 'v1', attribute_values: { visitor: 'ada', order: 'o1' } })
})

type Item = Record<string, unknown> & { external_id: string; label: string }
type Page = { items: Item[] }
const itemOf = (page: Page, name: string) => page.items.find(({ external_id }) => external_id === name)!
const labeled = (path: string, body: object = {}): Promise<Page> => ok('POST', path, { labels: true, ...body })

const ofAda = {
  referrer: { bob: 'bob@example.org' },
  employer: { acme: 'Acme Ltd' },
  bought: { o2: 'o2', o1: '17 (Ada Lovelace)' },
}

describe('labels: true', () => {
  it('adds the name of each entity, and of each target by its identifier', async () => {
    const page = await labeled('/v1/people/list')
    const { label, relationship_labels, ...whole } = itemOf(page, 'ada')
    expect(label).toBe('Ada Lovelace')
    const { id } = page.items.find(({ label }) => label === 'Nameless') as Item & { id: string }
    expect(relationship_labels).toEqual({
      ...ofAda,
      friends: {
        ...{ carl: '+39 333 1', unborn: 'unborn', [id]: 'Nameless', bob: 'bob@example.org', ada: 'Ada Lovelace' },
      },
    })
    expect(whole).toEqual(await ok('GET', '/v1/people/ada'))
    expect(itemOf(page, 'bob')).toMatchObject({ label: 'bob@example.org', relationship_labels: {} })
    expect(itemOf(page, 'unborn').label).toBe('unborn')
  })

  it('names records by the template of their stack, and those without a value by their identifier', async () => {
    const orders = await labeled('/v1/stacks/orders/list')
    expect(orders.items.map(({ label }) => label).sort()).toEqual(['17 (Ada Lovelace)', 'o2'])
    expect(itemOf(orders, 'o1').relationship_labels).toEqual({ buyer: { ada: 'Ada Lovelace' } })
    const created = await ok('POST', '/v1/stacks/orders', {})
    const read = await ok('GET', `/v1/stacks/orders/internal/${created.record_id}?labels=true`)
    expect(read.label).toBe(created.record_id)
    await ok('DELETE', `/v1/stacks/orders/internal/${created.record_id}`)
  })

  it('follows one relationship: the label of a target within a label follows none', async () => {
    const visit = await ok('GET', '/v1/stacks/visits/v1?labels=true')
    expect(visit.label).toBe('ada@example.org Ada Lovelace: 17')
    expect(visit.relationship_labels).toEqual({ visitor: { ada: 'Ada Lovelace' }, order: { o1: '17 (Ada Lovelace)' } })
  })

  it.each<[string, string, object]>([
    ['filter', '/v1/people/filter', { filter: { external_id: 'ada' } }],
    ['a sorted filter', '/v1/people/filter', { filter: { external_id: 'ada' }, sort: { field: 'email' } }],
    ['a sorted list', '/v1/people/list', { sort: { field: 'external_id' } }],
    ['related', '/v1/stacks/orders/o1/related', { target: 'people' }],
  ])('works with %s', async (_, path, body) => {
    expect(itemOf(await labeled(path, body), 'ada')).toMatchObject({
      label: 'Ada Lovelace',
      relationship_labels: ofAda,
    })
  })

  it('works with search', async () => {
    const body = { text: 'acme', labels: true }
    await send('POST', '/v1/stacks/companies/search', body)
    await follow(service.db, [searchFollower()])
    expect((await ok('POST', '/v1/stacks/companies/search', body)).items).toMatchObject([{ label: 'Acme Ltd' }])
  })

  it('works with a read of one entity, by either identifier, and leaves its version', async () => {
    const plain = await send('GET', '/v1/people/ada')
    const byName = await send('GET', '/v1/people/ada?labels=true')
    expect(byName.body.data).toMatchObject({ ...plain.body.data, label: 'Ada Lovelace', relationship_labels: ofAda })
    expect(byName.headers.get('etag')).toBe(plain.headers.get('etag'))
    const byId = await ok('GET', `/v1/people/internal/${plain.body.data.id}?labels=true`)
    expect(byId).toEqual(byName.body.data)
    expect((await send('GET', '/v1/people/nobody?labels=true')).status).toBe(404)
  })

  it('labels the targets that the page shows or includes, and none besides', async () => {
    const read = async (body: object) => itemOf(await labeled('/v1/people/list', body), 'ada')
    const { employer, bought } = ofAda
    const fields = ['external_id']
    expect(await read({ fields })).toEqual({ external_id: 'ada', label: 'Ada Lovelace', relationship_labels: {} })
    const some = await read({ fields: [...fields, 'attribute_values.bought', 'attribute_values.city'] })
    expect(some.relationship_labels).toEqual({ bought })
    const included = await read({ fields, include: ['employer'] })
    expect(included.relationship_labels).toEqual({ employer })
    expect(Object.keys(included)).toEqual(['external_id', 'label', 'relationship_labels', 'included'])
    expect((await read({ include: ['employer'] })).relationship_labels).toMatchObject(ofAda)
  })

  it('leaves the response as it is without it', async () => {
    const body = { cursor_configuration: { size: 3 } }
    for (const labels of [{}, { labels: false }])
      for (const item of (await ok('POST', '/v1/people/list', { ...body, ...labels })).items)
        expect(Object.keys(item)).not.toContain('label')
    expect(Object.keys(await ok('GET', '/v1/people/ada?labels=false'))).not.toContain('label')
  })

  it.each([
    ['POST', '/v1/people/list', { labels: 'yes' }, '/labels'],
    ['GET', '/v1/people/ada?labels=yes', undefined, '/labels'],
    ['GET', '/v1/people/ada?labels=true&version=1', undefined, '/labels'],
  ])('%s %s with %j is 400', async (method, path, body, where) => {
    const { status, body: refused } = await send(method, path, body)
    expect([status, refused.details?.[0]?.path]).toEqual([400, where])
  })
})

it('a token has only the identifiers of what it may not read, in labels of records too', async () => {
  const records = service.sender(await service.tokenFor(shop.key, 'records:read'))
  const read = (path: string) => records('POST', path, { labels: true })
  const visits = (await read('/v1/stacks/visits/list')).body.data
  expect(visits.items[0]).toMatchObject({
    label: 'ada: 17',
    relationship_labels: { visitor: { ada: 'ada' }, order: { o1: '17 (ada)' } },
  })
  const people = service.sender(await service.tokenFor(shop.key, 'people:read'))
  const page = (await people('POST', '/v1/people/list', { labels: true })).body.data
  expect(itemOf(page, 'ada').relationship_labels).toMatchObject({
    referrer: ofAda.referrer,
    employer: { acme: 'acme' },
    bought: { o1: 'o1', o2: 'o2' },
  })
  for (const secret of ['Lovelace', 'ada@'])
    expect(JSON.stringify(visits.items.concat((await read('/v1/stacks/orders/list')).body.data.items))).not.toContain(
      secret,
    )
})

it('a page that is sent in parts has the labels of all its entities', async () => {
  const own = await createShop(service, 'friends')
  const attribute_values = { long: 'x'.repeat(30_000), friends: ['friend'] }
  const operations = Array.from({ length: 60 }, (_, n) => ({
    op: 'create',
    body: { external_id: `p${n}`, first_name: 'Person', last_name: `${n}`, attribute_values },
  }))
  await own.ok('POST', '/v1/people/batch', { operations })
  const { items } = await own.ok('POST', '/v1/people/list', { labels: true, cursor_configuration: { size: 100 } })
  for (const { external_id, label } of items as Item[])
    expect(label).toBe(external_id === 'friend' ? 'friend' : `Person ${external_id.slice(1)}`)
  expect(items).toHaveLength(61)
})

it('a label of a long list has its first elements', async () => {
  const own = await createShop(service, 'companies', { ...text('companies', 'words'), cardinality: 'many' as const })
  await own.ok('PATCH', '/v1/schema/stacks/companies', { label: '{words}' })
  const words = Array.from({ length: 1_000 }, (_, n) => `w${n}`)
  for (const [external_id, attribute_values] of Object.entries({
    long: { words },
    one: { words: ['w'] },
    none: { words: [] },
  }))
    await own.ok('POST', '/v1/stacks/companies', { external_id, attribute_values })
  const page: Page = await own.ok('POST', '/v1/stacks/companies/list', { labels: true })
  expect(itemOf(page, 'long').label).toBe(words.join(', ').slice(0, 200).trim())
  expect([itemOf(page, 'one').label, itemOf(page, 'none').label]).toEqual(['w', 'none'])
})

it('a label follows its stack: archived attributes show nothing, merged people the name of the other', async () => {
  const own = await createShop(service, ...definitions)
  const read = (path: string) => own.ok('GET', `/v1/stacks/${path}?labels=true`)
  const attribute_values = { number: '1', old: 'old', buyer: 'ada' }
  await own.ok('POST', '/v1/stacks/orders', { external_id: 'o1', attribute_values })
  for (const external_id of ['ada', 'grace'])
    await own.ok('POST', '/v1/people/upsert', { external_id, email: `${external_id}@example.org` })
  await own.ok('PATCH', '/v1/schema/stacks/orders', { label: '{old}, {number}, {buyer}' })
  expect((await read('orders/o1')).label).toBe('old, 1, ada@example.org')
  const { items } = await own.ok('GET', '/v1/schema/attributes')
  const { id } = items.find(({ key }: { key: string }) => key === 'old')
  await own.ok('PATCH', `/v1/schema/attributes/${id}`, { state: 'archived' })
  await own.ok('POST', '/v1/people/grace/merge', { from: 'ada' })
  expect(await read('orders/o1')).toMatchObject({
    label: '1, grace@example.org',
    relationship_labels: { buyer: { grace: 'grace@example.org' } },
  })
  await own.ok('PATCH', '/v1/schema/stacks/orders', { label: null })
  expect((await read('orders/o1')).label).toBe('o1')
  await own.ok('POST', '/v1/people/grace/erase', { reason: 'Request of the person' })
  expect((await read('orders/o1')).relationship_labels).toEqual({})
})
