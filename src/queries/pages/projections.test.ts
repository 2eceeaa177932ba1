import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { createDataset } from '../../../test/support/filter-world.ts'
import { insertPeople } from '../../../test/support/many-people.ts'
import { someRuns } from '../../../test/support/runs.ts'
import { useOwnService } from '../../../test/support/service.ts'
import { createShop, useSharedShop } from '../../../test/support/shop.ts'
import { backfillIndexes } from '../../entities/indexes/index-backfill.ts'
import { profileFlags, readTexts } from '../../values/profile-fields.ts'

const service = useOwnService()
const organization = useSharedShop(service)
const { send } = organization
beforeAll(async () => {
  await createDataset(organization, 11)
  await send('POST', '/v1/people', { external_id: 'odd', attribute_values: oddValues, email: 'odd@example.org' })
  await send('PATCH', '/v1/people/p1', {
    attribute_values: { referrer: 'p2', friends: ['odd', 'p3', 'p5'], bought: ['o1'] },
    consents: [{ consent_type_id: 1, channel: 'email', state: true, method: 'web_form' }],
  })
  await backfillIndexes(service.db)
})

const oddValues = {
  'a "quoted" \\ key,\n(x)': 'a "quoted" \\ value,\n(x)\u0001\u2028 ü 𝄞',
  '': 'empty',
  __proto__x: 1,
  '7': { '10': 1.5e-7, a: [null, { b: null }] },
  large: 'é'.repeat(40_000),
}
const keys = [
  ...['city', 'score', 'tags', 'referrer', 'friends', 'bought', 'mentor', 'mixed', 'any', 'total', 'buyer', 'nothing'],
  ...Object.keys(oddValues),
]
const shared = ['attribute_values', 'state', 'version', 'created_at', 'updated_at']
const members = {
  people: ['id', 'external_id', ...readTexts, ...profileFlags, 'consents', ...shared],
  orders: ['record_id', 'external_id', 'stack_key', ...shared],
}
type Kind = keyof typeof members
type Item = Record<string, unknown> & { attribute_values?: Record<string, unknown> }

const fieldsOf = (kind: Kind) =>
  fc.uniqueArray(fc.constantFrom(...members[kind], ...keys.map(key => `attribute_values.${key}`)), {
    minLength: 1,
    maxLength: 12,
  })

/** The members of a whole read that the fields name, in the order of the read. */
function pick(item: Item, fields: readonly string[]): Item {
  const asked = fields.filter(name => name.startsWith('attribute_values.')).map(name => name.slice(17))
  const values = Object.entries(item.attribute_values!)
  const attribute_values = fields.includes('attribute_values')
    ? item.attribute_values
    : Object.fromEntries(values.filter(([key]) => asked.includes(key)))
  const entries = Object.entries({ ...item, attribute_values }).filter(
    ([name]) => fields.includes(name) || (name === 'attribute_values' && asked.length > 0),
  )
  return Object.fromEntries(entries)
}

const paths = { people: '/v1/people', orders: '/v1/stacks/orders' }
const size = { cursor_configuration: { size: 500 } }

async function page(
  path: string,
  body: object,
): Promise<{ items: Item[]; has_more: boolean; next_cursor?: string | null }> {
  const reply = await send('POST', path, body)
  expect([path, body, reply.status, reply.body.details]).toEqual([path, body, 200, undefined])
  return reply.body.data
}

const requests: [string, Kind, string, object][] = [
  ['a list', 'people', '/v1/people/list', { sorting_type: 'asc' }],
  ['a list backwards', 'people', '/v1/people/list', {}],
  ['a filter without an index', 'people', '/v1/people/filter', { filter: { state: 'active' } }],
  ['a filter with an index', 'people', '/v1/people/filter', { filter: { 'attribute_values.score': { $gte: -10 } } }],
  ['a sorted list', 'people', '/v1/people/list', { sort: { field: 'first_name' } }],
  [
    'a sorted filter',
    'people',
    '/v1/people/filter',
    { filter: { external_id: { $in: ['p1', 'p2', 'odd'] } }, sort: { field: 'updated_at', direction: 'desc' } },
  ],
  ['related people', 'people', '/v1/people/p1/related', { target: 'people' }],
  ['a list of records', 'orders', '/v1/stacks/orders/list', {}],
  [
    'a filter of records',
    'orders',
    '/v1/stacks/orders/filter',
    { filter: { 'attribute_values.buyer': { $exists: false } } },
  ],
  ['related records', 'orders', '/v1/people/p1/related', { target: 'orders' }],
]

