import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { importLines, linesFrom } from '../../test/support/lines.ts'
import { useService } from '../../test/support/service.ts'
import { ListEdit } from './list-edit.ts'

const service = useService()

describe('an edit of a list', () => {
  it('keeps the other elements in their order, and has what is added once, whatever was edited before', () => {
    const values = fc.array(fc.oneof(fc.integer({ min: 0, max: 5 }), fc.record({ a: fc.nat(2), b: fc.nat(2) })))
    fc.assert(
      fc.property(fc.uniqueArray(fc.nat(9)), values, values, (list, added, removed) => {
        const edit = new ListEdit(added, removed)
        const after = edit.applyTo(list)
        const has = (elements: readonly unknown[], value: unknown) =>
          elements.some(element => JSON.stringify(element) === JSON.stringify(value))
        expect(after.slice(0, list.length - list.filter(each => has(removed, each)).length)).toEqual(
          list.filter(each => !has(removed, each)),
        )
        for (const each of added) expect(has(after, each)).toBe(true)
        expect(new Set(after.map(each => JSON.stringify(each))).size).toBe(after.length)
        expect(new ListEdit(added, []).applyTo(after)).toEqual(after)
      }),
    )
  })

  it('compares objects without regard to the order of their keys', () => {
    expect(new ListEdit([{ b: 1, a: [2] }], []).applyTo([{ a: [2], b: 1 }])).toEqual([{ a: [2], b: 1 }])
    expect(new ListEdit([], [{ b: 1, a: 2 }]).applyTo([{ a: 2, b: 1 }, 1])).toEqual([1])
  })
})

async function prepare() {
  const organization = await service.organization()
  const { client, send } = organization
  const shared = { owner: 'people', cardinality: 'many' } as const
  const { id } = await client.schema.attributes.create({
    ...shared,
    key: 'tags',
    type: 'text',
    enum: ['a', 'b', 'c', 'd'],
  })
  await client.schema.attributes.create({ ...shared, key: 'sizes', type: 'number', indexed: true })
  await client.schema.attributes.create({ ...shared, key: 'free', type: 'json' })
  await client.schema.attributes.create({ ...shared, key: 'friends', type: 'person' })
  await client.people.create({ external_id: 'ada', attribute_values: { tags: ['a', 'b'] } })
  const patch = (attribute_values: object) => send('PATCH', '/v1/people/ada', { attribute_values })
  const values = async () => (await client.people.get('ada')).attribute_values
  return { ...organization, id, patch, values }
}

describe('{"$add", "$remove"} of an attribute with many values', () => {
  it('changes single elements in PATCH, upsert and batch, and a write without an effect keeps the version', async () => {
    const { client, patch, values, send } = await prepare()
    expect((await patch({ tags: { $add: ['c', ' a '], $remove: ['b'] }, sizes: { $add: [1, 2] } })).status).toBe(200)
    expect(await values()).toEqual({ tags: ['a', 'c'], sizes: [1, 2] })
    await client.people.upsert({ external_id: 'ada', attribute_values: { free: { $add: [{ x: 1 }] } } })
    const edit = { sizes: { $remove: [1] }, free: { $remove: [{ x: 1 }] } }
    await client.people.batch([{ op: 'patch', external_id: 'ada', body: { attribute_values: edit } }])
    expect(await client.people.get('ada')).toMatchObject({
      version: 4,
      attribute_values: { tags: ['a', 'c'], sizes: [2], free: [] },
    })
    await patch({ tags: { $add: ['a'] }, sizes: { $remove: [7] } })
    expect((await client.people.get('ada')).version).toBe(4)
    await send('PATCH', '/v1/people/ada?attribute_values[sizes][$add][0]=3', undefined)
    expect((await values()).sizes).toEqual([2, 3])
  })

  it('loses no element of writers at once', async () => {
    const { patch, values } = await prepare()
    const numbers = Array.from({ length: 32 }, (_, index) => index)
    const replies = await Promise.all(numbers.map(number => patch({ sizes: { $add: [number] } })))
    expect(replies.every(({ status }) => status === 200)).toBe(true)
    expect(((await values()).sizes as number[]).toSorted((one, other) => one - other)).toEqual(numbers)
  })

  it('is refused with its path where an element, the list or the write does not fit, and stores nothing', async () => {
    const { client, id, patch, send, values } = await prepare()
    const pathOf = async (reply: Promise<{ status: number; body: { details?: { path: string }[] } }>) => {
      const { status, body } = await reply
      return [status, body.details?.[0]?.path]
    }
    expect(await pathOf(patch({ tags: { $add: ['a', 'z'] } }))).toEqual([400, '/attribute_values/tags/$add/1'])
    expect(await pathOf(patch({ sizes: { $add: ['1'] } }))).toEqual([400, '/attribute_values/sizes/$add/0'])
    expect(await pathOf(patch({ sizes: { $remove: 1 } }))).toEqual([400, '/attribute_values/sizes/$remove'])
    expect(await pathOf(patch({ tags: { $add: ['c'], $remove: ['c'] } }))).toEqual([
      400,
      '/attribute_values/tags/$add/0',
    ])
    const body = { external_id: 'ada', attribute_values: { tags: { $add: ['c'] } } }
    expect(await pathOf(send('PUT', '/v1/people/ada', body))).toEqual([400, '/attribute_values/tags'])
    expect(await pathOf(send('POST', '/v1/people', { ...body, external_id: 'bo' }))).toEqual([
      400,
      '/attribute_values/tags',
    ])
    await client.schema.attributes.patch(id, { required: true })
    expect(await pathOf(patch({ tags: { $remove: ['a', 'b'] } }))).toEqual([400, '/attribute_values/tags'])
    await patch({ older: 'text' })
    await client.schema.attributes.create({ owner: 'people', key: 'older', type: 'text', cardinality: 'many' })
    expect(await pathOf(patch({ older: { $add: ['x'] } }))).toEqual([400, '/attribute_values/older'])
    expect(await values()).toEqual({ tags: ['a', 'b'], older: 'text' })
  })
})

describe('an import with lists=add', () => {
  it('adds the elements of its lists, values and links, and with lists=replace replaces them', async () => {
    const { client, values, ...organization } = await prepare()
    await client.people.patch('ada', { attribute_values: { friends: ['bo'] } })
    const line = { external_id: 'ada', attribute_values: { tags: ['b', 'c'], friends: ['cy'], sizes: [1, 1] } }
    const load = (query: string, ...lines: object[]) =>
      importLines(organization, `/v1/people/import${query}`, linesFrom(lines))
    expect((await load('?lists=add', line)).counts.updated).toBe(1)
    expect(await values()).toEqual({ tags: ['a', 'b', 'c'], friends: ['bo', 'cy'], sizes: [1] })
    expect((await load('?lists=add', line)).counts.unchanged).toBe(1)
    expect((await load('?lists=add', { external_id: 'ada', attribute_values: { tags: null } })).counts.updated).toBe(1)
    expect((await load('?lists=replace', line)).counts.updated).toBe(1)
    expect(await values()).toEqual({ tags: ['b', 'c'], friends: ['cy'], sizes: [1, 1] })
    const wrong = { external_id: 'ada', attribute_values: { tags: ['a', 'z'], friends: ['x', null] } }
    const { refused } = await load('?lists=add', wrong)
    expect(refused[0]!.details.map(({ path }) => path).sort()).toEqual([
      '/attribute_values/friends/1',
      '/attribute_values/tags/1',
    ])
  })
})
