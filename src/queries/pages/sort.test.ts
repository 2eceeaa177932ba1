import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { insertPeople } from '../../../test/support/many-people.ts'
import { type Organization, type Reply, useOwnService } from '../../../test/support/service.ts'
import { createShop, useSharedShop, useShop } from '../../../test/support/shop.ts'
import { expectSortTerms } from '../../../test/support/sort-terms.ts'
import { backfillIndexes } from '../../entities/indexes/index-backfill.ts'
import { maxFewCandidates } from './count.ts'

const service = useOwnService()

type Item = { id?: string; record_id?: string; external_id: string | null; attribute_values: Record<string, unknown> }
type Sort = { field: string; direction?: 'asc' | 'desc'; measure?: { op: string } }
type Query = { filter?: object; sort: Sort; size?: number }

async function readPage({ send }: Pick<Organization, 'send'>, path: string, { size, ...body }: Query, cursor?: string) {
  const reply = await send('POST', path, { ...body, cursor_configuration: { size, cursor } })
  expect(reply, reply.body.message).toMatchObject({ status: 200 })
  return reply.body.data as { items: Item[]; has_more: boolean; next_cursor: string | null }
}

/** Reads all pages, and checks that each but the last is full. */
async function readAll(organization: Pick<Organization, 'send'>, path: string, query: Query): Promise<Item[]> {
  const items: Item[] = []
  for (let cursor: string | undefined; ; ) {
    const page = await readPage(organization, path, query, cursor)
    items.push(...page.items)
    expect(page.next_cursor === null).toBe(!page.has_more)
    if (page.next_cursor === null) return items
    expect(page.items).toHaveLength(query.size ?? 50)
    cursor = page.next_cursor
  }
}

const namesOf = (items: Item[]) => items.map(({ external_id }) => external_id)
const detailsOf = ({ body }: Reply) => body.details?.map(({ path, message }) => `${path} ${message}`)

const attribute = { owner: 'people', indexed: true }

async function createAll({ send }: Organization, bodies: object[]) {
  for (let index = 0; index < bodies.length; index += 100) {
    const operations = bodies.slice(index, index + 100).map(body => ({ op: 'create', body }))
    expect((await send('POST', '/v1/people/batch', { operations })).body.data.failed).toBe(0)
  }
}

it.each(['asc', 'desc'] as const)(
  'a sorted filter finds the few whom links lead to among many: %s',
  async direction => {
    const organization = await createShop(service, 'friends')
    const { sql } = service
    await insertPeople(sql, organization.id, 1_500)
    const text = `update entities set last_name = 'N' || right(external_id, 2) where organization_id = $1 and external_id !~ '[05]$'`
    await sql(text, [organization.id])
    const popular = [3, 400, 401, 777, 1_000, 1_203, 1_499].map(n => `p${n}`)
    for (const name of ['p5', 'p6'])
      await organization.client.people.patch(name, { attribute_values: { friends: popular } })
    const all = await readAll(organization, '/v1/people/list', { sort: { field: 'last_name', direction }, size: 500 })
    const expected = namesOf(all).filter(name => popular.includes(name!))
    for (const filter of [
      { 'incoming.people.friends': { $some: {} } },
      { 'incoming.people.friends': { $count: { $gte: 2 } } },
      { $not: { 'incoming.people.friends': { $none: {} } } },
      { 'incoming.people.friends': { $some: {} }, external_id: { $neq: 'p2' } },
    ])
      for (const size of [1, 2, 50]) {
        const found = await readAll(organization, '/v1/people/filter', {
          filter,
          sort: { field: 'last_name', direction },
          size,
        })
        expect(namesOf(found)).toEqual(expected)
      }
  },
)

