import { beforeEach, describe, expect, it } from 'vitest'
import { writable } from '../../../client/index.ts'
import { useService } from '../../../test/support/service.ts'
import { useShop } from '../../../test/support/shop.ts'

const service = useService()
const shop = useShop(service, 'referrer', 'friends', 'bought', 'buyer')

type Reference = { id: string } | { record_id: string }
let [ann, bob, order]: Reference[] = []

/** Creates the people ann, bob (without a name) and cid, and the order o1 that ann bought. */
beforeEach(async () => {
  const { client } = shop
  ann = { id: (await client.people.create({ external_id: 'ann' })).id }
  const nameless = await client.people.create({ first_name: 'Bob' })
  bob = { id: nameless.id }
  const bought = await client.stack('orders').create({ external_id: 'o1', attribute_values: { buyer: 'ann' } })
  order = { record_id: bought.record_id }
  await client.people.create({
    external_id: 'cid',
    attribute_values: { friends: ['ann', bob], referrer: 'ann', bought: ['o1'], city: 'Paris' },
  })
})

const shown = () => ({ friends: [ann, bob], referrer: ann, bought: [order], city: 'Paris' })
const idIn = (reference: Reference | undefined) => `${Object.values(reference ?? {})[0]}`
const cid = { external_id: 'cid' }

const exported = async (path: string, body: unknown) => {
  const headers = { Authorization: `Bearer ${shop.token}`, 'Content-Type': 'application/json' }
  const init = { method: 'POST', headers, body: JSON.stringify(body) }
  const text = await (await fetch(`${service.address}${path}`, init)).text()
  return text
    .split('\n')
    .filter(Boolean)
    .map(line => JSON.parse(line))
}

