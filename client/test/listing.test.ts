import { describe, expect, it } from 'vitest'
import { scriptedClient, success } from './scripted-fetch.ts'

const pageOf = (ids: string[], has_more: boolean) => success({ items: ids.map(id => ({ id })), has_more })

async function collect<T>(source: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const element of source) found.push(element)
  return found
}

describe('a listing', () => {
  it('iterates the items of all pages, each after the last item of the one before', async () => {
    const { client, sent } = scriptedClient([pageOf(['a', 'b'], true), pageOf(['c', 'd'], true), pageOf(['e'], false)])
    const people = await collect(client.people.list({ size: 2, order: 'asc' }))
    expect(people.map(person => person.id)).toEqual(['a', 'b', 'c', 'd', 'e'])
    expect(sent.map(({ body }) => body)).toEqual([
      { sorting_type: 'asc', cursor_configuration: { size: 2 } },
      { sorting_type: 'asc', cursor_configuration: { size: 2, after_id: 'b' } },
      { sorting_type: 'asc', cursor_configuration: { size: 2, after_id: 'd' } },
    ])
  })

  it('requests only the pages that are iterated, and requests them again when it is iterated again', async () => {
    const { client, sent } = scriptedClient([pageOf(['a', 'b'], true), pageOf(['a', 'b'], true)])
    const people = client.people.list()
    expect(sent).toHaveLength(0)
    for (const _ of [1, 2]) for await (const { id } of people) if (id === 'b') break
    expect(sent).toHaveLength(2)
  })

  it('iterates pages from the given cursor', async () => {
    const { client, sent } = scriptedClient([pageOf(['b'], true), pageOf([], false)])
    const pages = await collect(client.people.list({ after: 'a' }).pages())
    expect(pages).toEqual([
      { items: [{ id: 'b' }], has_more: true, next: 'b' },
      { items: [], has_more: false, next: null },
    ])
    expect(sent.map(({ body }) => (body as { cursor_configuration: object }).cursor_configuration)).toEqual([
      { after_id: 'a' },
      { after_id: 'b' },
    ])
  })

  it('returns one page with the cursor of the next', async () => {
    const { client } = scriptedClient([pageOf(['a'], true)])
    expect(await client.people.list({ size: 1 }).page()).toMatchObject({ has_more: true, next: 'a' })
  })

  it('of a stack uses record_id as its cursor, also for related records of a person', async () => {
    const records = (record_id: string, has_more: boolean) => success({ items: [{ record_id }], has_more })
    const { client, sent } = scriptedClient([records('r1', true), records('r2', false), records('r3', true)])
    await collect(client.stack('orders').list())
    await client.people.related('ada', { target: 'orders', after: 'r2' }).page()
    expect(sent.map(({ body }) => (body as { cursor_configuration: object }).cursor_configuration)).toEqual([
      {},
      { after_id: 'r1' },
      { after_id: 'r2' },
    ])
  })

  it('with a sort or fields iterates pages by next_cursor, and counts on the first page only', async () => {
    const page = (external_id: string, next_cursor: string | null) =>
      success({ items: [{ external_id }], has_more: next_cursor !== null, next_cursor, count: 2, sequence: 7 })
    const { client, sent } = scriptedClient([page('a', 'c1'), page('b', null)])
    const selection = { fields: ['external_id'], sort: { field: 'last_name', direction: 'desc' }, count: true } as const
    const pages = await collect(client.people.list({ size: 1, ...selection }).pages())
    expect(pages.map(({ next, count }) => [next, count])).toEqual([
      ['c1', 2],
      [null, 2],
    ])
    const { count, ...rest } = selection
    expect(sent.map(({ body }) => body)).toEqual([
      { ...rest, count, cursor_configuration: { size: 1 } },
      { ...rest, cursor_configuration: { size: 1, cursor: 'c1' } },
    ])
  })

  it('continues after a cursor that is given', async () => {
    const { client, sent } = scriptedClient([success({ items: [], has_more: false, next_cursor: null })])
    await client.people.list({ after: 'c1', sort: { field: 'email' } }).page()
    expect(sent[0]!.body).toEqual({ sort: { field: 'email' }, cursor_configuration: { cursor: 'c1' } })
  })

  it('of a search iterates pages by next_cursor, also an empty one in between', async () => {
    const page = (ids: string[], next_cursor: string | null) =>
      success({ items: ids.map(id => ({ id })), has_more: next_cursor !== null, next_cursor })
    const { client, sent } = scriptedClient([page(['a'], 'c1'), page([], 'c2'), page(['b'], null)])
    const people = await collect(client.people.search('ada', { size: 1 }))
    expect(people.map(({ id }) => id)).toEqual(['a', 'b'])
    expect(sent.map(({ url, body }) => [url, body])).toEqual([
      ['https://kith.test/v1/people/search', { text: 'ada', size: 1 }],
      ['https://kith.test/v1/people/search', { text: 'ada', size: 1, cursor: 'c1' }],
      ['https://kith.test/v1/people/search', { text: 'ada', size: 1, cursor: 'c2' }],
    ])
  })

  it('of a search of several owners has the type of the entity by its owner', async () => {
    const person = { owner: 'people', entity: { external_id: 'ada', first_name: 'Ada' } }
    const order = { owner: 'orders', entity: { external_id: 'o-1', stack_key: 'orders' } }
    const { client, sent } = scriptedClient([success({ items: [person, order], has_more: false, next_cursor: null })])
    const hits = await client.search('o-1', { owners: ['people', 'orders'], size: 5 }).all()
    expect(hits.map(hit => ('first_name' in hit.entity ? hit.entity.first_name : hit.entity.stack_key))).toEqual([
      'Ada',
      'orders',
    ])
    const body = { text: 'o-1', owners: ['people', 'orders'], size: 5 }
    expect(sent.map(({ url, body }) => [url, body])).toEqual([['https://kith.test/v1/search', body]])
  })

  it('of a segment sends its options in the query', async () => {
    const page = (next_cursor: string | null) =>
      success({ items: [{ email: 'a' }], has_more: next_cursor !== null, next_cursor })
    const { client, sent } = scriptedClient([page('c1'), page(null), success({ items: [{ id: 'p' }], has_more: true })])
    const selection = { fields: ['email'], sort: { field: 'email', direction: 'desc' }, count: true } as const
    expect(await collect(client.segments.people('vips', { size: 1, ...selection }))).toHaveLength(2)
    expect((await client.segments.people('vips').page()).next).toBe('p')
    expect(sent.map(({ url }) => url)).toEqual([
      'https://kith.test/v1/segments/vips/people?size=1&fields=email&sort=email%3Adesc&count=true',
      'https://kith.test/v1/segments/vips/people?size=1&cursor=c1&fields=email&sort=email%3Adesc',
      'https://kith.test/v1/segments/vips/people',
    ])
  })

  it('of violations iterates pages by next_after_id, also an empty one in between', async () => {
    const page = (ids: string[], next_after_id: string | null) =>
      success({ items: ids.map(id => ({ id })), has_more: next_after_id !== null, next_after_id })
    const { client, sent } = scriptedClient([page([], 'a'), page(['b'], null)])
    const found = await collect(client.schema.attributes.violations(3, { rule: 'unique', size: 5 }))
    expect(found).toEqual([{ id: 'b' }])
    expect(sent.map(({ url }) => url)).toEqual([
      'https://kith.test/v1/schema/attributes/3/violations?rule=unique&size=5',
      'https://kith.test/v1/schema/attributes/3/violations?rule=unique&size=5&after_id=a',
    ])
  })

  it('ends when the signal of its call aborts', async () => {
    const controller = new AbortController()
    const { client, sent } = scriptedClient([pageOf(['a'], true)])
    const found: string[] = []
    const work = async () => {
      for await (const { id } of client.people.list({ signal: controller.signal })) {
        found.push(id)
        controller.abort(new Error('enough'))
      }
    }
    await expect(work()).rejects.toThrow('enough')
    expect(found).toEqual(['a'])
    expect(sent).toHaveLength(1)
  })
})