describe.each(requests)('fields of %s', (_, kind, path, body) => {
  it('show exactly the named members of each item, in the order of reads', async () => {
    const whole = (await page(path, { ...body, ...size })).items
    expect(whole.length).toBeGreaterThan(0)
    await fc.assert(
      fc.asyncProperty(fieldsOf(kind), async fields => {
        const { items, next_cursor } = await page(path, { ...body, ...size, fields })
        const expected = whole.map(item => pick(item, fields))
        expect(JSON.stringify(items.map(withSortedValues))).toBe(JSON.stringify(expected.map(withSortedValues)))
        expect(next_cursor).toBeNull()
      }),
      someRuns(25),
    )
  })

  it('page without the identifier, at next_cursor', async () => {
    const whole = (await page(path, { ...body, ...size })).items
    for (const pageSize of [1, 3, 500]) {
      const read: Item[] = []
      for (let cursor: string | undefined; ; ) {
        const cursor_configuration = { size: pageSize, cursor }
        const { items, has_more, next_cursor } = await page(path, {
          ...body,
          cursor_configuration,
          fields: ['version', 'created_at'],
        })
        read.push(...items)
        expect(next_cursor === null).toBe(!has_more)
        if (!has_more) break
        expect(items).toHaveLength(pageSize)
        cursor = next_cursor!
      }
      expect(read).toEqual(whole.map(({ version, created_at }) => ({ version, created_at })))
    }
  })
})

/** Sorts the keys of `attribute_values`, because their order depends on whether the read includes links. */
const withSortedValues = (item: Item): Item =>
  item.attribute_values
    ? { ...item, attribute_values: Object.fromEntries(Object.entries(item.attribute_values).toSorted()) }
    : item

describe('fields that are refused', () => {
  it.each<[string, Kind, string[], string[]]>([
    ['unknown names', 'people', ['id', 'name', 'attribute_values', 'city'], ['/fields/1', '/fields/3']],
    ['members of the other kind', 'people', ['record_id', 'stack_key'], ['/fields/0', '/fields/1']],
    ['a field of a person', 'orders', ['id', 'email', 'state'], ['/fields/0', '/fields/1']],
    [
      'a name that occurs twice',
      'people',
      ['id', 'id', 'attribute_values.a', 'attribute_values.a'],
      ['/fields/1', '/fields/3'],
    ],
    ['what include adds', 'people', ['included'], ['/fields/0']],
    ['the prototype', 'people', ['constructor', '__proto__'], ['/fields/0', '/fields/1']],
    ['no name', 'people', [], ['/fields']],
    ['101 names', 'people', Array.from({ length: 101 }, (_, index) => `attribute_values.k${index}`), ['/fields']],
  ])('are %s, with the path of each', async (_, kind, fields, faults) => {
    for (const endpoint of ['list', 'filter']) {
      const { status, body } = await send('POST', `${paths[kind]}/${endpoint}`, { fields })
      expect([status, body.error]).toEqual([400, 'invalid_parameter'])
      expect(body.details!.map(detail => detail.path)).toEqual(faults)
    }
  })

  it('are checked by the kind of the target of related', async () => {
    const { status, body } = await send('POST', '/v1/people/p1/related', { target: 'orders', fields: ['email'] })
    expect([status, body.details!.map(({ path }) => path)]).toEqual([400, ['/fields/0']])
  })

  it('may be a hundred', async () => {
    const fields = Array.from({ length: 100 }, (_, index) => `attribute_values.k${index}`)
    expect((await page('/v1/people/list', { fields })).items[0]).toEqual({ attribute_values: {} })
  })
})