describe('a sorted list', () => {
  const organization = useSharedShop(
    service,
    'score',
    { ...attribute, key: 'joined', type: 'datetime' },
    { ...attribute, key: 'vip', type: 'boolean' },
    { ...attribute, key: 'born_on', type: 'date' },
  )
  beforeAll(async () => {
    await createAll(organization, [
      { external_id: '1', last_name: 'Ärzte', attribute_values: { score: 10, joined: '2020-01-01T00:00:00Z' } },
      { external_id: '2', last_name: 'zoe', attribute_values: { score: 9, joined: '2020-01-01T00:30:00+01:00' } },
      { external_id: '3', attribute_values: { score: -1, vip: true } },
      { external_id: '4', last_name: 'arm', attribute_values: { vip: false } },
      {
        external_id: '5',
        last_name: 'Arm',
        push_notification_consent: true,
        attribute_values: { born_on: '1990-01-01' },
      },
      {
        external_id: '6',
        last_name: 'Zoe',
        push_notification_consent: false,
        attribute_values: { born_on: '1989-12-31' },
      },
      { external_id: '7' },
    ])
  })

  it.each<[string, string, string]>([
    ['last_name', '5 4 1 6 2 3 7', '2 6 1 4 5 7 3'],
    ['external_id', '1 2 3 4 5 6 7', '7 6 5 4 3 2 1'],
    ['created_at', '1 2 3 4 5 6 7', '7 6 5 4 3 2 1'],
    ['push_notification_consent', '6 5 1 2 3 4 7', '5 6 7 4 3 2 1'],
    ['attribute_values.score', '3 2 1 4 5 6 7', '1 2 3 7 6 5 4'],
    ['attribute_values.joined', '2 1 3 4 5 6 7', '1 2 7 6 5 4 3'],
    ['attribute_values.vip', '4 3 1 2 5 6 7', '3 4 7 6 5 2 1'],
    ['attribute_values.born_on', '6 5 1 2 3 4 7', '5 6 7 4 3 2 1'],
  ])(
    'by %s has values in order, then those without, and ties by identifier, on pages of any size',
    async (field, ascending, descending) => {
      for (const size of [1, 2, 3, 7, 500])
        for (const [direction, expected] of [
          ['asc', ascending],
          ['desc', descending],
        ] as const) {
          const items = await readAll(organization, '/v1/people/list', { sort: { field, direction }, size })
          expect(namesOf(items).join(' '), `${direction} ${size}`).toBe(expected)
        }
      const standard = await readPage(organization, '/v1/people/list', { sort: { field } })
      expect([namesOf(standard.items).join(' '), standard.has_more, standard.next_cursor]).toEqual([
        ascending,
        false,
        null,
      ])
    },
  )

  it('shows each person as a read by identifier does', async () => {
    const { items } = await readPage(organization, '/v1/people/list', { sort: { field: 'last_name' } })
    for (const item of items)
      expect(item).toEqual((await organization.send('GET', `/v1/people/${item.external_id}`)).body.data)
  })

  it('takes its sort and cursor from a query too', async () => {
    const first = await organization.send(
      'POST',
      '/v1/people/list?sort[field]=last_name&sort[direction]=desc&cursor_configuration[size]=3',
    )
    expect(namesOf(first.body.data.items)).toEqual(['2', '6', '1'])
    const cursor = first.body.data.next_cursor
    const query = `sort[field]=last_name&sort[direction]=desc&cursor_configuration[size]=3&cursor_configuration[cursor]=${cursor}`
    expect(namesOf((await organization.send('POST', `/v1/people/list?${query}`)).body.data.items)).toEqual([
      '4',
      '5',
      '7',
    ])
  })

  it('has no next_cursor if it is not sorted', async () => {
    for (const path of ['/v1/people/list', '/v1/people/filter'])
      expect(Object.keys((await organization.send('POST', path, {})).body.data)).toEqual(['items', 'has_more'])
  })

  it('follows writes at once: of values, deletions, restores and placeholders', async () => {
    const own = await createShop(service, 'referrer')
    const { send } = own
    const names = async () =>
      namesOf(await readAll(own, '/v1/people/list', { sort: { field: 'first_name' } })).join(' ')
    expect(await names()).toBe('')
    await send('POST', '/v1/people', { external_id: 'b', first_name: 'B', attribute_values: { referrer: 'later' } })
    await send('POST', '/v1/people', { external_id: 'a', first_name: 'a' })
    expect(await names()).toBe('a b later')
    await send('PATCH', '/v1/people/later', { first_name: 'aa' })
    expect(await names()).toBe('a later b')
    await send('PATCH', '/v1/people/a', { first_name: null })
    expect(await names()).toBe('later b a')
    const { id } = (await send('GET', '/v1/people/later')).body.data
    await send('DELETE', '/v1/people/later')
    expect(await names()).toBe('b a')
    await send('POST', `/v1/people/internal/${id}/restore`)
    expect(await names()).toBe('later b a')
    const updated = namesOf(await readAll(own, '/v1/people/list', { sort: { field: 'updated_at', direction: 'desc' } }))
    expect(updated).toEqual(['later', 'a', 'b'])
  })

  it('sorts the records of one stack by what records have', async () => {
    const total = { owner: 'orders', key: 'total', type: 'number', indexed: true } as const
    const own = await createShop(service, total, { key: 'others', kind: 'item' })
    for (const [stack, external_id, value] of [
      ['orders', 'a', 3],
      ['others', 'x', 2],
      ['orders', 'b', 1],
      ['orders', 'c', null],
    ])
      await own.send('POST', `/v1/stacks/${stack}`, { external_id, attribute_values: { total: value } })
    const byTotal = { field: 'attribute_values.total' }
    expect(namesOf(await readAll(own, '/v1/stacks/orders/list', { sort: byTotal, size: 2 }))).toEqual(['b', 'a', 'c'])
    const filter = { 'attribute_values.total': { $gt: 1 } }
    expect(namesOf(await readAll(own, '/v1/stacks/orders/filter', { sort: byTotal, filter }))).toEqual(['a'])
    const reply = await own.send('POST', '/v1/stacks/orders/list', { sort: { field: 'last_name' } })
    expect(detailsOf(reply)).toEqual([
      '/sort/field is not a field that sorts records: use external_id, created_at, updated_at or attribute_values.<key>',
    ])
  })

  it('needs the scope of a list', async () => {
    const send = service.sender(await service.tokenFor(organization.key, 'records:read'))
    expect(await send('POST', '/v1/people/list', { sort: { field: 'language' } })).toMatchObject({ status: 403 })
    const rows = await service.sql("select from sort_indexes where organization_id = $1 and field = 'language'", [
      organization.id,
    ])
    expect(rows).toEqual([])
  })
})

