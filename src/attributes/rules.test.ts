import { beforeEach, describe, expect, it } from 'vitest'
import { type Send, useService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'

const service = useService()
const organization = useShop(service, 'orders')
const { send } = organization

const path = '/v1/schema/attributes'
const declare = (body: object) => send('POST', path, { key: 'a', owner: 'people', ...body })
const create = (value: unknown, external_id = 'ada') =>
  send('POST', '/v1/people', { external_id, attribute_values: { a: value } })
const pathsOf = ({ status, body }: Awaited<ReturnType<Send>>) => [status, body.details?.map(detail => detail.path)]

describe('the declaration of rules', () => {
  it('shows every rule, and null or false for those that the attribute does not have', async () => {
    const none = { required: false, unique: false, enum: null, pattern: null, minimum: null, maximum: null }
    expect((await declare({ type: 'text' })).body.data).toMatchObject(none)
    const rules = { required: true, enum: ['a', 'b'], pattern: '^.$' }
    const created = await declare({ type: 'text', key: 'b', ...rules })
    expect(created.body.data).toMatchObject({ ...none, ...rules })
    const { id } = created.body.data
    const patched = await send('PATCH', `${path}/${id}`, { required: false, enum: null, pattern: null })
    expect(patched.body.data).toMatchObject(none)
    expect((await send('GET', `${path}/${id}`)).body.data).toEqual(patched.body.data)
  })

  it('is in the change log with what changed, and repeating it changes nothing', async () => {
    await declare({ type: 'number', minimum: 0 })
    await send('PATCH', `${path}/1`, { minimum: null, maximum: 5 })
    await send('PATCH', `${path}/1`, { maximum: 5, required: false, unique: false, enum: null })
    const { items } = (await send('GET', '/v1/changes?subject=attribute')).body.data
    expect(items.map(({ before, after }: Record<string, unknown>) => ({ before, after }))).toEqual([
      { before: {}, after: expect.objectContaining({ key: 'a', minimum: 0 }) },
      { before: { minimum: 0, maximum: null }, after: { minimum: null, maximum: 5 } },
    ])
  })

  it.each([
    [{ type: 'json', unique: true }, '/unique'],
    [{ type: 'boolean', unique: true, indexed: true }, '/unique'],
    [{ type: 'text', unique: true }, '/unique'],
    [{ type: 'text', unique: true, indexed: true, cardinality: 'many' }, '/unique'],
    [{ type: 'json', enum: ['a'] }, '/enum'],
    [{ type: 'person', enum: ['a'] }, '/enum'],
    [{ type: 'number', enum: [1, 'a'] }, '/enum/1'],
    [{ type: 'date', enum: ['2023-02-29'] }, '/enum/0'],
    [{ type: 'text', enum: ['a', ' a'] }, '/enum/1'],
    [{ type: 'text', enum: [] }, '/enum'],
    [{ type: 'number', pattern: '^a' }, '/pattern'],
    [{ type: 'text', pattern: '(' }, '/pattern'],
    [{ type: 'text', pattern: '(?=a)' }, '/pattern'],
    [{ type: 'text', pattern: '(a)\\1' }, '/pattern'],
    [{ type: 'text', pattern: '((a{30}){30}){30}' }, '/pattern'],
    [{ type: 'text', pattern: 'a{900}' }, '/pattern'],
    [{ type: 'text', pattern: '' }, '/pattern'],
    [{ type: 'text', minimum: 'a' }, '/minimum'],
    [{ type: 'number', minimum: 'a' }, '/minimum'],
    [{ type: 'date', maximum: '2026-13-01' }, '/maximum'],
    [{ type: 'number', minimum: 2, maximum: 1 }, '/minimum'],
    [{ type: 'datetime', minimum: '2026-01-01T00:00:00Z', maximum: '2026-01-01T00:30:00+01:00' }, '/minimum'],
  ])('refuses %j at %s and declares nothing', async (body, where) => {
    expect(pathsOf(await declare(body))).toEqual([400, [where]])
    expect((await send('GET', path)).body.data.items).toEqual([])
  })

  it('has bounds: 500 values and 32 KiB of an enum, 512 characters of a pattern', async () => {
    const values = (count: number, length = 1) =>
      Array.from({ length: count }, (_, index) => `${index}`.padEnd(length, 'x'))
    expect((await declare({ type: 'text', enum: values(500), pattern: 'x'.repeat(256) })).status).toBe(201)
    const refused = [{ enum: values(501) }, { enum: values(40, 1_000) }, { pattern: `${'[x]'.repeat(171)}` }]
    for (const rules of refused)
      expect(pathsOf(await declare({ key: 'b', type: 'text', ...rules }))).toEqual([400, [`/${Object.keys(rules)[0]}`]])
  })

  it('takes rules from a query string in the type of the attribute', async () => {
    const query = 'key=a&owner=people&type=number&enum[0]=1&enum[1]=2.5&minimum=1&required=true'
    const created = await send('POST', `${path}?${query}`)
    expect(created.body.data).toMatchObject({ enum: [1, 2.5], minimum: 1, required: true })
    expect((await send('PATCH', `${path}/1?maximum=9`)).body.data).toMatchObject({ maximum: 9 })
    expect(pathsOf(await send('PATCH', `${path}/1?maximum=many`))).toEqual([400, ['/maximum']])
  })

  it('loses its rules by false, or by null if they are no booleans', async () => {
    const rules = { required: true, unique: true, enum: [1, 2], minimum: 1, maximum: 2 }
    await declare({ type: 'number', indexed: true, ...rules })
    for (const rule of ['required', 'unique'])
      expect(pathsOf(await send('PATCH', `${path}/1`, { [rule]: null }))).toEqual([400, [`/${rule}`]])
    const without = { required: false, unique: false, enum: null, minimum: null, maximum: null }
    expect((await send('GET', `${path}/1`)).body.data).toMatchObject(rules)
    expect((await send('PATCH', `${path}/1`, without)).body.data).toMatchObject(without)
  })

  it('refuses a change of the attribute that a rule does not allow', async () => {
    await declare({ type: 'text', indexed: true, unique: true })
    for (const patch of [{ indexed: false }, { cardinality: 'many' }])
      expect(pathsOf(await send('PATCH', `${path}/1`, patch))).toEqual([400, ['/unique']])
    expect((await send('PATCH', `${path}/1`, { unique: false, indexed: false })).status).toBe(200)
  })
})

describe('a value', () => {
  it.each([
    [{ type: 'text', enum: ['red', 'blue'] }, 'red', 'green', 'must be one of: red, blue'],
    [{ type: 'number', enum: [1, 2] }, 2, 3, 'must be one of: 1, 2'],
    [{ type: 'boolean', enum: [true] }, true, false, 'must be one of: true'],
    [{ type: 'text', pattern: '^[A-Z]{2}[0-9]+$' }, 'AB12', 'ab12', 'must match ^[A-Z]{2}[0-9]+$'],
    [{ type: 'text', pattern: 'b' }, 'abc', 'ac', 'must match b'],
    [{ type: 'text', pattern: '^.$' }, '😀', '😀😀', 'must match ^.$'],
    [{ type: 'number', minimum: 0, maximum: 10 }, 0, -0.5, 'must be at least 0'],
    [{ type: 'number', maximum: 10 }, 10, 10.5, 'must be at most 10'],
    [{ type: 'date', minimum: '2026-01-01' }, '2026-01-01', '2025-12-31', 'must be at least 2026-01-01'],
    [
      { type: 'datetime', maximum: '2026-01-01T00:00:00Z' },
      '2026-01-01T01:00:00+01:00',
      '2026-01-01T00:00:00.1Z',
      'must be at most 2026-01-01T00:00:00Z',
    ],
  ])('of %j may be %j and may not be %j', async (body, fits, other, message) => {
    await declare(body)
    const reply = await create(other)
    expect([reply.status, reply.body.details]).toEqual([400, [{ path: '/attribute_values/a', message }]])
    expect((await send('GET', '/v1/people/ada')).status).toBe(404)
    expect((await create(fits)).body.data.attribute_values).toEqual({ a: fits })
    expect(
      pathsOf(await send('PATCH', `/v1/people/internal/${await idOf('ada')}`, { attribute_values: { a: other } })),
    ).toEqual([400, ['/attribute_values/a']])
    expect((await send('PATCH', '/v1/people/ada', { attribute_values: { a: null } })).status).toBe(200)
  })

  it('of an attribute that holds many is checked element by element', async () => {
    await declare({ type: 'text', cardinality: 'many', enum: ['a', 'b'] })
    expect(pathsOf(await create(['a', 'c', 'd']))).toEqual([400, ['/attribute_values/a/1']])
    expect((await create(['b', 'a'])).status).toBe(201)
  })

  it('is checked in a batch, an import, an upsert and a query string, at its own path', async () => {
    await declare({ type: 'number', maximum: 3 })
    const body = { external_id: 'x', attribute_values: { a: 4 } }
    const batch = await send('POST', '/v1/people/batch', { operations: [{ op: 'create', body }] })
    expect(batch.body.data.items[0]).toMatchObject({
      status: 400,
      details: [{ path: '/operations/0/body/attribute_values/a' }],
    })
    const imported = await send('POST', '/v1/people/import', JSON.stringify(body), {
      'Content-Type': 'application/x-ndjson',
    })
    expect(imported.body.data[0]).toMatchObject({ line: 1, details: [{ path: '/attribute_values/a' }] })
    expect(pathsOf(await send('POST', '/v1/people/upsert', body))).toEqual([400, ['/attribute_values/a']])
    expect(pathsOf(await send('POST', '/v1/people?attribute_values[a]=4'))).toEqual([400, ['/attribute_values/a']])
    expect((await send('POST', '/v1/people?attribute_values[a]=2')).status).toBe(201)
  })

  it('that was stored before the rule stays, until it is written', async () => {
    await create(10)
    await declare({ type: 'number', maximum: 3 })
    expect((await send('PATCH', '/v1/people/ada', { first_name: 'Ada' })).status).toBe(200)
    expect((await send('GET', '/v1/people/ada')).body.data.attribute_values).toEqual({ a: 10 })
    expect((await send('PATCH', '/v1/people/ada', { attribute_values: { a: 10 } })).status).toBe(400)
    await send('PATCH', `${path}/1`, { state: 'archived' })
    expect((await send('PATCH', '/v1/people/ada', { attribute_values: { a: 11 } })).status).toBe(200)
  })

  it('that is too long for its pattern is refused instead of holding the service', async () => {
    await declare({ type: 'text', pattern: '[abc]*a[abc]{400}[de]' })
    const long = await create('abc'.repeat(5_000))
    expect([long.status, long.body.details?.[0]?.message]).toEqual([
      400,
      expect.stringMatching(/^must have at most \d+ characters to be compared with/),
    ])
    expect((await create('x'.repeat(4_000))).body.details?.[0]?.message).toBe('must match [abc]*a[abc]{400}[de]')
  })
})

const idOf = async (external_id: string) => (await send('GET', `/v1/people/${external_id}`)).body.data.id

describe('a required value', () => {
  beforeEach(async () => {
    await create(1, 'stored')
    await send('POST', '/v1/people', { external_id: 'lacking' })
    await declare({ type: 'number', required: true })
  })
  const missing = [400, ['/attribute_values/a']]

  it('is needed by creates, PUT and upserts that create', async () => {
    expect(pathsOf(await send('POST', '/v1/people', { external_id: 'new' }))).toEqual(missing)
    expect(pathsOf(await send('POST', '/v1/people', { external_id: 'new', attribute_values: null }))).toEqual(missing)
    expect(pathsOf(await create(null, 'new'))).toEqual(missing)
    expect(pathsOf(await send('PUT', '/v1/people/stored', { first_name: 'Ada' }))).toEqual(missing)
    expect(pathsOf(await send('PUT', '/v1/people/lacking', {}))).toEqual(missing)
    expect(pathsOf(await send('POST', '/v1/people/upsert', { external_id: 'new' }))).toEqual(missing)
    expect((await create(2, 'new')).status).toBe(201)
    expect((await send('PUT', '/v1/people/lacking', { attribute_values: { a: 3 } })).status).toBe(200)
  })

  it('cannot be cleared, while a write that does not mention it passes although it is missing', async () => {
    for (const attribute_values of [{ a: null }, null])
      for (const person of ['stored', 'lacking'])
        expect(pathsOf(await send('PATCH', `/v1/people/${person}`, { attribute_values }))).toEqual(missing)
    expect((await send('PATCH', '/v1/people/lacking', { attribute_values: { b: 1 } })).status).toBe(200)
    expect((await send('POST', '/v1/people/upsert', { external_id: 'lacking', first_name: 'x' })).status).toBe(200)
    expect((await send('GET', '/v1/people/stored')).body.data.attribute_values).toEqual({ a: 1 })
  })

  it('is needed by the write that makes a placeholder active, and not by the placeholder', async () => {
    await declare({ type: 'person', key: 'friend' })
    expect((await send('PATCH', '/v1/people/lacking', { attribute_values: { friend: 'unknown' } })).status).toBe(200)
    expect(pathsOf(await send('PATCH', '/v1/people/unknown', { first_name: 'U' }))).toEqual(missing)
    expect((await send('PATCH', '/v1/people/unknown', {})).status).toBe(200)
    expect(pathsOf(await send('POST', '/v1/people', { external_id: 'unknown' }))).toEqual(missing)
    expect((await send('GET', '/v1/people/unknown')).body.data.state).toBe('placeholder')
    expect((await send('PATCH', '/v1/people/unknown', { attribute_values: { a: 1 } })).status).toBe(200)
    expect((await send('GET', '/v1/people/unknown')).body.data.state).toBe('active')
  })

  it('may be a relationship, whose links cannot be removed, and a list needs an element', async () => {
    await declare({ owner: 'orders', key: 'buyer', type: 'person', required: true })
    await declare({ owner: 'orders', key: 'tags', type: 'text', cardinality: 'many', required: true })
    const order = (attribute_values: object) =>
      send('POST', '/v1/stacks/orders', { external_id: 'o', attribute_values })
    expect(pathsOf(await order({ buyer: '', tags: [] }))).toEqual([
      400,
      ['/attribute_values/buyer', '/attribute_values/tags'],
    ])
    expect((await order({ buyer: 'stored', tags: ['x'] })).status).toBe(201)
    expect(pathsOf(await send('PATCH', '/v1/stacks/orders/o', { attribute_values: { buyer: null } }))).toEqual([
      400,
      ['/attribute_values/buyer'],
    ])
  })

  it('is not asked of the retry of an event that was stored before, nor of a restore', async () => {
    await send('POST', '/v1/schema/stacks', { key: 'visits', kind: 'event' })
    const visit = { external_id: 'v', attribute_values: { page: '/' } }
    await send('POST', '/v1/stacks/visits', visit)
    await declare({ owner: 'visits', key: 'at', type: 'date', required: true })
    expect((await send('POST', '/v1/stacks/visits', visit)).status).toBe(200)
    const id = await idOf('lacking')
    await send('DELETE', '/v1/people/lacking')
    expect((await send('POST', `/v1/people/internal/${id}/restore`)).status).toBe(200)
  })
})
