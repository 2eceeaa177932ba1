import { describe, expect, it } from 'vitest'
import { type Send, useService } from '../../../test/support/service.ts'
import { useShop } from '../../../test/support/shop.ts'
import { names } from '../../../test/support/writes.ts'

const service = useService()
const shop = useShop(service, 'referrer', 'friends', 'employer', {
  key: 'suppliers',
  owner: 'people',
  type: 'stack',
  target_stack: 'companies',
  cardinality: 'many',
})
const { send } = shop

const ada = '/v1/people/ada'
const post = (attribute_values: object, headers?: Record<string, string>) =>
  send('POST', '/v1/people', { external_id: 'ada', attribute_values }, headers)
const patch = (attribute_values: object, headers?: Record<string, string>) =>
  send('PATCH', ada, { attribute_values }, headers)
const read = async (path = ada) => (await send('GET', path)).body.data
const values = async () => (await read()).attribute_values
const paths = (reply: Awaited<ReturnType<Send>>) => reply.body.details?.map(detail => detail.path)
const rows = (table: 'entities' | 'links') =>
  service.sql<{ id: string }>(`select * from ${table} where organization_id = $1`, [shop.id])

// For each kind of target: a key of cardinality one, a key of cardinality many, and the path of the targets.
const kinds = [
  ['a person', 'referrer', 'friends', '/v1/people'],
  ['a record', 'employer', 'suppliers', '/v1/stacks/companies'],
] as const

describe.each(kinds)('a link to %s', (_kind, one, many, targets) => {
  it.each([
    ['bob', 'bob'],
    ['  bob\t', 'bob'],
    [42, '42'],
    [-1, '-1'],
    [{ external_id: ' bob ' }, 'bob'],
    [{ external_id: 42 }, '42'],
    [['bob'], 'bob'],
    [[{ external_id: 'bob' }], 'bob'],
  ])('is written as %j and reads as %j, or as an array of it with cardinality many', async (given, name) => {
    expect((await post({ [one]: given, [many]: given })).body.data.attribute_values).toEqual({
      [one]: name,
      [many]: [name],
    })
    expect(await read(`${targets}/${name}`)).toMatchObject({ external_id: name, state: 'placeholder', version: 1 })
    expect(await rows('entities')).toHaveLength(2)
  })

  it('keeps its position in an array, and duplicates are removed', async () => {
    await post({ [many]: ['c', 1, ' a', { external_id: 'c' }, '1', 'b'] })
    expect(await values()).toEqual({ [many]: ['c', '1', 'a', 'b'] })
    await patch({ [many]: ['b', 'c'] })
    expect(await values()).toEqual({ [many]: ['b', 'c'] })
    expect((await read()).version).toBe(2)
  })

  it.each([null, '', ' \n', [], { external_id: null }, { external_id: '' }])('is removed by %j', async nothing => {
    await post({ [one]: 'bob', [many]: ['bob', 'eve'] })
    await patch({ [one]: nothing, [many]: nothing })
    expect([await values(), await rows('links')]).toEqual([{}, []])
    expect((await read(`${targets}/bob`)).state).toBe('placeholder')
  })

  it.each([
    [one, true, ''],
    [one, 1.5, ''],
    [one, {}, ''],
    [one, { id: 'bob' }, ''],
    [one, { external_id: 'bob', id: 'x' }, ''],
    [one, { external_id: { external_id: 'bob' } }, ''],
    [one, { external_id: ['bob'] }, ''],
    [one, ['bob', 'eve'], ''],
    [one, [['bob']], '/0'],
    [one, '..', ''],
    [one, 'x'.repeat(256), ''],
    [one, 'a\u0007b', ''],
    [many, ['bob', false], '/1'],
    [many, ['bob', null], '/1'],
    [many, ['bob', ' '], '/1'],
    [many, ['bob', ['eve']], '/1'],
    [many, { external_id: 1.5 }, ''],
  ])('is refused for the key %s and the value %j with its path, and nothing is created', async (key, given, path) => {
    await post({})
    const reply = await patch({ other: 'x', [key === one ? many : one]: 'created', [key]: given })
    expect([reply.status, reply.body.error, paths(reply)]).toEqual([
      400,
      'invalid_parameter',
      [`/attribute_values/${key}${path}`],
    ])
    expect([await values(), await rows('entities')]).toMatchObject([{}, [{ external_id: 'ada' }]])
  })

  it('leads to an existing entity with the external identifier', async () => {
    const { data } = (await send('POST', targets, { external_id: 'bob' })).body
    await post({ [one]: 'bob', [many]: ['bob'] })
    expect(await read(`${targets}/bob`)).toEqual(data)
    expect(await rows('links')).toMatchObject([{ target_id: expect.any(String) }, { target_id: expect.any(String) }])
    expect(await rows('entities')).toHaveLength(2)
  })

  it('stays with its target when the target is completed, renamed or loses its external identifier', async () => {
    await post({ [one]: 'bob', [many]: ['bob', 'eve'] })
    const before = await rows('links')
    expect((await send('POST', targets, { external_id: 'bob', attribute_values: { a: 1 } })).status).toBe(201)
    await send('PATCH', `${targets}/bob`, { external_id: 'robert' })
    expect(await values()).toEqual({ [one]: 'robert', [many]: ['robert', 'eve'] })
    const { id, record_id } = (await send('GET', `${targets}/robert`)).body.data
    const bob = record_id === undefined ? { id } : { record_id }
    await send('PATCH', `${targets}/robert`, { external_id: null })
    expect(await values()).toEqual({ [one]: bob, [many]: [bob, 'eve'] })
    expect([(await read()).version, await rows('links')]).toEqual([1, before])
    expect((await patch({ [one]: null })).status).toBe(200)
    expect(await values()).toEqual({ [many]: [bob, 'eve'] })
  })

  it('does not change the version if it is written again unchanged', async () => {
    await post({ [one]: 42, [many]: ['bob', 'eve'] })
    await patch({ [one]: '42 ', [many]: ['bob', { external_id: 'eve' }, 'bob'] })
    expect((await read()).version).toBe(1)
    await patch({ [many]: ['eve', 'bob'] })
    expect(await read()).toMatchObject({ version: 2, attribute_values: { [many]: ['eve', 'bob'] } })
  })

  it('creates one placeholder if two hundred concurrent requests name it', async () => {
    const requests = names('p', 200).map(external_id =>
      send('POST', '/v1/people', { external_id, attribute_values: { [one]: 'hub', [many]: ['hub', 'other'] } }),
    )
    expect(new Set((await Promise.all(requests)).map(reply => reply.status))).toEqual(new Set([201]))
    const hub = await read(`${targets}/hub`)
    expect([hub.state, hub.version]).toEqual(['placeholder', 1])
    expect([(await rows('entities')).length, (await rows('links')).length]).toEqual([202, 600])
    const creations = await service.sql('select 1 from changes where organization_id = $1 and version = 1', [shop.id])
    expect(creations).toHaveLength(202)
  })
})