describe('a sorted page of a large part of the memory', () => {
  it('is sent in parts in its order, and pages on after entities that were deleted meanwhile', async () => {
    const organization = await service.organization()
    const large = Object.fromEntries(Array.from({ length: 7 }, (_, index) => [`k${index}`, 'é'.repeat(30_000)]))
    for (const external_id of ['b', 'd', 'a', 'c'])
      await organization.send('POST', '/v1/people', { external_id, last_name: external_id, attribute_values: large })
    await organization.send('POST', '/v1/people', { external_id: 'e' })
    for (const size of [2, 3, 500]) {
      const sort = { field: 'last_name' }
      expect(namesOf(await readAll(organization, '/v1/people/list', { sort, size }))).toEqual(['a', 'b', 'c', 'd', 'e'])
      const filter = { last_name: { $exists: true } }
      const items = await readAll(organization, '/v1/people/filter', { sort, size, filter })
      expect(namesOf(items)).toEqual(['a', 'b', 'c', 'd'])
      expect(items[0]!.attribute_values).toEqual(large)
    }
  })
})

describe('a sort is refused', () => {
  const organization = useSharedShop(
    service,
    { key: 'plain', owner: 'people', type: 'text' },
    { key: 'anything', owner: 'people', type: 'json' },
    'referrer',
    { ...attribute, key: 'tags', type: 'text', cardinality: 'many' },
    { ...attribute, key: 'old', type: 'text' },
  )
  beforeAll(() => organization.ok('PATCH', '/v1/schema/attributes/5', { state: 'archived' }))

  const countIndexes = async () =>
    (await service.sql('select from sort_indexes where organization_id = $1', [organization.id])).length

  it.each(['/v1/people/list', '/v1/people/filter'])(
    'by a field that has no order or no index, with the path: %s',
    async path => {
      const fault = async (field: unknown) => detailsOf(await organization.send('POST', path, { sort: { field } }))
      expect(await fault('attribute_values.plain')).toEqual([
        `/sort/field is not indexed: PATCH /v1/schema/attributes/1 {"indexed": true}`,
      ])
      expect(await fault('attribute_values.anything')).toEqual([
        expect.stringMatching('^/sort/field has type `json`.*: sort by'),
      ])
      expect(await fault('attribute_values.referrer')).toEqual([
        expect.stringMatching('^/sort/field is a relationship.*: sort by'),
      ])
      expect(await fault('attribute_values.tags')).toEqual([
        expect.stringMatching('^/sort/field has cardinality `many`.*: sort by'),
      ])
      for (const field of ['attribute_values.old', 'attribute_values.unknown', 'attribute_values.'])
        expect(await fault(field)).toEqual([
          '/sort/field is not a declared attribute. Only a declared, indexed attribute sorts a page',
        ])
      for (const field of [
        'id',
        'state',
        'consents',
        'version',
        '',
        'attribute_values',
        'constructor',
        'last_name '.repeat(2),
      ])
        expect((await fault(field))?.[0]).toMatch(/^\/sort\/field is not a field that sorts people: use external_id/)
      for (const field of [null, 1, ['last_name'], {}]) expect((await fault(field))?.[0]).toMatch(/^\/sort\/field /)
      expect(await countIndexes()).toBe(0)
    },
  )

  it.each([
    ['sorting_type', '/v1/people/list', { sorting_type: 'asc' }, '/sorting_type'],
    ['sort_direction', '/v1/people/filter', { sort_direction: 'asc' }, '/sort_direction'],
    [
      'after_id',
      '/v1/people/list',
      { cursor_configuration: { after_id: '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f' } },
      '/cursor_configuration/after_id',
    ],
    ['another member', '/v1/people/list', { sort: { field: 'email', nulls: 'first' } }, '/sort/nulls'],
    ['another direction', '/v1/people/list', { sort: { field: 'email', direction: 'up' } }, '/sort/direction'],
    ['no field', '/v1/people/list', { sort: {} }, '/sort/field'],
    ['null', '/v1/people/filter', { sort: null }, '/sort'],
    [
      'a malformed cursor',
      '/v1/people/list',
      { cursor_configuration: { cursor: 'x' } },
      '/cursor_configuration/cursor',
    ],
    ['a faulty filter', '/v1/people/filter', { filter: { nobody: 1 } }, '/filter/nobody'],
  ])('with %s', async (_, path, body, fault) => {
    const reply = await organization.send('POST', path, { sort: { field: 'email' }, ...body })
    expect(reply.status).toBe(400)
    expect(reply.body.details!.map(detail => detail.path)).toEqual([fault])
    expect(await countIndexes()).toBe(0)
  })

  it('with the cursor of another field or direction, and a cursor of a sorted page without its sort', async () => {
    const own = await service.organization()
    for (const external_id of ['a', 'b']) await own.send('POST', '/v1/people', { external_id })
    const cursorOf = async (sort: Sort) => (await readPage(own, '/v1/people/list', { sort, size: 1 })).next_cursor!
    const cursor = await cursorOf({ field: 'last_name' })
    for (const sort of [{ field: 'first_name' }, { field: 'last_name', direction: 'desc' }, undefined]) {
      const reply = await own.send('POST', '/v1/people/list', { sort, cursor_configuration: { cursor } })
      expect(reply.status).toBe(400)
      expect(detailsOf(reply)).toEqual(['/cursor_configuration/cursor is the `next_cursor` of a page in another order'])
    }
    const items = namesOf(
      (await readPage(own, '/v1/people/list', { sort: { field: 'last_name', direction: 'asc' } }, cursor)).items,
    )
    expect(items).toEqual(['b'])
  })
})