describe('the request of a listing', () => {
  const emptyPage = () => pageOf([], false)

  it('contains a filter with its order', async () => {
    const { client, sent } = scriptedClient([emptyPage()])
    const filter = { $or: [{ email: { $exists: true } }, { 'attribute_values.city': 'Rome' }] }
    await client.people.filter(filter, { order: 'asc', size: 5, requestId: 'r' }).page()
    expect(sent[0]).toMatchObject({
      method: 'POST',
      url: 'https://kith.test/v1/people/filter',
      body: { filter, sort_direction: 'asc', cursor_configuration: { size: 5 } },
    })
    expect(sent[0]!.headers.get('x-request-id')).toBe('r')
  })

  it('asks for strict handling of a filter, or returns its warnings', async () => {
    const warnings = [{ path: '/filter/attribute_values.ctiy', message: 'is not declared, and no person carries it' }]
    const counted = success({ items: [], has_more: false, count: 0, sequence: 7, warnings })
    const { client, sent } = scriptedClient([emptyPage(), success({ items: [], has_more: false, warnings }), counted])
    const filter = { 'attribute_values.ctiy': 'Rome' }
    expect(await client.people.filter(filter, { strict: true }).page()).not.toHaveProperty('warnings')
    expect(await client.people.filter(filter).page()).toMatchObject({ items: [], warnings })
    expect(await client.people.count(filter)).toEqual({ count: 0, sequence: 7, warnings })
    expect(sent.map(({ headers }) => headers.get('prefer'))).toEqual(['handling=strict', null, null])
    expect(sent[0]!.body).toEqual(sent[1]!.body)
  })

  it('addresses the entity of a related read by either identifier', async () => {
    const { client, sent } = scriptedClient([emptyPage(), emptyPage()])
    const query = { target: 'people', attribute_key: 'buyer', direction: 'outgoing' } as const
    await client.stack('orders').related('o/1', query).page()
    await client
      .stack('orders')
      .related({ id: '0'.repeat(24) }, { ...query, order: 'asc' })
      .page()
    expect(sent.map(({ url }) => url)).toEqual([
      'https://kith.test/v1/stacks/orders/o%2F1/related',
      `https://kith.test/v1/stacks/orders/internal/${'0'.repeat(24)}/related`,
    ])
    expect(sent.map(({ body }) => body)).toEqual([
      { ...query, cursor_configuration: {} },
      { ...query, cursor_configuration: {}, sorting_type: 'asc' },
    ])
  })
})
