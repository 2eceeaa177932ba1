import { randomBytes, randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { readFeed, type WireChange } from '../../test/support/changes.ts'
import { useService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'
import { names } from '../../test/support/writes.ts'

const service = useService()
const shop = useShop(service, 'companies')
const { send } = shop

type History = { items: WireChange[]; has_more: boolean }
const history = async (path: string): Promise<History> => {
  const { status, body } = await send('GET', path)
  if (status !== 200) throw new Error(`${status}: ${JSON.stringify(body)}`)
  return body.data
}
const versions = ({ items }: History) => items.map(({ version }) => version)

/** Creates a person or a record, changes it `changes` times, and returns its internal identifier. */
async function createWith(changes: number, path: string, external_id = 'ada'): Promise<string> {
  const { data } = (await send('POST', path, { external_id })).body
  for (let score = 1; score <= changes; score += 1)
    await send('PATCH', `${path}/${external_id}`, { attribute_values: { score } })
  return data.id ?? data.record_id
}

describe.each(['/v1/people', '/v1/stacks/companies'])('the history of an entity of %s', path => {
  it('has its changes as the feed shows them, newest first, by both identifiers', async () => {
    const id = await createWith(2, path)
    await createWith(1, path, 'bob')
    const { items, has_more } = await history(`${path}/ada/history`)
    const all = (await readFeed(shop, 'limit=1000')).items.filter(change => change.id === id)
    expect([items, has_more]).toEqual([all.toReversed(), false])
    expect(items).toMatchObject([
      { version: 3, before: { attribute_values: { score: 1 } }, after: { attribute_values: { score: 2 } } },
      { version: 2, before: { attribute_values: { score: null } }, after: { attribute_values: { score: 1 } } },
      { version: 1, operation: 'create', before: null, after: { external_id: 'ada' } },
    ])
    expect(await history(`${path}/internal/${id}/history`)).toEqual({ items, has_more })
    expect(await history(`${path}/internal/${id.toUpperCase()}/history`)).toEqual({ items, has_more })
  })

  it('continues before a version', async () => {
    await createWith(6, path)
    const first = await history(`${path}/ada/history?limit=3`)
    expect([versions(first), first.has_more]).toEqual([[7, 6, 5], true])
    const second = await history(`${path}/ada/history?limit=4&before_version=5`)
    expect([versions(second), second.has_more]).toEqual([[4, 3, 2, 1], false])
    expect(await history(`${path}/ada/history?before_version=1`)).toEqual({ items: [], has_more: false })
    expect(versions(await history(`${path}/ada/history?before_version=2147483647&limit=1000`))).toHaveLength(7)
  })

  it('has the deletion of a deleted entity by internal identifier, with its last external identifier', async () => {
    const id = await createWith(1, path)
    await send('PATCH', `${path}/ada`, { external_id: 'lovelace' })
    await send('DELETE', `${path}/lovelace`)
    const { items } = await history(`${path}/internal/${id}/history`)
    expect(items.map(({ operation, version, external_id }) => [operation, version, external_id])).toEqual([
      ['delete', 4, 'lovelace'],
      ['update', 3, 'lovelace'],
      ['update', 2, 'lovelace'],
      ['create', 1, 'lovelace'],
    ])
    expect((await send('GET', `${path}/lovelace/history`)).status).toBe(404)
  })

  it('is not found for an entity that never existed, or of another stack', async () => {
    const id = await createWith(0, path)
    const unknown = path === '/v1/people' ? randomUUID() : 'f'.repeat(24)
    const replies = [
      await send('GET', `${path}/nobody/history`),
      await send('GET', `${path}/internal/${unknown}/history`),
    ]
    await send('POST', '/v1/schema/stacks', { key: 'orders', kind: 'item' })
    if (path !== '/v1/people') replies.push(await send('GET', `/v1/stacks/orders/internal/${id}/history`))
    for (const { status, body } of replies) expect([status, body.error]).toEqual([404, 'not_found'])
  })

  it.each([
    ['limit=0', '/limit'],
    ['limit=1001', '/limit'],
    ['before_version=0', '/before_version'],
    ['before_version=2147483648', '/before_version'],
    ['before_version=x', '/before_version'],
    ['after=1', '/after'],
  ])('gets 400 with %s', async (query, expected) => {
    await createWith(0, path)
    const { status, body } = await send('GET', `${path}/ada/history?${query}`)
    expect([status, body.error, body.details?.map(({ path }) => path)]).toEqual([400, 'invalid_parameter', [expected]])
  })

  it('needs the read scope of the entity and changes:read', async () => {
    await createWith(0, path)
    const scope = path === '/v1/people' ? 'people:read' : 'records:read'
    const statusWith = async (scopes: string) => {
      const reply = await service.sender(await service.tokenFor(shop.key, scopes))('GET', `${path}/ada/history`)
      return [reply.status, reply.body.message]
    }
    expect(await statusWith(`${scope} changes:read`)).toEqual([200, undefined])
    expect(await statusWith(scope)).toEqual([403, 'The token lacks the scope changes:read.'])
    expect(await statusWith('changes:read schema:read')).toEqual([403, `The token lacks the scope ${scope}.`])
  })

  it('serves HEAD, and refuses other methods', async () => {
    await createWith(0, path)
    expect((await send('HEAD', `${path}/ada/history`)).status).toBe(200)
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE'])
      expect((await send(method, `${path}/ada/history`, {})).status).toBe(405)
  })
})

it('pages end early when the changes are large', async () => {
  await send('POST', '/v1/people', { external_id: 'ada' })
  for (let count = 0; count < 8; count += 1) {
    const attribute_values = Object.fromEntries(names('a', 6).map(key => [key, randomBytes(40_000).toString('base64')]))
    await send('PATCH', '/v1/people/ada', { attribute_values })
  }
  const seen: (number | null)[] = []
  for (let more = true; more; ) {
    const page = await history(`/v1/people/ada/history?before_version=${seen.at(-1) ?? 100}`)
    expect(page.items.length).toBeLessThan(9)
    seen.push(...versions(page))
    more = page.has_more
  }
  expect(seen).toEqual([9, 8, 7, 6, 5, 4, 3, 2, 1])
})

it('belongs to a person named internal, like its other addresses', async () => {
  await send('POST', '/v1/people', { external_id: 'internal' })
  expect(versions(await history('/v1/people/internal/history'))).toEqual([1])
  await send('POST', '/v1/stacks/companies', { external_id: 'internal' })
  expect(versions(await history('/v1/stacks/companies/internal/history'))).toEqual([1])
})

it('a person named history is read as before', async () => {
  const { data } = (await send('POST', '/v1/people', { external_id: 'history' })).body
  expect((await send('GET', '/v1/people/history')).body.data).toEqual(data)
})