describe('a refused request', () => {
  const links = { referrer: 'r', friends: ['f', 'g'], employer: 'e' }
  it.each([
    ['a wrong link', 400, 'PATCH', ada, { attribute_values: { ...links, suppliers: [true] } }],
    [
      'a wrong consent',
      400,
      'PATCH',
      ada,
      { attribute_values: links, consents: [{ consent_type_id: 9, channel: 'sms', state: true }] },
    ],
    ['a taken external identifier', 400, 'PATCH', ada, { attribute_values: links, external_id: 'bob' }],
    ['a taken external identifier', 409, 'POST', '/v1/people', { attribute_values: links, external_id: 'bob' }],
    ['a missing person', 500, 'PATCH', '/v1/people/nobody', { attribute_values: links }],
    ['a missing person', 404, 'PUT', '/v1/people/nobody', { attribute_values: links }],
    ['101 new targets', 400, 'PATCH', ada, { attribute_values: { referrer: 'r', friends: names('n', 100) } }],
    ['1,001 links', 400, 'PATCH', ada, { attribute_values: { friends: names('n', 1_001) } }],
  ])('fails because of %s (%i) and creates no placeholder', async (_description, status, method, path, body) => {
    await post({ city: 'Rome' })
    await send('POST', '/v1/people', { external_id: 'bob' })
    const before = [await rows('entities'), await rows('links')]
    expect((await send(method, path, body)).status).toBe(status)
    expect([await rows('entities'), await rows('links')]).toEqual(before)
  })

  it('says what to do instead of writing 1,001 links', async () => {
    await post({})
    const { status, body } = await patch({ friends: names('n', 1_001) })
    expect([status, body.details!.map(({ path }) => path)]).toEqual([400, ['/attribute_values/friends']])
    expect(body.details![0]!.message).toMatch(/at most 1000 links\. Model the relationship from the other side/)
  })

  it('is not caused by 100 new targets, nor by 1,000 links that already exist', async () => {
    for (let part = 0; part < 10; part += 1) {
      const friends = names('n', (part + 1) * 100)
      expect((await (part === 0 ? post({ friends }) : patch({ friends }))).status).toBe(200 + Number(part === 0))
    }
    expect((await values()).friends).toEqual(names('n', 1_000))
  })
})

