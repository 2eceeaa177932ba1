import { beforeEach, describe, expect, it } from 'vitest'
import { readFeed } from '../../test/support/changes.ts'
import { readSegmentPeople } from '../../test/support/segments.ts'
import { type Reply, useService } from '../../test/support/service.ts'
import { dataOf, useShop } from '../../test/support/shop.ts'

const service = useService()
const shop = useShop(service, 'referrer', 'friends', 'employer')

const path = '/v1/segments'
const english = { key: 'english', filter: { language: 'en' } }
const create = (body: object) => shop.send('POST', path, body)
const patch = (key: string, body: object) => shop.send('PATCH', `${path}/${key}`, body)
const listed = async () => (await shop.send('GET', path)).body.data.items
const refusalOf = ({ status, body }: Reply) => [status, body.error, body.details?.map(detail => detail.path)]
const messageOf = ({ body }: Reply) => body.details![0]!.message

describe('a segment', () => {
  it('is created, listed, read, changed and deleted, and the change log has each step', async () => {
    const before = (await readFeed(shop)).head
    const created = await create({ ...english, name: ' English ', description: 'Speaks English' })
    expect([created.status, created.headers.get('location')]).toEqual([201, '/v1/segments/english'])
    const { created_at, updated_at, ...fields } = created.body.data
    expect(fields).toEqual({ ...english, name: 'English', description: 'Speaks English' })
    expect(created_at).toBe(updated_at)
    expect(await dataOf(shop.send('GET', `${path}/english`))).toEqual(created.body.data)
    expect(await listed()).toEqual([created.body.data])
    const patched = await dataOf(patch('english', { name: 'British', filter: { language: 'en-GB' } }))
    expect(patched).toMatchObject({ key: 'english', name: 'British', filter: { language: 'en-GB' } })
    expect(await dataOf(shop.send('DELETE', `${path}/english`))).toBe(true)
    expect((await shop.send('GET', `${path}/english`)).status).toBe(404)
    expect(await listed()).toEqual([])
    const { items } = await readFeed(shop, `after=${before}`)
    expect(items).toMatchObject([
      { subject: 'segment', id: 1, operation: 'create', before: {}, after: { ...english, name: 'English' } },
      {
        ...{ subject: 'segment', id: 1, operation: 'update' },
        before: { name: 'English', filter: { language: 'en' } },
        after: { name: 'British', filter: { language: 'en-GB' } },
      },
      { subject: 'segment', id: 1, operation: 'delete', before: { key: 'english', name: 'British' }, after: {} },
    ])
  })

  it('of a deleted key is another one, with another id', async () => {
    await dataOf(create(english))
    await dataOf(shop.send('DELETE', `${path}/english`))
    await dataOf(create(english))
    const { items } = await readFeed(shop, 'subject=segment')
    expect(items.map(({ id }) => id)).toEqual([1, 1, 2])
  })

  it('is stored with warnings of keys that nobody carries, and refused under handling=strict', async () => {
    await dataOf(shop.send('POST', '/v1/people', { external_id: 'ada', attribute_values: { city: 'Rome' } }))
    const misspelt = { key: 'romans', filter: { 'attribute_values.ctiy': 'Rome' } }
    const warned = (path: string, message = 'is not declared, and no person carries it') => [{ path, message }]
    const strict = { Prefer: 'handling=strict' }
    const send = (method: string, at: string, body: object, headers: Record<string, string> = {}) =>
      shop.send(method, `${path}${at}`, body, headers)
    const { head } = await readFeed(shop)
    const refused = await send('POST', '', misspelt, strict)
    expect(refusalOf(refused)).toEqual([400, 'invalid_parameter', ['/filter/attribute_values.ctiy']])
    expect([await listed(), (await readFeed(shop)).head]).toEqual([[], head])
    const created = await send('POST', '', misspelt, { 'Idempotency-Key': 'one' })
    expect(created.status).toBe(201)
    expect(created.body.data.warnings).toEqual(warned('/filter/attribute_values.ctiy'))
    expect((await send('POST', '', misspelt, { 'Idempotency-Key': 'one' })).body.data).toEqual(created.body.data)
    expect((await send('POST', '', misspelt, { 'Idempotency-Key': 'one', ...strict })).status).toBe(422)
    expect((await shop.send('GET', `${path}/romans`)).body.data).not.toHaveProperty('warnings')

    const filter = { 'attribute_values.city': 'Rome', 'attribute_values.friends': { $some: misspelt.filter } }
    const at = '/filter/attribute_values.friends/$some/attribute_values.ctiy'
    expect(refusalOf(await send('PATCH', '/romans', { filter }, strict))).toEqual([400, 'invalid_parameter', [at]])
    expect((await send('PATCH', '/romans', { filter })).body.data).toMatchObject({ filter, warnings: warned(at) })
    const named = await send('POST', '', { key: 'others', filter: { $not: { $segment: 'romans' } } })
    expect(named.body.data.warnings).toMatchObject([{ path: '/filter/$not/$segment' }])
    expect((await send('PATCH', '/romans', { name: 'Romans' }, strict)).body.data).not.toHaveProperty('warnings')
    const right = await send('PATCH', '/romans', { filter: { 'attribute_values.city': 'Rome' } }, strict)
    expect([right.status, right.body.data.warnings]).toEqual([200, undefined])
    const near = await send('PATCH', '/romans', { filter: { 'attribute_values.freinds': 'ada' } })
    expect(near.body.data.warnings).toMatchObject([{ message: expect.stringContaining('"attribute_values.friends"?') }])
    expect((await send('PATCH', '/none', { filter: misspelt.filter })).status).toBe(404)
    expect(refusalOf(await create({ ...misspelt, key: 'others' }))[0]).toBe(409)
  })

  it('that is sent again as it is changes nothing', async () => {
    const filter = { $or: [{ language: 'en', first_name: 'Ada' }, { email: { $exists: true } }] }
    await dataOf(create({ key: 'both', filter }))
    const { head } = await readFeed(shop)
    const reordered = { $or: [{ first_name: 'Ada', language: 'en' }, { email: { $exists: true } }] }
    await dataOf(patch('both', { name: 'both', filter: reordered }))
    await dataOf(patch('both', {}))
    expect((await readFeed(shop)).head).toBe(head)
  })

  it('reads back its filter as it was sent', async () => {
    const filter = {
      'attribute_values.score': { $in: [1, 0.1, 9007199254740991, null] },
      $and: [{ 'attribute_values.a.b': 'é\\"' }, { $not: { state: 'placeholder' } }],
      consents: { $some: { consent_type_id: 1, channel: 'email', state: true } },
    }
    expect((await dataOf(create({ key: 'all', filter }))).filter).toEqual(filter)
  })

  it('is refused with the path of the value, and nothing is stored', async () => {
    await dataOf(create(english))
    const { head } = await readFeed(shop)
    const cases: [Promise<Reply>, unknown[]][] = [
      [create({ ...english, filter: {} }), [409, 'duplicate_entry', ['/key']]],
      [create({ key: 'Upper', filter: {} }), [400, 'invalid_parameter', ['/key']]],
      [create({ key: 'a' }), [400, 'invalid_parameter', ['/filter']]],
      [create({ key: 'a', filter: [] }), [400, 'invalid_json', ['/filter']]],
      [create({ key: 'a', filter: { nothing: 1 } }), [400, 'invalid_parameter', ['/filter/nothing']]],
      [create({ key: 'a', filter: { $segment: 'unknown' } }), [400, 'invalid_parameter', ['/filter/$segment']]],
      [create({ key: 'a', filter: { $segment: ['english'] } }), [400, 'invalid_parameter', ['/filter/$segment']]],
      [create({ key: 'a', filter: { $segment: 'a' } }), [400, 'invalid_parameter', ['/filter/$segment']]],
      [
        create({ key: 'a', filter: { 'attribute_values.employer': { $some: { $segment: 'english' } } } }),
        [400, 'invalid_parameter', ['/filter/attribute_values.employer/$some/$segment']],
      ],
      [create({ key: 'a', filter: { email: { $in: ['x'.repeat(33_000)] } } }), [400, 'invalid_parameter', ['/filter']]],
      [shop.send('POST', `${path}?key=a&filter[first_name]=1`), [400, 'invalid_parameter', ['/filter']]],
      [shop.send('PATCH', `${path}/english?filter[first_name]=1`), [400, 'invalid_parameter', ['/filter']]],
      [patch('english', { key: 'other' }), [400, 'invalid_parameter', ['/key']]],
      [patch('unknown', { name: 'x' }), [404, 'not_found', []]],
      [shop.send('DELETE', `${path}/unknown`), [404, 'not_found', []]],
      [shop.send('GET', `${path}/unknown/people`), [404, 'not_found', []]],
    ]
    for (const [reply, expected] of cases) expect(refusalOf(await reply)).toEqual(expected)
    expect((await readFeed(shop)).head).toBe(head)
    expect(await listed()).toHaveLength(1)
  })

  it('needs schema:read to be seen, schema:write to be changed, and people:read for its people', async () => {
    await dataOf(create(english))
    const senderWith = async (scope: string) => service.sender(await service.tokenFor(shop.key, scope))
    const [reader, writer, people] = await Promise.all(['schema:read', 'schema:write', 'people:read'].map(senderWith))
    expect((await reader!('POST', path, { key: 'a', filter: {} })).status).toBe(403)
    expect((await reader!('DELETE', `${path}/english`)).status).toBe(403)
    expect((await reader!('GET', `${path}/english/people`)).status).toBe(403)
    expect((await writer!('GET', path)).status).toBe(403)
    expect((await writer!('PATCH', `${path}/english`, { name: 'x' })).status).toBe(200)
    expect((await people!('GET', `${path}/english/people`)).status).toBe(200)
    expect((await people!('GET', path)).status).toBe(403)
    await dataOf(create({ key: 'acme', filter: { 'attribute_values.employer': { $some: { external_id: 'acme' } } } }))
    expect((await people!('GET', `${path}/acme/people`)).status).toBe(403)
    expect((await people!('POST', '/v1/people/filter', { filter: { $segment: 'acme' } })).status).toBe(403)
  })

  it('is one of at most 200 in an organization', async () => {
    await service.sql(
      `insert into segments (organization_id, id, key, name, filter, created_at, updated_at, version)
       select $1, n, 'made_' || n, 'x', '{}', now(), now(), 1000 from generate_series(1, 199) as n`,
      [shop.id],
    )
    await dataOf(shop.send('POST', '/v1/schema/stacks', { key: 'orders', kind: 'item' }))
    expect((await create(english)).status).toBe(201)
    const refused = await create({ key: 'more', filter: {} })
    expect([refused.status, refused.body.message]).toEqual([400, expect.stringContaining('limit of segments')])
    await dataOf(shop.send('DELETE', `${path}/made_7`))
    expect((await create({ key: 'more', filter: {} })).status).toBe(201)
  })
})