describe('a cursor in the order of identifiers', () => {
  it('is taken without fields too, and then answered with the next one', async () => {
    const { next_cursor } = await page('/v1/people/list', { fields: ['id'], cursor_configuration: { size: 2 } })
    const second = await page('/v1/people/list', { cursor_configuration: { size: 2, cursor: next_cursor } })
    const whole = await page('/v1/people/list', size)
    expect(second.items).toEqual(whole.items.slice(2, 4))
    expect(second.next_cursor).toEqual(expect.any(String))
    expect(Object.keys(whole)).toEqual(['items', 'has_more'])
  })

  it('is refused with another order, beside after_id, and if it is none', async () => {
    const { next_cursor: cursor } = await page('/v1/people/list', { fields: ['id'], cursor_configuration: { size: 2 } })
    const after_id = '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f'
    for (const [body, path] of [
      [{ sorting_type: 'asc', cursor_configuration: { cursor } }, '/cursor_configuration/cursor'],
      [{ sort: { field: 'email' }, cursor_configuration: { cursor } }, '/cursor_configuration/cursor'],
      [{ cursor_configuration: { cursor: `${cursor}=` } }, '/cursor_configuration/cursor'],
      [{ cursor_configuration: { cursor: after_id } }, '/cursor_configuration/cursor'],
      [{ cursor_configuration: { cursor, after_id } }, '/cursor_configuration/after_id'],
    ] as const) {
      const { status, body: refused } = await send('POST', '/v1/people/list', body)
      expect([status, refused.details?.map(detail => detail.path)]).toEqual([400, [path]])
    }
  })
})

it('a query string names fields, includes and a count', async () => {
  const query = 'fields=external_id&fields=attribute_values.referrer&include=referrer&count=true&filter[external_id]=p1'
  const { items, count } = (await send('POST', `/v1/people/filter?${query}`)).body.data
  expect([items, count]).toEqual([
    [
      {
        external_id: 'p1',
        attribute_values: { referrer: 'p2' },
        included: { referrer: (await send('GET', '/v1/people/p2')).body.data },
      },
    ],
    1,
  ])
  expect((await send('POST', '/v1/people/list?fields=nothing')).body.details).toMatchObject([{ path: '/fields/0' }])
})

describe('fields of large entities', () => {
  it('are sent in parts with the same items, and keys of large values are found', async () => {
    const { send: sendHere, id } = await createShop(service, 'referrer')
    await insertPeople(service.sql, id, 12, {
      name: 'large',
      attributes: `jsonb_build_object('one', n, 'long', repeat('é', 100000), 'other', repeat('x', 100000))`,
    })
    await sendHere('PATCH', '/v1/people/large3', { attribute_values: { referrer: 'large4' } })
    for (const body of [{ sorting_type: 'asc' }, { sort: { field: 'external_id' } }])
      for (const fields of [
        ['external_id', 'attribute_values.long', 'attribute_values.referrer'],
        ['attribute_values'],
        ['version', 'attribute_values.one'],
      ]) {
        const whole = await sendHere('POST', '/v1/people/list', { ...body, ...size })
        const reply = await sendHere('POST', '/v1/people/list', {
          ...body,
          ...size,
          fields,
          include: ['referrer'],
          count: true,
        })
        expect(reply.body.data).toMatchObject({ has_more: false, next_cursor: null, count: 12 })
        const { items } = reply.body.data
        expect(items.map(({ included, ...item }: { included: unknown }) => item)).toEqual(
          whole.body.data.items.map((item: Item) => pick(item, fields)),
        )
        const referrers = items.map(({ included }: { included: { referrer: unknown } }) => included.referrer)
        expect(referrers.filter((referrer: unknown) => referrer !== null)).toEqual([
          (await sendHere('GET', '/v1/people/large4')).body.data,
        ])
      }
  })
})

it('fields are read with definitions that another process changed', async () => {
  const { send: sendHere, id } = await service.organization()
  await sendHere('POST', '/v1/people', { external_id: 'ada', attribute_values: { friend: 'plain' } })
  const fields = ['attribute_values.friend']
  const list = async () => (await sendHere('POST', '/v1/people/list', { fields })).body.data.items
  expect(await list()).toEqual([{ attribute_values: { friend: 'plain' } }])
  // Another process declares the relationship and writes a link.
  await service.sql(
    `with head as (update change_heads set schema_version = schema_version + 1 where organization_id = $1),
       declared as (insert into attributes (organization_id, id, owner_stack_id, key, name, type, target_stack_id, cardinality, indexed, state, created_at, updated_at, version)
         values ($1, 99, 0, 'friend', 'friend', 'person', 0, 'one', false, 'active', now(), now(), 2))
     insert into links (organization_id, source_id, attribute_id, target_stack_id, target_id, position)
     select $1, e.id, 99, 0, e.id, 0 from entities e where e.organization_id = $1`,
    [id],
  )
  expect(await list()).toEqual([{ attribute_values: { friend: 'ada' } }])
})
