import { beforeEach, describe, expect, it } from 'vitest'
import { importLines, linesFrom } from '../../../test/support/lines.ts'
import { useService } from '../../../test/support/service.ts'
import { useShop } from '../../../test/support/shop.ts'

const service = useService()
const shop = useShop(service, 'referrer', 'friends', 'employer', 'bought', 'buyer')
const { send } = shop

type Edit = { $add?: unknown; $remove?: unknown }

const person = async (external_id: string) => (await send('GET', `/v1/people/${external_id}`)).body.data
const friends = async () => (await person('ada')).attribute_values.friends
const patch = (friends: unknown, headers?: Record<string, string>) =>
  send('PATCH', '/v1/people/ada', { attribute_values: { friends } }, headers)
const names = (count: number, prefix = 'n') => Array.from({ length: count }, (_, index) => `${prefix}${index}`)
const detailsOf = ({ status, body }: Awaited<ReturnType<typeof send>>) => [status, body.error, body.details]
const faults = (path: string, message: string) => [400, 'invalid_parameter', [{ path, message }]]

beforeEach(() => send('POST', '/v1/people', { external_id: 'ada', attribute_values: { friends: ['bo', 'cy', 'di'] } }))

describe('{"$add", "$remove"} in PATCH', () => {
  it.each<[Edit, string[]]>([
    [{ $add: ['eve'] }, ['bo', 'cy', 'di', 'eve']],
    [{ $add: ['eve', ' bo ', { external_id: 7 }, 'eve'] }, ['bo', 'cy', 'di', 'eve', '7']],
    [{ $remove: ['cy', 'nobody'] }, ['bo', 'di']],
    [{ $add: ['al'], $remove: ['bo', 'di'] }, ['cy', 'al']],
  ])('changes single links by %j, keeps the others in their order and adds at the end', async (edit, expected) => {
    expect((await patch(edit)).body).toEqual({ status: 'Success', data: true })
    expect(await person('ada')).toMatchObject({ version: 2, attribute_values: { friends: expected } })
    const [change] = (await send('GET', '/v1/people/ada/history')).body.data.items
    expect([change.before, change.after]).toEqual([
      { attribute_values: { friends: ['bo', 'cy', 'di'] } },
      { attribute_values: { friends: expected } },
    ])
    expect(change.links.friends.after).toHaveLength(expected.length)
  })

  it.each<Edit>([
    { $add: [] },
    { $add: ['cy', 'bo'] },
    { $remove: ['nobody', { id: '01a205a8-8eaf-7000-8000-0123456789ab' }] },
    { $add: ['di'], $remove: ['eve'] },
  ])('changes nothing by %j, and creates no placeholder', async edit => {
    const before = await person('ada')
    expect((await patch(edit, { Prefer: 'references=strict' })).status).toBe(200)
    expect(await person('ada')).toEqual(before)
    for (const name of ['nobody', 'eve']) expect((await send('GET', `/v1/people/${name}`)).status).toBe(404)
  })

  it('takes internal identifiers, and removes the last link', async () => {
    const [bo, eve] = [await person('bo'), (await send('POST', '/v1/people', { first_name: 'Eve' })).body.data]
    await patch({ $add: [{ id: eve.id }], $remove: [{ id: bo.id }] })
    expect(await friends()).toEqual(['cy', 'di', { id: eve.id }])
    await patch({ $remove: ['cy', 'di', { id: eve.id }] })
    expect((await person('ada')).attribute_values).toEqual({})
    await patch({ $add: ['ada'] })
    expect(await friends()).toEqual(['ada'])
  })

  it('can be written in a query string', async () => {
    const query = 'attribute_values[friends][$add][0]=eve&attribute_values[friends][$remove][0]=bo'
    expect((await send('PATCH', `/v1/people/ada?${query}`, undefined)).status).toBe(200)
    expect(await friends()).toEqual(['cy', 'di', 'eve'])
  })

  it('keeps the link to a deleted target, which its restore brings back', async () => {
    const { id } = await person('cy')
    await send('DELETE', '/v1/people/cy')
    await patch({ $add: ['eve'] })
    expect(await friends()).toEqual(['bo', 'di', 'eve'])
    const [change] = (await send('GET', '/v1/people/ada/history')).body.data.items
    expect(change.after.attribute_values.friends).toEqual(['bo', 'di', 'eve'])
    const { version } = await person('ada')
    await send('POST', `/v1/people/internal/${id}/restore`)
    expect(await person('ada')).toMatchObject({ version, attribute_values: { friends: ['bo', 'cy', 'di', 'eve'] } })
    expect((await send('GET', `/v1/people/ada?version=${version}`)).body.data.attribute_values.friends).toEqual([
      ...['bo', 'di', 'eve'],
    ])
    await send('DELETE', '/v1/people/cy')
    await patch({ $remove: [{ id }] })
    await send('POST', `/v1/people/internal/${id}/restore`)
    expect(await friends()).toEqual(['bo', 'di', 'eve'])
  })

  it('is null in the log if only links to deleted targets are left', async () => {
    const { id } = await person('cy')
    await send('DELETE', '/v1/people/cy')
    await patch({ $remove: ['bo', 'di'] })
    const [change] = (await send('GET', '/v1/people/ada/history')).body.data.items
    expect([change.before, change.after, change.links.friends.after]).toEqual([
      { attribute_values: { friends: ['bo', 'di'] } },
      { attribute_values: { friends: null } },
      [id],
    ])
    expect((await send('GET', '/v1/people/ada?version=2')).body.data.attribute_values).toEqual({})
    await send('POST', `/v1/people/internal/${id}/restore`)
    expect(await friends()).toEqual(['cy'])
    await send('DELETE', '/v1/people/ada')
    const { items } = (await send('GET', '/v1/changes?operation=delete')).body.data
    await send('POST', `/v1/people/internal/${items.at(-1).id}/restore`)
    expect(await friends()).toEqual(['cy'])
  })

  it('removes and adds a merged person by the name of the survivor, and its undoing keeps the other links', async () => {
    for (const name of ['bo', 'di']) await send('PATCH', `/v1/people/${name}`, { first_name: name })
    await send('POST', '/v1/people/bo/merge', { from: 'di' })
    expect(await friends()).toEqual(['bo', 'cy'])
    const { version } = await person('ada')
    await patch({ $add: ['di'] })
    expect((await person('ada')).version).toBe(version)
    await patch({ $add: ['eve'], $remove: ['cy'] })
    expect(await friends()).toEqual(['bo', 'eve'])
    const unmerged = await send('POST', '/v1/people/bo/unmerge', { from: 'di' })
    expect([unmerged.status, await friends()]).toEqual([200, ['bo', 'di', 'eve']])
    await send('POST', '/v1/people/bo/merge', { from: 'di' })
    await patch({ $remove: ['di'] })
    expect(await friends()).toEqual(['eve'])
  })

  it('completes no placeholder by changing nothing, and by changing something it does', async () => {
    await send('PATCH', '/v1/people/bo', { attribute_values: { friends: { $remove: ['x'] } } })
    expect((await person('bo')).state).toBe('placeholder')
    await send('PATCH', '/v1/people/bo', { attribute_values: { friends: { $add: ['x'] } } })
    expect(await person('bo')).toMatchObject({ state: 'active', attribute_values: { friends: ['x'] } })
  })

  it('loses no link of 32 writers at once', async () => {
    const added = names(32)
    const replies = await Promise.all(added.map(name => patch({ $add: [name] })))
    expect(replies.map(({ status }) => status)).toEqual(added.map(() => 200))
    const linked = await friends()
    expect(linked.slice(0, 3)).toEqual(['bo', 'cy', 'di'])
    expect(linked.toSorted()).toEqual(['bo', 'cy', 'di', ...added].toSorted())
    await Promise.all([
      ...added.map(name => patch({ $remove: [name] })),
      ...names(8, 'm').map(name => patch({ $add: [name] })),
    ])
    expect((await friends()).toSorted()).toEqual(['bo', 'cy', 'di', ...names(8, 'm')].toSorted())
    expect((await person('ada')).version).toBe(1 + 32 + 32 + 8)
  })

  it('leaves at most 1,000 links, and removes from the most', async () => {
    for (let first = 0; first < 1_000; first += 100)
      await patch({ $add: names(1_000).slice(first, first + 100), $remove: ['bo', 'cy', 'di'] })
    expect(await friends()).toHaveLength(1_000)
    const message = expect.stringMatching(/^must have at most 1000 links/)
    expect(detailsOf(await patch({ $add: ['one more'] }))).toMatchObject([
      400,
      'invalid_parameter',
      [{ path: '/attribute_values/friends/$add', message }],
    ])
    expect((await patch({ $add: ['n0'] })).status).toBe(200)
    expect((await patch({ $add: ['one more'], $remove: ['n0'] })).status).toBe(200)
    expect((await friends()).slice(-2)).toEqual(['n999', 'one more'])
  })

  it('is shown by a dry run as the list that it leaves', async () => {
    const edit = { attribute_values: { friends: { $add: ['eve'], $remove: ['bo'] } } }
    const { body } = await send('PATCH', '/v1/people/ada?dry_run=true', edit)
    expect(body.data).toMatchObject({
      before: { attribute_values: { friends: ['bo', 'cy', 'di'] } },
      after: { attribute_values: { friends: ['cy', 'di', 'eve'] } },
      placeholders: [{ kind: 'people', external_id: 'eve' }],
    })
    expect(await friends()).toEqual(['bo', 'cy', 'di'])
  })

  it.each<[Edit, string, string]>([
    [{ $add: ['x', 'bo'], $remove: ['bo'] }, '$add/1', 'is in "$remove" as well. Name it in one of them'],
    [{ $add: ['new'], $remove: ['new'] }, '$add/0', 'is in "$remove" as well. Name it in one of them'],
    [{ $add: 'bo' }, '$add', 'must be an array of external identifiers'],
    [{ $remove: null }, '$remove', 'must be an array of external identifiers'],
    [{ $add: ['x', null] }, '$add/1', 'must name an entity: leave the element out'],
    [{ $remove: ['x', ''] }, '$remove/1', 'must name an entity: leave the element out'],
  ])('refuses %j at %s', async (edit, path, message) => {
    expect(detailsOf(await patch(edit))).toEqual(faults(`/attribute_values/friends/${path}`, message))
    expect((await person('ada')).version).toBe(1)
  })

  it('refuses one target under two names, a missing one, and an internal identifier as text', async () => {
    const { id } = await person('bo')
    const at = (path: string) => `/attribute_values/friends/${path}`
    expect(detailsOf(await patch({ $add: [{ id }], $remove: ['bo'] }))).toEqual(
      faults(at('$add/0'), 'is in "$remove" as well. Name it in one of them'),
    )
    const missing = { id: '01a205a8-8eaf-7000-8000-0123456789ab' }
    expect(detailsOf(await patch({ $add: [missing] }))).toEqual(
      faults(at('$add/0'), 'names an entity that does not exist'),
    )
    expect(detailsOf(await patch({ $add: ['eve'] }, { Prefer: 'references=strict' }))).toEqual(
      faults(at('$add/0'), 'names an entity that does not exist'),
    )
    for (const list of ['$add', '$remove'])
      expect(detailsOf(await patch({ [list]: [id] }))).toMatchObject([
        400,
        'invalid_parameter',
        [{ path: at(`${list}/0`), message: expect.stringContaining(`{"id": "${id}"}`) }],
      ])
  })

  it('changes nothing with an If-Match of an older version, and adds to the links of the current one', async () => {
    await patch({ $add: ['eve'] })
    const refused = await patch({ $add: ['flo'], $remove: ['bo'] }, { 'If-Match': '"1"' })
    expect([refused.status, refused.body.error]).toEqual([412, 'invalid_parameter'])
    expect(await person('ada')).toMatchObject({ version: 2, attribute_values: { friends: ['bo', 'cy', 'di', 'eve'] } })
    expect((await send('GET', '/v1/people/flo')).status).toBe(404)
    const done = await patch({ $add: ['flo'], $remove: ['bo'] }, { 'If-Match': '"2"' })
    expect([done.status, done.headers.get('ETag')]).toEqual([200, '"3"'])
    expect(await friends()).toEqual(['cy', 'di', 'eve', 'flo'])
    const body = { attribute_values: { friends: { $add: ['gus'] } } }
    const operations = [2, 3].map(version => ({ op: 'patch', external_id: 'ada', body, if_match: `"${version}"` }))
    const { items } = (await send('POST', '/v1/people/batch', { operations })).body.data
    expect(items.map(({ status }: { status: number }) => status)).toEqual([412, 200])
    expect(await friends()).toEqual(['cy', 'di', 'eve', 'flo', 'gus'])
  })

  it('refuses the internal identifier of a record of another stack or of another kind, at its path', async () => {
    const { client } = shop
    const { record_id } = await client.stack('companies').create({ external_id: 'acme' })
    const { id } = await person('bo')
    const write = (bought: Edit) => send('PATCH', '/v1/people/ada', { attribute_values: { bought } })
    const at = (path: string) => `/attribute_values/bought/${path}`
    expect(detailsOf(await write({ $add: ['o1', { record_id }] }))).toEqual(
      faults(at('$add/1'), 'names a record that does not exist in the stack of the relationship'),
    )
    for (const list of ['$add', '$remove'])
      for (const other of [{ id }, { record_id: id }])
        expect(detailsOf(await write({ [list]: ['o1', other] }))).toMatchObject([
          400,
          'invalid_parameter',
          [{ path: at(`${list}/1`), message: expect.stringContaining('record_id') }],
        ])
    expect(detailsOf(await patch({ $add: [{ record_id }] }))).toMatchObject([
      400,
      'invalid_parameter',
      [{ path: '/attribute_values/friends/$add/0', message: expect.stringContaining('"id"') }],
    ])
    expect((await person('ada')).version).toBe(1)
    expect((await send('GET', '/v1/stacks/orders/o1')).status).toBe(404)
    await write({ $add: ['acme'] })
    expect((await client.stack('orders').get('acme')).state).toBe('placeholder')
    await write({ $remove: [{ record_id }] })
    expect((await person('ada')).attribute_values.bought).toEqual(['acme'])
  })

  it('changes one direction of two between the same entities, and leaves the other', async () => {
    const { client, ok } = shop
    await client.people.patch('ada', { attribute_values: { bought: ['o1', 'o2'] } })
    for (const name of ['o1', 'o2']) await client.stack('orders').patch(name, { attribute_values: { buyer: 'ada' } })
    await client.people.patch('bo', { attribute_values: { friends: ['ada'] } })
    const related = async (attribute_key: string, direction: string, target = 'orders') => {
      const { items } = await ok('POST', '/v1/people/ada/related', { target, attribute_key, direction })
      return items.map(({ external_id }: { external_id: string }) => external_id).toSorted()
    }
    await send('PATCH', '/v1/people/ada', {
      attribute_values: { bought: { $remove: ['o1'], $add: ['o3'] }, friends: { $remove: ['bo'] } },
    })
    expect(await related('bought', 'outgoing')).toEqual(['o2', 'o3'])
    expect(await related('buyer', 'incoming')).toEqual(['o1', 'o2'])
    expect(await related('friends', 'outgoing', 'people')).toEqual(['cy', 'di'])
    expect(await related('friends', 'incoming', 'people')).toEqual(['bo'])
    expect((await client.stack('orders').get('o1')).version).toBe(2)
  })

  it('stands for itself under a key of the same name, in every write, and is refused under any other key that is no list', async () => {
    const values = { $add: ['x'], $remove: ['y', 'z'] }
    const written = { ...values, friends: ['bo'] }
    expect(
      (await send('PATCH', '/v1/people/ada', { attribute_values: { ...values, friends: { $remove: ['cy', 'di'] } } }))
        .status,
    ).toBe(200)
    expect((await person('ada')).attribute_values).toEqual(written)
    const { items } = (
      await send('POST', '/v1/people/filter', { filter: { 'attribute_values.$add': { $exists: true } } })
    ).body.data
    expect(items.map(({ external_id }: { external_id: string }) => external_id)).toEqual(['ada'])
    const nested = { note: { $add: { $add: [] }, $remove: 1 } }
    const deeper = { note: { list: nested.note } }
    for (const [method, path] of [
      ['PATCH', '/v1/people/ada'],
      ['PUT', '/v1/people/ada'],
      ['POST', '/v1/people'],
    ] as const) {
      expect(detailsOf(await send(method, path, { attribute_values: nested }))).toMatchObject([
        400,
        'invalid_parameter',
        [{ path: '/attribute_values/note' }],
      ])
      expect((await send(method, path, { attribute_values: { ...values, ...deeper } })).status).toBeLessThan(300)
    }
    expect((await person('ada')).attribute_values).toEqual({ ...values, ...deeper })
    await send('PATCH', '/v1/people/ada', { attribute_values: { $add: null, $remove: 0 } })
    expect((await person('ada')).attribute_values).toEqual({ ...deeper, $remove: 0 })
  })

  it('is refused alike by every write under an undeclared key and one of type json', async () => {
    await shop.client.schema.attributes.create({ key: 'free', owner: 'people', type: 'json' })
    for (const key of ['free', 'unknown']) {
      const body = { external_id: 'ada', attribute_values: { [key]: { $add: ['x'] } } }
      const replies = [
        await send('POST', '/v1/people', { ...body, external_id: 'other' }),
        await send('PUT', '/v1/people/ada', body),
        await send('PATCH', '/v1/people/ada', body),
        await send('POST', '/v1/people/upsert', body),
      ].map(({ body: { details } }) => details)
      const { refused } = await importLines(shop, '/v1/people/import', linesFrom([body]))
      expect(new Set([...replies, refused[0]!.details].map(details => JSON.stringify(details)))).toHaveLength(1)
      expect(replies[0]).toMatchObject([{ path: `/attribute_values/${key}` }])
    }
    expect((await person('ada')).version).toBe(1)
  })

  it('is refused where no list of links is changed', async () => {
    const edit = { $add: ['bo'] }
    const write = (values: object) => send('PATCH', '/v1/people/ada', { attribute_values: values })
    expect(detailsOf(await write({ referrer: edit }))).toMatchObject([
      400,
      'invalid_parameter',
      [{ path: '/attribute_values/referrer' }],
    ])
    const undeclared = await write({ freinds: edit })
    expect(detailsOf(undeclared)).toMatchObject([400, 'invalid_parameter', [{ path: '/attribute_values/freinds' }]])
    expect(undeclared.body.details?.[0]?.message).toContain('Declare one')
    // Any other value of an undeclared key is ordinary data.
    expect((await write({ freinds: { ...edit, n: 1 } })).status).toBe(200)
    for (const [method, path] of [
      ['PUT', '/v1/people/ada'],
      ['POST', '/v1/people'],
    ] as const) {
      const reply = await send(method, path, { attribute_values: { friends: edit } })
      expect(detailsOf(reply)).toMatchObject([400, 'invalid_parameter', [{ path: '/attribute_values/friends' }]])
      expect(reply.body.details?.[0]?.message).toContain('PATCH and upsert')
    }
  })

  it('keeps a value from before the declaration', async () => {
    await send('PATCH', '/v1/people/ada', { attribute_values: { peers: ['old'] } })
    await shop.client.schema.attributes.create({ key: 'peers', owner: 'people', type: 'person', cardinality: 'many' })
    const write = (peers: unknown) => send('PATCH', '/v1/people/ada', { attribute_values: { peers } })
    expect(detailsOf(await write({ $add: ['bo'] }))).toMatchObject([
      400,
      'invalid_parameter',
      [{ path: '/attribute_values/peers' }],
    ])
    expect((await person('ada')).attribute_values.peers).toEqual(['old'])
    await write(['old'])
    await write({ $add: ['bo'] })
    expect((await person('ada')).attribute_values.peers).toEqual(['old', 'bo'])
  })

  it('leaves a required relationship with a link', async () => {
    const { body } = await send('GET', '/v1/schema/attributes')
    const { id } = body.data.items.find(({ key }: { key: string }) => key === 'friends')
    await send('PATCH', `/v1/schema/attributes/${id}`, { required: true })
    const required = faults('/attribute_values/friends', 'is required')
    expect(detailsOf(await patch({ $remove: ['bo', 'cy', 'di'] }))).toEqual(required)
    expect((await patch({ $remove: ['bo', 'cy', 'di'], $add: ['eve'] })).status).toBe(200)
    const upsert = (friends: Edit) =>
      send('POST', '/v1/people/upsert', { external_id: 'new', attribute_values: { friends } })
    expect(detailsOf(await upsert({ $remove: ['bo'] }))).toEqual(required)
    expect((await upsert({ $add: ['bo'] })).status).toBe(201)
  })
})

it('upsert and the operations of a batch change single links, each after the one before', async () => {
  const body = (friends: Edit) => ({ attribute_values: { friends } })
  const upserted = await send('POST', '/v1/people/upsert', {
    external_id: 'new',
    ...body({ $add: ['bo'], $remove: ['x'] }),
  })
  expect([upserted.status, upserted.body.data.attribute_values.friends]).toEqual([201, ['bo']])
  const operations = [
    { op: 'patch', external_id: 'ada', body: body({ $add: ['eve'] }) },
    { op: 'upsert', external_id: 'ada', body: body({ $add: ['al'], $remove: ['eve'] }) },
    { op: 'patch', external_id: 'ada', body: body({ $remove: ['bo'] }) },
    { op: 'put', external_id: 'ada', body: body({ $remove: ['bo'] }) },
  ]
  const { items } = (await send('POST', '/v1/people/batch', { operations })).body.data
  expect(items.map(({ status }: { status: number }) => status)).toEqual([200, 200, 200, 400])
  expect(await friends()).toEqual(['cy', 'di', 'al'])
})
