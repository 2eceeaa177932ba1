import { describe, expect, it } from 'vitest'
import { scriptedClient, success } from './scripted-fetch.ts'

const pageOf = (ids: string[], has_more: boolean) => success({ items: ids.map(id => ({ id })), has_more })

async function collect<T>(source: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const element of source) found.push(element)
  return found
}

describe('a listing', () => {
  it('goes item by item over all pages, each after the last item of the one before', async () => {
    const { client, sent } = scriptedClient([pageOf(['a', 'b'], true), pageOf(['c', 'd'], true), pageOf(['e'], false)])
    const people = await collect(client.people.list({ size: 2, sorting_type: 'asc' }))
    expect(people.map(person => person.id)).toEqual(['a', 'b', 'c', 'd', 'e'])
    expect(sent.map(({ body }) => body)).toEqual([
      { sorting_type: 'asc', cursor_configuration: { size: 2 } },
      { sorting_type: 'asc', cursor_configuration: { size: 2, after_id: 'b' } },
      { sorting_type: 'asc', cursor_configuration: { size: 2, after_id: 'd' } },
    ])
  })

  it('asks for no page that nobody comes to, and asks anew when it is iterated again', async () => {
    const { client, sent } = scriptedClient([pageOf(['a', 'b'], true), pageOf(['a', 'b'], true)])
    const people = client.people.list()
    expect(sent).toHaveLength(0)
    for (const _ of [1, 2]) for await (const { id } of people) if (id === 'b') break
    expect(sent).toHaveLength(2)
  })

  it('goes page by page, from where it is told', async () => {
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

  it('answers one page, and where the next one begins', async () => {
    const { client } = scriptedClient([pageOf(['a'], true)])
    expect(await client.people.list({ size: 1 }).page()).toMatchObject({ has_more: true, after_id: 'a' })
  })

  it('of a stack goes by record_id, also where people lead to it', async () => {
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

  it('ends with the signal of its call', async () => {
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

describe('what is asked', () => {
  const none = () => pageOf([], false)

  it('is a filter with its order', async () => {
    const { client, sent } = scriptedClient([none()])
    const filter = { $or: [{ email: { $exists: true } }, { 'attribute_values.city': 'Rome' }] }
    await client.people.filter(filter, { sort_direction: 'asc', size: 5, requestId: 'r' }).page()
    expect(sent[0]).toMatchObject({
      method: 'POST',
      url: 'https://kith.test/v1/people/filter',
      body: { filter, sort_direction: 'asc', cursor_configuration: { size: 5 } },
    })
    expect(sent[0]!.headers.get('x-request-id')).toBe('r')
  })

  it('is a filter that is refused where it would be warned of, or answered with the warnings', async () => {
    const warnings = [{ path: '/filter/attribute_values.ctiy', message: 'is not declared, and no person carries it' }]
    const { client, sent } = scriptedClient([none(), success({ items: [], has_more: false, warnings })])
    const filter = { 'attribute_values.ctiy': 'Rome' }
    expect(await client.people.filter(filter, { strict: true }).page()).not.toHaveProperty('warnings')
    expect(await client.people.filter(filter).page()).toMatchObject({ items: [], warnings })
    expect(sent.map(({ headers }) => headers.get('prefer'))).toEqual(['handling=strict', null])
    expect(sent[0]!.body).toEqual(sent[1]!.body)
  })

  it('is the company of somebody, by either identifier', async () => {
    const { client, sent } = scriptedClient([none(), none()])
    const question = { target: 'people', attribute_key: 'buyer', direction: 'outgoing' } as const
    await client.stack('orders').related('o/1', question).page()
    await client
      .stack('orders')
      .relatedById('0'.repeat(24), { ...question, sorting_type: 'asc' })
      .page()
    expect(sent.map(({ url }) => url)).toEqual([
      'https://kith.test/v1/stacks/orders/o%2F1/related',
      `https://kith.test/v1/stacks/orders/internal/${'0'.repeat(24)}/related`,
    ])
    expect(sent.map(({ body }) => body)).toEqual([
      { ...question, cursor_configuration: {} },
      { ...question, cursor_configuration: {}, sorting_type: 'asc' },
    ])
  })
})
