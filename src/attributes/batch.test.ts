import { describe, expect, it } from 'vitest'
import { readFeed } from '../../test/support/changes.ts'
import { dryRunOf, findDefinitionMismatch } from '../../test/support/dry-runs.ts'
import { keyedOrganization } from '../../test/support/keyed.ts'
import { useOwnService } from '../../test/support/service.ts'
import { createShop, useShop } from '../../test/support/shop.ts'
import { maxBatchedAttributes } from './schema.ts'

// In a shared service, attributes of other tests would be neighbors in PostgreSQL's statistics.
const service = useOwnService()
const shop = useShop(service, 'orders')

const path = '/v1/schema/attributes'
const text = (key: string, more: object = {}) => ({ key, owner: 'people', type: 'text', ...more })
const batch = (items: object[], address = `${path}/batch`) => shop.send('POST', address, { items })
const stored = async () => (await shop.ok('GET', path)).items as { id: number; key: string }[]
const versionOf = async () => (await shop.ok('GET', '/v1/organization')).schema_version as number
const pathsOf = (reply: { body: { details?: { path: string }[] } }) => reply.body.details?.map(detail => detail.path)

describe('a batch of attributes', () => {
  it.each(['PATCH', 'DELETE'])('does not allow %s: its path is none of an attribute', async method => {
    const { status, body, headers } = await shop.send(
      method,
      `${path}/batch`,
      method === 'PATCH' ? { name: 'A' } : undefined,
    )
    expect({ status, error: body.error, allow: headers.get('allow') }).toEqual({
      status: 405,
      error: 'invalid_parameter',
      allow: expect.stringContaining('POST'),
    })
  })

  it('declares them in their order, each as a single request would, with one entry of the log each', async () => {
    const items = [
      text('city', { indexed: true, searchable: true, name: 'City', description: 'Where' }),
      { key: 'buyer', owner: 'orders', type: 'person' },
      { key: 'orders', owner: 'people', type: 'stack', target_stack: 'orders', cardinality: 'many' },
      { key: 'size', owner: 'orders', type: 'number', minimum: 0, maximum: 9, required: true },
      text('code', { indexed: true, unique: true, pattern: '^.$' }),
    ]
    const before = await shop.head()
    const { status, body, headers } = await batch(items)
    expect([status, headers.get('x-kith-sequence')]).toEqual([201, `${before + items.length}`])
    const batched = body.data.items
    expect(batched).toEqual(await stored())

    const other = await createShop(service, 'orders')
    for (const item of items) await other.ok('POST', path, item)
    const timeless = (attribute: object) => ({ ...attribute, created_at: '', updated_at: '' })
    expect(batched.map(timeless)).toEqual((await other.ok('GET', path)).items.map(timeless))
    const logged = async (organization: typeof shop) =>
      (await readFeed(organization, `after=${before}`)).items.map(entry => ({
        ...entry,
        at: '',
        request_id: '',
        actor: '',
      }))
    expect(await logged(shop)).toEqual(await logged(other))
    expect(await versionOf()).toBe((await other.ok('GET', '/v1/organization')).schema_version)
    await shop.ok('POST', '/v1/people', { external_id: 'ada', attribute_values: { city: 'Rome', code: 'x' } })
    expect((await shop.send('POST', '/v1/people', { attribute_values: { code: 'x' } })).status).toBe(409)
    const found = await shop.ok('POST', '/v1/people/filter', { filter: { 'attribute_values.city': 'Rome' } })
    expect(found.items).toHaveLength(1)
  })

  it.each<[string, object[], number, string[]]>([
    [
      'wrong values of several elements',
      [text('A'), text('b'), text('c', { type: 'words' })],
      400,
      ['/items/0/key', '/items/2/type'],
    ],
    ['an unknown member', [text('a'), text('b', { state: 'active' })], 400, ['/items/1/state']],
    ['no element', [], 400, ['/items']],
    ['a key twice', [text('a'), text('b'), text('a')], 400, ['/items/2/key']],
    [
      'rules that do not fit',
      [text('a', { minimum: 1 }), text('b', { type: 'json', indexed: true }), text('c', { pattern: '(' }), text('d')],
      400,
      ['/items/0/minimum', '/items/1/indexed', '/items/2/pattern'],
    ],
    [
      'unknown stacks',
      [text('a', { owner: 'nothing' }), text('b', { type: 'stack', target_stack: 'nothing' }), text('c')],
      400,
      ['/items/0/owner', '/items/1/target_stack'],
    ],
    ['people as a target', [text('a', { type: 'stack', target_stack: 'people' })], 400, ['/items/0/target_stack']],
    ['keys that are taken', [text('a'), text('taken'), text('held')], 409, ['/items/1/key', '/items/2/key']],
    [
      'unique attributes whose keys have values',
      [text('new', { indexed: true, unique: true }), text('used', { indexed: true, unique: true })],
      409,
      ['/items/1/unique'],
    ],
  ])('is refused whole for %s, with the path of each', async (_, items, status, paths) => {
    await batch([text('taken'), text('held')])
    await shop.ok('POST', '/v1/people', { attribute_values: { used: 'x' } })
    const before = [await stored(), await shop.head(), await versionOf()]
    for (const address of [`${path}/batch`, dryRunOf(`${path}/batch`)]) {
      const reply = await batch(items, address)
      expect([reply.status, pathsOf(reply)]).toEqual([status, paths])
    }
    expect([await stored(), await shop.head(), await versionOf()]).toEqual(before)
  })

  it('may give two owners the same key, and a key that is archived', async () => {
    const [old] = (await batch([text('a')])).body.data.items
    await shop.ok('PATCH', `${path}/${old.id}`, { state: 'archived' })
    expect((await batch([text('a'), { ...text('a'), owner: 'orders' }])).status).toBe(201)
    expect((await stored()).map(({ key }) => key)).toEqual(['a', 'a', 'a'])
  })

  it('of which another declares a key at the same time succeeds whole or not at all', async () => {
    const keys = Array.from({ length: 30 }, (_, index) => `k${index}`)
    const replies = await Promise.all([
      batch([...keys, 'one'].map(key => text(key))),
      batch(['two', ...keys.toReversed()].map(key => text(key))),
    ])
    expect(replies.map(({ status }) => status).sort()).toEqual([201, 409])
    const winner = replies.find(({ status }) => status === 201)!.body.data.items
    expect(await stored()).toEqual(winner)
    expect(pathsOf(replies.find(({ status }) => status === 409)!)).toHaveLength(30)
    expect(await shop.head()).toBe(1 + 31)
  })

  it('is stored once under an Idempotency-Key', async () => {
    const { ask } = keyedOrganization(service, shop)
    const items = [text('a'), text('b', { indexed: true })]
    const first = await ask('POST', `${path}/batch`, { items })
    const again = await ask('POST', `${path}/batch`, { items })
    expect([first.said.status, again.said]).toEqual([201, first.said])
    expect(await stored()).toHaveLength(2)
    expect((await shop.send('POST', '/v1/people', { attribute_values: { a: 1 } })).status).toBe(400)
  })

  it('returns in a dry run the entries that the log gets', async () => {
    const items = [text('a'), { key: 'size', owner: 'orders', type: 'number', minimum: 1 }]
    const before = await shop.head()
    const { body } = await batch(items, dryRunOf(`${path}/batch`))
    expect(await stored()).toEqual([])
    await batch(items)
    const { items: logged } = await readFeed(shop, `after=${before}`)
    expect(findDefinitionMismatch(body.data, logged)).toBeUndefined()
    expect(body.data.changes.map(({ id }: { id: number | null }) => id)).toEqual([null, null])
  })

  it('needs the scope schema:write, and declares nothing for another organization', async () => {
    const reader = service.sender(await service.tokenFor(shop.key, 'schema:read people:write'))
    expect((await reader('POST', `${path}/batch`, { items: [text('a')] })).status).toBe(403)
    const other = await createShop(service)
    expect((await batch([text('a'), { ...text('b'), owner: 'orders' }])).status).toBe(201)
    const foreign = await other.send('POST', `${path}/batch`, { items: [text('a'), { ...text('b'), owner: 'orders' }] })
    expect([foreign.status, pathsOf(foreign)]).toEqual([400, ['/items/1/owner']])
    expect((await other.ok('GET', path)).items).toEqual([])
  })

  it(`has at most ${maxBatchedAttributes} attributes, as many as an organization may have`, async () => {
    const many = Array.from({ length: maxBatchedAttributes + 1 }, (_, index) => text(`k${index}`))
    const tooMany = await batch(many)
    expect([tooMany.status, pathsOf(tooMany)]).toEqual([400, ['/items']])
    const { status, body } = await batch(many.slice(1))
    expect([status, body.data.items.length, (await stored()).length]).toEqual([201, 5_000, 5_000])
    const beyond = await batch([text('more')])
    expect([beyond.status, beyond.body.message]).toEqual([400, expect.stringContaining('limit of attributes')])
    // The limit is checked before any pattern is compiled.
    const invalid = Array.from({ length: 100 }, (_, index) => ({ ...text(`p${index}`), pattern: '(' }))
    const refused = await batch(invalid)
    expect([refused.status, refused.body.message]).toEqual([400, expect.stringContaining('limit of attributes')])
    await shop.ok('POST', '/v1/people', { external_id: 'ada', attribute_values: { k1: 'x', k5000: 'y' } })
    expect((await shop.send('PATCH', '/v1/people/ada', { attribute_values: { k4999: 1 } })).status).toBe(400)
    expect((await shop.ok('PATCH', `${path}/5000`, { name: 'Last' })).name).toBe('Last')
  })
})