describe('a sorted filter', () => {
  const organization = useSharedShop(service, 'city', 'score', 'bought', { key: 'note', owner: 'people', type: 'text' })
  let people: Item[]
  beforeAll(async () => {
    await createAll(
      organization,
      Array.from({ length: 400 }, (_, index) => ({
        external_id: `p${String(index).padStart(3, '0')}`,
        first_name: ['Ada', 'ada', 'Äda', null, 'Bob'][index % 5],
        attribute_values: { city: `city ${index % 3}`, score: (index * 7919) % 101, note: `note ${index % 20}` },
      })),
    )
    await backfillIndexes(service.db)
    people = await readAll(organization, '/v1/people/list', { sort: { field: 'created_at' }, size: 500 })
    expect(people).toHaveLength(400)
  })

  const read = (filter: object, sort: Sort, size?: number) =>
    readAll(organization, '/v1/people/filter', { filter, sort, size: size! })

  it.each<[string, object, (item: Item) => boolean]>([
    [
      'with an index for the condition',
      { 'attribute_values.city': 'city 1' },
      item => item.attribute_values.city === 'city 1',
    ],
    [
      'without one',
      { 'attribute_values.note': { $in: ['note 7', 'note 8'] } },
      item => /^note [78]$/.test(String(item.attribute_values.note)),
    ],
    [
      'with an index for a part',
      { 'attribute_values.city': { $neq: 'city 1' }, external_id: { $gte: 'p100' } },
      item => item.attribute_values.city !== 'city 1' && item.external_id! >= 'p100',
    ],
    [
      'with candidates that come twice',
      { $or: [{ 'attribute_values.city': 'city 1' }, { external_id: { $lt: 'p200' } }] },
      item => item.attribute_values.city === 'city 1' || item.external_id! < 'p200',
    ],
    ['that nothing satisfies', { 'attribute_values.note': 'nothing' }, () => false],
    ['that everything satisfies', {}, () => true],
  ])('%s has exactly the matches, in order, on pages of any size', async (_, filter, isMatch) => {
    const matches = people.filter(isMatch)
    const byScore = matches.toSorted(
      (a, b) => Number(a.attribute_values.score) - Number(b.attribute_values.score) || (a.id! < b.id! ? -1 : 1),
    )
    for (const size of [7, 50, 500]) {
      const field = 'attribute_values.score'
      expect(namesOf(await read(filter, { field }, size))).toEqual(namesOf(byScore))
      expect(namesOf(await read(filter, { field, direction: 'desc' }, size))).toEqual(namesOf(byScore.toReversed()))
    }
    // The walk and the sort of candidates agree on all other fields, too.
    for (const field of ['first_name', 'updated_at', 'attribute_values.city'])
      for (const direction of ['asc', 'desc'] as const) {
        const all = namesOf(await read({}, { field, direction }, 500))
        const wanted = new Set(namesOf(matches))
        expect(namesOf(await read(filter, { field, direction }, 20)), field).toEqual(
          all.filter(name => wanted.has(name)),
        )
      }
  })

  it('has the warnings of a filter beside its cursor', async () => {
    const filter = { 'attribute_values.nobody': { $exists: false } }
    const reply = await organization.send('POST', '/v1/people/filter', {
      filter,
      sort: { field: 'email' },
      cursor_configuration: { size: 1 },
    })
    expect(Object.keys(reply.body.data)).toEqual(['items', 'has_more', 'next_cursor', 'warnings'])
  })

  it('needs the scopes of a filter', async () => {
    const send = service.sender(await service.tokenFor(organization.key, 'people:read'))
    const filter = { 'attribute_values.bought': { $some: { external_id: 'x' } } }
    const sorted = (field: string) => send('POST', '/v1/people/filter', { filter, sort: { field } })
    expect(await sorted('email')).toMatchObject({ status: 403 })
  })
})

