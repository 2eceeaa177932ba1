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
    const people = await collect(client.people.list({ size: 2, sorting_type: 'asc' }))
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
    const pages = await collect(client.people.list({ after_id: 'a' }).pages())
    expect(pages).toEqual([
      { items: [{ id: 'b' }], has_more: true, after_id: 'b' },
      { items: [], has_more: false, after_id: null },
    ])
    expect(sent.map(({ body }) => (body as { cursor_configuration: object }).cursor_configuration)).toEqual([
      { after_id: 'a' },
      { after_id: 'b' },
    ])
  })

  it('returns one page with the cursor of the next', async () => {
    const { client } = scriptedClient([pageOf(['a'], true)])
    expect(await client.people.list({ size: 1 }).page()).toMatchObject({ has_more: true, after_id: 'a' })
  })

  it('of a stack uses record_id as its cursor, also for related records of a person', async () => {
    const records = (record_id: string, has_more: boolean) => success({ items: [{ record_id }], has_more })
    const { client, sent } = scriptedClient([records('r1', true), records('r2', false), records('r3', true)])
    await collect(client.stack('orders').list())
    await client.people.related('ada', { target: 'orders', after_id: 'r2' }).page()
    expect(sent.map(({ body }) => (body as { cursor_configuration: object }).cursor_configuration)).toEqual([
      {},
      { after_id: 'r1' },
      { after_id: 'r2' },
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
    await client.people.filter(filter, { sort_direction: 'asc', size: 5, requestId: 'r' }).page()
    expect(sent[0]).toMatchObject({
      method: 'POST',
      url: 'https://kith.test/v1/people/filter',
      body: { filter, sort_direction: 'asc', cursor_configuration: { size: 5 } },
    })
    expect(sent[0]!.headers.get('x-request-id')).toBe('r')
  })

  it('asks for strict handling of a filter, or returns its warnings', async () => {
    const warnings = [{ path: '/filter/attribute_values.ctiy', message: 'is not declared, and no person carries it' }]
    const { client, sent } = scriptedClient([emptyPage(), success({ items: [], has_more: false, warnings })])
    const filter = { 'attribute_values.ctiy': 'Rome' }
    expect(await client.people.filter(filter, { strict: true }).page()).not.toHaveProperty('warnings')
    expect(await client.people.filter(filter).page()).toMatchObject({ items: [], warnings })
    expect(sent.map(({ headers }) => headers.get('prefer'))).toEqual(['handling=strict', null])
    expect(sent[0]!.body).toEqual(sent[1]!.body)
  })

  it('addresses the entity of a related read by either identifier', async () => {
    const { client, sent } = scriptedClient([emptyPage(), emptyPage()])
    const query = { target: 'people', attribute_key: 'buyer', direction: 'outgoing' } as const
    await client.stack('orders').related('o/1', query).page()
    await client
      .stack('orders')
      .relatedById('0'.repeat(24), { ...query, sorting_type: 'asc' })
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