describe('with links: "id", every target of a relationship is shown by its internal identifier', () => {
  it.each<[string, string, string, unknown]>([
    ['list', 'POST', '/v1/people/list', { links: 'id', sorting_type: 'asc' }],
    ['list, from the query', 'POST', '/v1/people/list?links=id&sorting_type=asc', undefined],
    ['a sorted list', 'POST', '/v1/people/list', { links: 'id', sort: { field: 'external_id' } }],
    ['filter', 'POST', '/v1/people/filter', { links: 'id', filter: cid }],
    [
      'a filter of some fields',
      'POST',
      '/v1/people/filter',
      { links: 'id', filter: cid, fields: ['external_id', 'attribute_values'] },
    ],
    ['a sorted filter', 'POST', '/v1/people/filter', { links: 'id', filter: cid, sort: { field: 'created_at' } }],
    ['related', 'POST', '/v1/people/ann/related', { links: 'id', target: 'people' }],
  ])('in %s', async (_, method, path, body) => {
    const { items } = await shop.ok(method, path, body)
    const found = items.find((item: { external_id: string }) => item.external_id === 'cid')
    expect(found.attribute_values).toEqual(shown())
  })

  it('in the read of one person by each identifier and of one record, where all else stays the same', async () => {
    const { client, send } = shop
    const { id } = await client.people.get('cid')
    for (const path of ['/v1/people/cid', `/v1/people/internal/${id}`]) {
      const [plain, byId] = [await send('GET', path), await send('GET', `${path}?links=id`)]
      expect(byId.body.data).toEqual({ ...plain.body.data, attribute_values: shown() })
      expect(Object.keys(byId.body.data)).toEqual(Object.keys(plain.body.data))
      expect([byId.status, byId.headers.get('ETag')]).toEqual([200, plain.headers.get('ETag')])
    }
    const { attribute_values } = await client.stack('orders').get('o1', { links: 'id' })
    expect(attribute_values).toEqual({ buyer: ann })
    expect((await send('GET', '/v1/people/nobody?links=id')).status).toBe(404)
  })

  it('in the read of one person with labels, by these identifiers', async () => {
    const { relationship_labels } = await shop.client.people.get('cid', { links: 'id', labels: true })
    const friends = { [idIn(ann)]: 'ann', [idIn(bob)]: 'Bob' }
    expect(relationship_labels).toEqual({ friends, referrer: { [idIn(ann)]: 'ann' }, bought: { [idIn(order)]: 'o1' } })
  })

  it('in the read of one person by an alias, of a large one, and as it was', async () => {
    const { client, ok } = shop
    await client.people.create({ external_id: 'dan' })
    await ok('POST', '/v1/people/dan/merge', { from: 'cid' })
    expect((await client.people.get('cid', { links: 'id' })).attribute_values).toEqual(shown())
    const note = 'x'.repeat(60_000)
    const { version } = await client.people.patch('cid', { attribute_values: { note } }, { representation: true })
    expect((await client.people.get('dan', { links: 'id' })).attribute_values).toEqual({ ...shown(), note })
    await client.people.patch('dan', { attribute_values: { friends: null, bought: null, note: null } })
    await client.people.patch('ann', { external_id: 'anna' })
    const then = await client.people.get('dan', { links: 'id', version })
    expect(then.attribute_values).toEqual({ ...shown(), note })
    const { updated_at: at } = then
    expect((await client.people.get('dan', { links: 'id', at })).attribute_values).toEqual({ ...shown(), note })
  })

  it('in the read of one person, which can be written back', async () => {
    const { client } = shop
    const read = await client.people.get('cid', { links: 'id' })
    await client.people.replace('cid', writable(read), { ifMatch: read.version })
    const { attribute_values, version } = await client.people.get('cid')
    expect(attribute_values.referrer).toBe('ann')
    expect(version).toBe(read.version)
  })

  it('in single keys, in included entities, and in the people of a segment', async () => {
    const { client, ok } = shop
    const fields = ['attribute_values.friends', 'attribute_values.city']
    const some = await ok('POST', '/v1/people/filter', { links: 'id', filter: cid, fields })
    expect(some.items).toEqual([{ attribute_values: { friends: [ann, bob], city: 'Paris' } }])
    await client.people.patch('ann', { attribute_values: { referrer: 'cid' } })
    const including = await ok('POST', '/v1/people/filter', { links: 'id', filter: cid, include: ['referrer'] })
    const { id } = await client.people.get('cid')
    expect(including.items[0].included.referrer.attribute_values).toEqual({ referrer: { id } })
    await client.segments.create({ key: 'cids', filter: cid })
    const people = await ok('GET', '/v1/segments/cids/people?links=id')
    expect(people.items[0].attribute_values).toEqual(shown())
  })

  it('in an export of people and of records, which an import takes back unchanged', async () => {
    const people = await exported('/v1/people/export', { links: 'id' })
    const row = people.find(({ external_id }) => external_id === 'cid')
    expect(row.attribute_values).toEqual(shown())
    const [named] = (await exported('/v1/people/export', {})).filter(({ external_id }) => external_id === 'cid')
    expect({ ...row, attribute_values: named.attribute_values }).toEqual(named)
    expect(Object.keys(row)).toEqual(Object.keys(named))
    const orders = await exported('/v1/stacks/orders/export?links=id', undefined)
    expect(orders.map(({ attribute_values }) => attribute_values)).toEqual([{ buyer: ann }])
    const { external_id, attribute_values } = row
    const counts = []
    for await (const line of shop.client.people.import([{ external_id, attribute_values }])) counts.push(line)
    expect(counts.at(-1)).toMatchObject({ received: 1, unchanged: 1, failed: 0 })
  })

  it('but not a deleted one, and the survivor in place of a merged person', async () => {
    const { client, ok } = shop
    const dan = await client.people.create({ external_id: 'dan' })
    await ok('POST', '/v1/people/dan/merge', { from: 'ann' })
    await client.people.delete(bob as { id: string })
    const { items } = await ok('POST', '/v1/people/filter', { links: 'id', filter: cid })
    const { friends, referrer } = items[0].attribute_values
    expect({ friends, referrer }).toEqual({ friends: [{ id: dan.id }], referrer: { id: dan.id } })
  })
})