describe('pages of many candidates', () => {
  const total = maxFewCandidates + 500
  it('walk the index, with the same result', async () => {
    const organization = await createShop(
      service,
      'friends',
      { ...attribute, key: 'group', type: 'text' },
      { ...attribute, key: 'rank', type: 'number' },
    )
    await insertPeople(service.sql, organization.id, Math.ceil((total * 50) / 49), {
      attributes: `jsonb_build_object('group', case when n % 50 = 0 then 'few' else 'many' end, 'rank', (n * 7919) % 10007)`,
    })
    await backfillIndexes(service.db)
    const sort = { field: 'attribute_values.rank', direction: 'desc' as const }
    // The first request starts the index of the sort.
    await organization.send('POST', '/v1/people/list', { sort, cursor_configuration: { size: 1 } })
    await backfillIndexes(service.db)
    const of = async (group: string) => {
      const filter = { 'attribute_values.group': group }
      return (await readPage(organization, '/v1/people/filter', { filter, sort, size: 500 })).items
    }
    const ranksOf = (items: Item[]) => items.map(({ attribute_values }) => Number(attribute_values.rank))
    for (const group of ['few', 'many']) {
      const items = await of(group)
      expect(items.length).toBeGreaterThan(200)
      expect(items.every(({ attribute_values }) => attribute_values.group === group)).toBe(true)
      expect(ranksOf(items)).toEqual(ranksOf(items).toSorted((a, b) => b - a))
    }
    // The index of the group gives too many candidates, and that of the rank few.
    const highest = { 'attribute_values.group': 'many', 'attribute_values.rank': { $gte: 9_950 } }
    const all = ranksOf(await of('many')).filter(rank => rank >= 9_950)
    const items = await readAll(organization, '/v1/people/filter', { filter: highest, sort, size: 20 })
    expect(all.length).toBeGreaterThan(40)
    expect(ranksOf(items)).toEqual(all)
    const friends = [items[7]!, items[30]!].map(({ external_id }) => external_id!)
    await organization.client.people.patch('p1', { attribute_values: { friends } })
    const measured = { field: 'incoming.people.friends', direction: 'desc' as const, measure: { op: 'count' } }
    const byNumber = await readAll(organization, '/v1/people/filter', { filter: highest, sort: measured, size: 20 })
    expect(namesOf(byNumber).slice(0, 2).toSorted()).toEqual(friends.toSorted())
    expect(namesOf(byNumber).toSorted()).toEqual(namesOf(items).toSorted())
    expect(await expectSortTerms(service, organization.id)).toBe(1)
  }, 60_000)
})