describe('$segment in a filter', () => {
  const filtered = async (filter: object) =>
    (await dataOf(shop.send('POST', '/v1/people/filter', { filter, sort_direction: 'asc' }))).items.map(
      (person: { external_id: string }) => person.external_id,
    )
  beforeEach(async () => {
    for (const [external_id, language, first_name, friends] of [
      ['ada', 'en', 'Ada', ['bob']],
      ['bob', 'it', 'Bob', []],
      ['eve', 'en', 'Eve', ['ada', 'bob']],
    ] as const)
      await dataOf(
        shop.send('POST', '/v1/people', { external_id, language, first_name, attribute_values: { friends } }),
      )
    await dataOf(create(english))
  })

  it('stands for the filter of the segment, wherever it is', async () => {
    expect(await filtered({ $segment: 'english' })).toEqual(['ada', 'eve'])
    expect(await filtered({ $not: { $segment: 'english' } })).toEqual(['bob'])
    expect(await filtered({ $segment: 'english', first_name: 'Eve' })).toEqual(['eve'])
    expect(await filtered({ $or: [{ $segment: 'english' }, { first_name: 'Bob' }] })).toEqual(['ada', 'bob', 'eve'])
    expect(await filtered({ 'attribute_values.friends': { $some: { $segment: 'english' } } })).toEqual(['eve'])
    const reply = await shop.send('POST', '/v1/people/filter?filter[$segment]=english')
    expect(reply.body.data.items).toHaveLength(2)
  })

  it('follows a change of the segment at once, also by way of another one', async () => {
    await dataOf(create({ key: 'named', filter: { $segment: 'english', first_name: { $exists: true } } }))
    expect(await filtered({ $segment: 'named' })).toEqual(['ada', 'eve'])
    await dataOf(patch('english', { filter: { language: 'it' } }))
    expect(await filtered({ $segment: 'named' })).toEqual(['bob'])
  })

  it('never leads back to its segment: the refusal names the circle, and nothing changes', async () => {
    await dataOf(create({ key: 'b', filter: { $or: [{ $segment: 'english' }] } }))
    await dataOf(create({ key: 'c', filter: { $not: { $segment: 'b' } } }))
    const refused = await patch('english', { filter: { first_name: 'x', $segment: 'c' } })
    expect(refusalOf(refused)).toEqual([400, 'invalid_parameter', ['/filter/$segment']])
    expect(messageOf(refused)).toContain('english → c → b → english')
    expect(messageOf(await patch('english', { filter: { $segment: 'english' } }))).toContain('english → english')
    expect((await listed())[0].filter).toEqual(english.filter)
  })

  it('counts the levels, conditions and relationships of the segment as its own', async () => {
    await dataOf(create({ key: 'deep', filter: { $and: [{ $or: [{ $and: [{ $or: [{ language: 'en' }] }] }] }] } }))
    expect(await filtered({ $segment: 'deep' })).toEqual(['ada', 'eve'])
    const nested = await shop.send('POST', '/v1/people/filter', { filter: { $not: { $segment: 'deep' } } })
    expect(refusalOf(nested)).toEqual([400, 'invalid_parameter', ['/filter/$not/$segment']])
    expect(messageOf(nested)).toContain('the segment deep, whose filter is invalid at /filter/$and/0/$or/0/$and/0')
    expect(messageOf(nested)).toContain('nested deeper than 5 levels')
    const conditions = Array.from({ length: 24 }, (_, n) => ({ first_name: `n${n}` }))
    await dataOf(create({ key: 'many', filter: { $or: conditions } }))
    await dataOf(create({ key: 'twice', filter: { $or: [{ $segment: 'many' }, { $segment: 'many' }] } }))
    const counted = { $segment: 'twice', first_name: 'x' }
    expect(messageOf(await shop.send('POST', '/v1/people/filter', { filter: counted }))).toContain('50 conditions')
    const friends = (filter: object) => ({ 'attribute_values.friends': { $some: filter } })
    await dataOf(create({ key: 'far', filter: friends(friends({ language: 'it' })) }))
    expect(await filtered(friends({ $segment: 'far' }))).toEqual([])
    const tooFar = await shop.send('POST', '/v1/people/filter', { filter: friends(friends({ $segment: 'far' })) })
    expect(tooFar.status).toBe(400)
  })

  it('keeps a change from making the filter of another segment invalid', async () => {
    const friends = (filter: object) => ({ 'attribute_values.friends': { $some: filter } })
    await dataOf(create({ key: 'far', filter: friends(friends({ $segment: 'english' })) }))
    const refused = await patch('english', { filter: friends(friends({ language: 'it' })) })
    expect(refusalOf(refused)).toEqual([400, 'invalid_parameter', ['/filter']])
    expect(messageOf(refused)).toContain('makes the segment far invalid')
  })

  it('keeps its segment from being deleted', async () => {
    await dataOf(
      create({ key: 'b', filter: { 'attribute_values.friends': { $none: { $and: [{ $segment: 'english' }] } } } }),
    )
    const refused = await shop.send('DELETE', `${path}/english`)
    expect([refused.status, refused.body.error, refused.body.message]).toEqual([
      409,
      'invalid_parameter',
      expect.stringContaining('The segment b names this one'),
    ])
    await dataOf(shop.send('DELETE', `${path}/b`))
    await dataOf(shop.send('DELETE', `${path}/english`))
  })

  it('warns of keys that no person carries, and names the segment', async () => {
    await dataOf(create({ key: 'typo', filter: { 'attribute_values.ctiy': 'Rome' } }))
    const { warnings } = await dataOf(shop.send('POST', '/v1/people/filter', { filter: { $segment: 'typo' } }))
    expect(warnings).toEqual([
      { path: '/filter/$segment', message: expect.stringContaining('the segment typo, whose key "ctiy"') },
    ])
    expect((await dataOf(shop.send('GET', `${path}/typo/people`))).warnings).toHaveLength(1)
  })
})