describe('references=strict', () => {
  const strict = { Prefer: 'references=strict' }

  it.each([
    [{ referrer: 'eve' }, ['/attribute_values/referrer']],
    [{ employer: 'bob' }, ['/attribute_values/employer']],
    [{ friends: ['bob', 'eve'] }, ['/attribute_values/friends/1']],
    [{ friends: ['eve'] }, ['/attribute_values/friends/0']],
    [{ friends: ['bob', 'bob', 'eve'] }, ['/attribute_values/friends/2']],
    [
      { referrer: 'eve', suppliers: ['x', 'y'] },
      ['/attribute_values/referrer', '/attribute_values/suppliers/0', '/attribute_values/suppliers/1'],
    ],
  ])('refuses %j with the paths of the missing targets', async (given, where) => {
    await send('POST', '/v1/people', { external_id: 'bob' })
    await post({})
    const before = await rows('entities')
    const reply = await patch({ ...given, city: 'Rome' }, strict)
    expect([reply.status, reply.body.error, paths(reply)]).toEqual([400, 'invalid_parameter', where])
    expect(await rows('entities')).toEqual(before)
  })

  it('links to existing entities, including placeholders and the entity itself', async () => {
    await send('POST', '/v1/people', { external_id: 'bob', attribute_values: { referrer: 'ghost' } })
    expect((await post({ friends: ['bob', 'ghost', 'ada'], referrer: 'ada' }, strict)).status).toBe(201)
    expect(await values()).toEqual({ friends: ['bob', 'ghost', 'ada'], referrer: 'ada' })
  })
})

describe('a placeholder', () => {
  it.each([
    ['PATCH', { first_name: 'Bob' }, 'active', 2],
    ['PUT', { first_name: 'Bob' }, 'active', 2],
    ['PATCH', { attribute_values: { referrer: 'ada' } }, 'active', 2],
    ['PATCH', { email_consent: false }, 'active', 2],
    ['PATCH', { external_id: 'robert' }, 'active', 2],
    ['PATCH', {}, 'placeholder', 1],
    ['PATCH', { first_name: null, attribute_values: { city: null } }, 'placeholder', 1],
  ])(
    'is addressed by %s with %j, is then %s at version %i, and keeps its links',
    async (method, body, state, version) => {
      await post({ referrer: 'bob' })
      const { id } = await read('/v1/people/bob')
      expect((await send(method, '/v1/people/bob', body)).status).toBe(200)
      expect(await read(`/v1/people/internal/${id}`)).toMatchObject({ id, state, version })
      expect((await values()).referrer).toBe((body as { external_id?: string }).external_id ?? 'bob')
    },
  )

  it('is completed in a circle: two people can name each other before both exist', async () => {
    await post({ referrer: 'bob', friends: ['ada', 'bob'] })
    expect(
      (
        await send('POST', '/v1/people', {
          external_id: 'bob',
          attribute_values: { referrer: 'ada', friends: ['bob'] },
        })
      ).status,
    ).toBe(201)
    expect(await read('/v1/people/bob')).toMatchObject({
      state: 'active',
      attribute_values: { referrer: 'ada', friends: ['bob'] },
    })
    expect(await rows('entities')).toHaveLength(2)
  })
})

it('links of an archived attribute stay readable until its key is declared again and written', async () => {
  await post({ referrer: 'bob' })
  await send('PATCH', '/v1/schema/attributes/1', { state: 'archived' })
  const declaration = { key: 'referrer', owner: 'people', type: 'stack', target_stack: 'companies' }
  expect((await send('POST', '/v1/schema/attributes', declaration)).status).toBe(201)
  expect(await read()).toMatchObject({ version: 1, attribute_values: { referrer: 'bob' } })
  await patch({ referrer: 'bob' })
  expect(await read()).toMatchObject({ version: 2, attribute_values: { referrer: 'bob' } })
  expect(await rows('links')).toMatchObject([{ attribute_id: 5, target_stack_id: 1 }])
})