describe('the index of a sort', () => {
  const organization = useShop(service, 'city')

  const indexesOf = ({ id }: Organization) =>
    service.sql<{ field: string; ready: boolean }>(
      'select field, ready from sort_indexes where organization_id = $1 order by field',
      [id],
    )

  it('is begun by the first request, once, whoever asks at the same time', async () => {
    await createAll(
      organization,
      Array.from({ length: 50 }, (_, index) => ({ last_name: `n${index}` })),
    )
    const replies = await Promise.all(
      Array.from({ length: 8 }, () => organization.send('POST', '/v1/people/list', { sort: { field: 'last_name' } })),
    )
    expect(replies.map(({ status }) => status)).toEqual(Array(8).fill(200))
    expect(await indexesOf(organization)).toEqual([{ field: 'last_name', ready: false }])
    await backfillIndexes(service.db)
    expect(await indexesOf(organization)).toEqual([{ field: 'last_name', ready: true }])
    expect(await expectSortTerms(service, organization.id)).toBe(1)
  })

  it.each(['last_name', 'updated_at', 'attribute_values.city'])(
    'by %s gives the same pages before it is filled and after, also while a write holds the organization',
    async field => {
      const names = Array.from({ length: 30 }, (_, n) => (n % 7 === 0 ? null : `n${(n * 11) % 13}`))
      await createAll(
        organization,
        names.map(name => ({ last_name: name, attribute_values: name === null ? {} : { city: name } })),
      )
      // Each page waits briefly for the head, whose lock its holder loses after five seconds.
      const query = (direction: 'asc' | 'desc') => ({ sort: { field, direction }, size: 11 })
      const pages = async () => [
        await readAll(organization, '/v1/people/list', query('asc')),
        await readAll(organization, '/v1/people/list', query('desc')),
      ]
      const holder = await service.db.connect()
      await holder.query('begin')
      await holder.query('select from change_heads where organization_id = $1 for update', [organization.id])
      const before = await pages().finally(async () => {
        await holder.query('rollback')
        await holder.end()
      })
      expect(before[0]).toHaveLength(30)
      expect(await indexesOf(organization)).toEqual([])
      expect(await pages()).toEqual(before)
      expect(await indexesOf(organization)).toEqual([{ field, ready: false }])
      await backfillIndexes(service.db)
      expect(await indexesOf(organization)).toEqual([{ field, ready: true }])
      expect(await pages()).toEqual(before)
    },
    30_000,
  )

  it.each([{ indexed: false }, { state: 'archived' }, { cardinality: 'many' }])(
    'goes when its attribute becomes %j',
    async patch => {
      await createAll(organization, [{ attribute_values: { city: 'Rome' } }, {}])
      const sort = { field: 'attribute_values.city' }
      const list = () => organization.send('POST', '/v1/people/list', { sort })
      expect(await list()).toMatchObject({ status: 200 })
      await organization.send('PATCH', '/v1/schema/attributes/1', { name: 'City' })
      expect(await indexesOf(organization)).toHaveLength(1)
      expect((await organization.send('PATCH', '/v1/schema/attributes/1', patch)).status).toBe(200)
      expect(await indexesOf(organization)).toEqual([])
      expect(await list()).toMatchObject({ status: 400, body: { details: [{ path: '/sort/field' }] } })
      await backfillIndexes(service.db)
      const left = await service.sql('select value from terms where organization_id = $1', [organization.id])
      expect(left).toEqual('cardinality' in patch ? [{ value: 'sRome' }] : [])
      expect(await service.sql('select from fills where organization_id = $1', [organization.id])).toHaveLength(
        'cardinality' in patch ? 1 : 0,
      )
    },
  )

  it('is a new one of the new values after its attribute came back', async () => {
    await createAll(organization, [
      { external_id: 'a', attribute_values: { city: 'Rome' } },
      { external_id: 'b', attribute_values: { city: 'Oslo' } },
    ])
    const sorted = async () =>
      namesOf(await readAll(organization, '/v1/people/list', { sort: { field: 'attribute_values.city' } }))
    expect(await sorted()).toEqual(['b', 'a'])
    await organization.send('PATCH', '/v1/schema/attributes/1', { indexed: false })
    await organization.send('PATCH', '/v1/people/a', { attribute_values: { city: 'Bern' } })
    await organization.send('PATCH', '/v1/schema/attributes/1', { indexed: true })
    expect(await sorted()).toEqual(['a', 'b'])
    await backfillIndexes(service.db)
    expect(await sorted()).toEqual(['a', 'b'])
    expect(await expectSortTerms(service, organization.id)).toBe(1)
  })

  it('is not in the change log', async () => {
    await organization.send('POST', '/v1/people', { external_id: 'a' })
    const head = async () => (await organization.send('GET', '/v1/changes')).body.data.items.length
    const before = await head()
    await readAll(organization, '/v1/people/list', { sort: { field: 'email' } })
    expect(await head()).toBe(before)
  })
})