describe('the people of a segment', () => {
  it('are those that its filter finds, in pages', async () => {
    const ids: string[] = []
    for (let n = 0; n < 7; n += 1)
      ids.push((await dataOf(shop.send('POST', '/v1/people', { language: n === 3 ? 'it' : 'en' }))).id)
    const expected = ids.filter((_, n) => n !== 3)
    await dataOf(create(english))
    expect(await readSegmentPeople(shop, 'english', 2)).toEqual(expected)
    const first = await dataOf(shop.send('GET', `${path}/english/people`))
    expect(first.items.map(({ id }: { id: string }) => id)).toEqual(expected.toReversed())
    expect(first.has_more).toBe(false)
    expect(refusalOf(await shop.send('GET', `${path}/english/people?size=0`))).toEqual([
      400,
      'invalid_parameter',
      ['/size'],
    ])
    expect((await shop.send('GET', `${path}/english/people?after_id=x`)).status).toBe(400)
    expect((await shop.send('GET', `${path}/english/people?other=1`)).status).toBe(400)
  })

  it('take what a filter takes: fields, include, count, sort and the cursor', async () => {
    await dataOf(create(english))
    for (const [external_id, last_name] of [
      ['a', 'B'],
      ['b', 'C'],
      ['c', 'A'],
    ])
      await dataOf(
        shop.send('POST', '/v1/people', {
          external_id,
          last_name,
          language: 'en',
          attribute_values: { referrer: 'a' },
        }),
      )
    const get = (query: string) => shop.send('GET', `${path}/english/people?${query}`)
    const sorted = await get('sort=last_name:desc&fields=external_id&count=true&size=2')
    // The first request that sorts by a field starts its index.
    expect([200, 503]).toContain(sorted.status)
    const page = await dataOf(get('sort=last_name:desc&fields=external_id&count=true&size=2'))
    expect(page).toMatchObject({ items: [{ external_id: 'b' }, { external_id: 'a' }], count: 3, has_more: true })
    expect(page.sequence).toBeGreaterThan(0)
    const cursor = encodeURIComponent(page.next_cursor)
    expect((await dataOf(get(`sort=last_name:desc&fields=external_id&cursor=${cursor}`))).items).toEqual([
      { external_id: 'c' },
    ])
    const [item] = (await dataOf(get('include=referrer&size=1'))).items
    expect(item.included.referrer.external_id).toBe('a')
    for (const [query, expected] of [
      ['sort=nothing', '/sort'],
      ['sort=last_name&cursor=x', '/cursor'],
      ['fields=nothing', '/fields/0'],
      ['include=city', '/include/0'],
      ['count=maybe', '/count'],
    ] as const)
      expect([query, ...refusalOf(await get(query))]).toEqual([query, 400, 'invalid_parameter', [expected]])
  })

  it('are refused with what to repair when the filter names what was archived', async () => {
    const { id } = await dataOf(
      shop.send('POST', '/v1/schema/consent-types', { key: 'news', channels: [{ channel: 'email' }] }),
    )
    const filter = { consents: { $some: { consent_type_id: id, channel: 'email', state: true } } }
    await dataOf(create({ key: 'readers', filter }))
    await dataOf(create({ key: 'others', filter: { $not: { $segment: 'readers' } } }))
    await dataOf(shop.send('PATCH', `/v1/schema/consent-types/${id}`, { state: 'archived' }))
    for (const key of ['readers', 'others']) {
      const refused = await shop.send('GET', `${path}/${key}/people`)
      expect([refused.status, refused.body.error]).toEqual([409, 'invalid_parameter'])
      expect(refused.body.message).toContain(`PATCH /v1/segments/${key}`)
      expect(messageOf(refused)).toContain('archived consent type')
    }
    expect(await listed()).toHaveLength(2)
    // The test repairs the segment, so the segment that names it is valid again.
    await dataOf(patch('readers', { filter: { language: 'en' } }))
    await dataOf(shop.send('GET', `${path}/others/people`))
  })
})