describe('the change log with links: "id"', () => {
  const changesOf = async (query: string, headers = {}) => {
    const { body } = await shop.send('GET', `/v1/changes?subject=person&links=id${query}`, undefined, headers)
    return body.data.items
  }

  it('shows targets as they were written, also deleted and merged ones, with those that no read showed', async () => {
    const { client, ok } = shop
    const { id } = await client.people.get('cid')
    await client.people.create({ external_id: 'dan' })
    await ok('POST', '/v1/people/dan/merge', { from: 'ann' })
    await client.people.delete(bob as { id: string })
    await client.people.delete('cid')
    await ok('POST', `/v1/people/internal/${id}/restore`)
    const changes = (await changesOf('')).filter((change: { id: string }) => change.id === id)
    const created = changes.find(({ operation }: { operation: string }) => operation === 'create')
    expect(created.after.attribute_values).toEqual(shown())
    const { after } = changes.at(-1)
    expect(after.attribute_values).toEqual(shown())
  })

  it('names a relationship once, of which all targets were deleted', async () => {
    const { client, ok } = shop
    const [{ id }, { id: other }] = [await client.people.get('cid'), await client.people.create({ first_name: 'Eve' })]
    await client.people.patch('cid', { attribute_values: { friends: [bob as { id: string }] } })
    await client.people.delete(bob as { id: string })
    await client.people.patch('cid', { attribute_values: { friends: { $remove: [{ id: other }] }, city: null } })
    await client.people.patch('cid', { attribute_values: { friends: { $add: [{ id: other }] } } })
    await client.people.delete({ id: other })
    await client.people.patch('cid', { attribute_values: { friends: { $remove: ['nobody'] }, city: 'Rome' } })
    await client.people.delete('cid')
    await ok('POST', `/v1/people/internal/${id}/restore`)
    const text = await exportedChanges()
    for (const line of text) {
      const keys = line.match(/"friends": ?(?=null|\[)/g) ?? []
      expect(keys.length, line).toBeLessThanOrEqual(2)
    }
    const changes = text.map(line => JSON.parse(line)).filter(change => change.id === id)
    expect(changes.at(-1).after.attribute_values.friends).toEqual([bob, { id: other }])
  })

  const exportedChanges = async () => {
    const headers = { Authorization: `Bearer ${shop.token}`, Accept: 'application/x-ndjson' }
    const response = await fetch(`${service.address}/v1/changes?links=id`, { headers })
    return (await response.text()).split('\n').filter(Boolean)
  }

  it('is one of its own for those who follow it', async () => {
    const { client } = shop
    const stopping = new AbortController()
    const after = await shop.head()
    const follow = async (links?: 'id') => {
      const changes = client.changes.follow({ after, ...(links && { links }), signal: stopping.signal })
      for await (const change of changes) return change.after?.attribute_values
    }
    const following = [follow('id'), follow(), follow('id')]
    const waiting = client.changes.list({ after, links: 'id', wait: 10 }).page()
    await client.people.patch('cid', { attribute_values: { friends: ['ann'] } })
    expect(await Promise.all(following)).toEqual([{ friends: [ann] }, { friends: ['ann'] }, { friends: [ann] }])
    expect((await waiting).items[0]?.after).toEqual({ attribute_values: { friends: [ann] } })
    stopping.abort()
  })
})

it.each([
  ['POST', '/v1/people/list', { links: 'name' }],
  ['POST', '/v1/people/filter', { links: true }],
  ['POST', '/v1/people/list?links=ids', undefined],
  ['POST', '/v1/people/ann/related', { target: 'people', links: '' }],
  ['POST', '/v1/people/export', { links: null }],
  ['POST', '/v1/stacks/orders/export?links=name', undefined],
  ['GET', '/v1/changes?links=name', undefined],
  ['GET', '/v1/people/cid?links=name', undefined],
  ['GET', '/v1/stacks/orders/o1?links=', undefined],
])('any other value of links is refused with its path: %s %s %j', async (method, path, body) => {
  const reply = await shop.send(method, path, body)
  expect(reply.status).toBe(400)
  expect(reply.body.details?.map(({ path }) => path)).toEqual(['/links'])
})