it('pages of any sort and size, forwards and backwards, are the model order of the stored values', async () => {
  const organization = await createShop(service, { ...attribute, key: 'value', type: 'text' })
  const value = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 70 }).map(text => text.replaceAll('\0', '').trim()),
    fc.constantFrom(
      'a',
      'A',
      'á',
      'ab',
      '',
      '\u{10000}',
      '\uffff',
      'ﬀ',
      'ff',
      'x'.repeat(64),
      `${'x'.repeat(64)}b`,
      `${'x'.repeat(64)}a`,
    ),
    fc.constant(null),
  )
  const values = fc.sample(value, { numRuns: 150, seed: 7 })
  const bodies = values.map(last_name => ({ last_name, attribute_values: { value: last_name } }))
  const created = await Promise.all(bodies.map(body => organization.send('POST', '/v1/people', body)))
  expect(new Set(created.map(({ status }) => status))).toEqual(new Set([201]))
  const stored = created.map(({ body }) => body.data as Item & { last_name: string | null })
  const first = (text: string) => [...text].slice(0, 64).join('')
  const fold = (text: string) =>
    first(
      first(text)
        .normalize('NFKD')
        .replace(/[\p{M}\p{Cc}]/gu, '')
        .toLowerCase(),
    )
  const compareBytes = (one: string, other: string) => Buffer.compare(Buffer.from(one), Buffer.from(other))
  type Valued = { id: string; value: string | null }
  const compare = (one: Valued, other: Valued) => {
    const [a, b] = [one.value, other.value]
    if (a === null || b === null) return Number(a === null) - Number(b === null) || compareBytes(one.id, other.id)
    return compareBytes(fold(a), fold(b)) || compareBytes(first(a), first(b)) || compareBytes(one.id, other.id)
  }
  const ids = stored.map(({ id }) => id)
  const filters = [undefined, { created_at: { $exists: true } }, { external_id: null, id: { $in: ids } }]
  for (const field of ['last_name', 'attribute_values.value']) {
    const values = stored.map(({ id, last_name, attribute_values }): Valued => {
      const value = field === 'last_name' ? last_name : attribute_values.value
      return { id: id!, value: typeof value === 'string' ? value : null }
    })
    const backwards = values.filter(({ value }) => value !== null).toSorted((one, other) => compare(other, one))
    const missing = values.filter(({ value }) => value === null).toSorted((one, other) => compare(other, one))
    expect(missing.length).toBeGreaterThan(5)
    for (const [direction, expected] of [
      ['asc', values.toSorted(compare)],
      ['desc', [...backwards, ...missing]],
    ] as const)
      for (const filter of filters) {
        const path = filter ? '/v1/people/filter' : '/v1/people/list'
        const query = { sort: { field, direction }, size: 40, ...(filter && { filter }) }
        expect((await readAll(organization, path, query)).map(({ id }) => id)).toEqual(expected.map(({ id }) => id))
      }
  }
})
