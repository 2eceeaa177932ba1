import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { useOwnService } from '../../test/support/service.ts'
import { useSharedShop } from '../../test/support/shop.ts'
import { valueFault } from '../attributes/values.ts'
import type { Attribute } from '../organizations/definitions.ts'
import { type DeclareBody, declaredTypes } from './schema.ts'

const service = useOwnService()
let next = 0
const shop = useSharedShop(service, 'orders')

const declare = (body: object, headers = {}) => shop.send('PUT', '/v1/schema/observed/declare', body, headers)
const noTypes = { text: 0, number: 0, boolean: 0, object: 0, array: 0, date: 0, datetime: 0 }

async function storeValues(values: unknown[], path = '/v1/people'): Promise<{ key: string; ids: string[] }> {
  const key = `key${++next}`
  const ids: string[] = []
  for (const value of values) {
    const { status, body } = await shop.send('POST', path, { attribute_values: { [key]: value } })
    if (status !== 201) throw new Error(JSON.stringify(body))
    ids.push(body.data.id ?? body.data.record_id)
  }
  return { key, ids }
}

describe('the declaration of an observed key', () => {
  it('counts what fits and what does not, with its types and the first identifiers, and declares the attribute', async () => {
    const { key, ids } = await storeValues([1, 'x', 2, [3], '2026-01-01', 4])
    const body = { owner: 'people', key, type: 'number', indexed: true, name: 'Shoe' }
    const counted = {
      fits: 3,
      misfits: 3,
      misfit_types: { ...noTypes, text: 1, array: 1, date: 1 },
      examples: [ids[1], ids[3], ids[4]],
    }
    const before = (await shop.send('GET', '/v1/changes?limit=1')).body.data.head
    const dry = await declare({ ...body, dry_run: true })
    expect([dry.status, dry.body.data]).toEqual([200, { attribute: null, ...counted }])
    expect((await shop.send('GET', '/v1/changes?limit=1')).body.data.head).toBe(before)
    const { attribute, ...rest } = (await declare(body)).body.data
    expect(rest).toEqual(counted)
    expect(attribute).toMatchObject({
      key,
      owner: 'people',
      type: 'number',
      indexed: true,
      name: 'Shoe',
      state: 'active',
    })
    expect((await shop.send('GET', `/v1/schema/attributes/${attribute.id}`)).body.data.key).toBe(key)
    // Stored values stay, and new values are checked.
    expect((await shop.send('GET', `/v1/people/internal/${ids[1]}`)).body.data.attribute_values).toEqual({ [key]: 'x' })
    expect(
      (await shop.send('PATCH', `/v1/people/internal/${ids[1]}`, { attribute_values: { [key]: 'y' } })).status,
    ).toBe(400)
  })

  it('names records by their record_id, and at most ten', async () => {
    const { key, ids } = await storeValues(Array(12).fill('x'), '/v1/stacks/orders')
    const { data } = (await declare({ owner: 'orders', key, type: 'boolean', dry_run: true })).body
    expect(data).toMatchObject({ fits: 0, misfits: 12, examples: ids.slice(0, 10) })
  })

  it('shows no identifiers to a token that may not read the entities', async () => {
    const { key } = await storeValues(['x'])
    const writer = service.sender(await service.tokenFor(shop.key, 'schema:write records:read'))
    const reply = await writer('PUT', '/v1/schema/observed/declare', {
      owner: 'people',
      key,
      type: 'number',
      dry_run: true,
    })
    expect(reply).toMatchObject({ status: 200, body: { data: { misfits: 1, examples: [] } } })
    const reader = service.sender(await service.tokenFor(shop.key, 'schema:read people:read'))
    expect((await reader('PUT', '/v1/schema/observed/declare', { owner: 'people', key, type: 'number' })).status).toBe(
      403,
    )
  })

  const value = fc.oneof(
    fc.constantFrom(
      '',
      'x',
      '2026-01-01',
      '2026-02-30',
      '2026-01-01T00:00:00Z',
      '2026-01-01T25:00:00Z',
      '0000-01-01',
      '2026-01-01T00:00:00+23:59',
    ),
    fc.constantFrom(0, -1.5, 1e15),
    fc.boolean(),
    fc.constantFrom({ a: 1 }, {}),
    fc.array(fc.constantFrom(1, 'x', null, true, '2026-01-01', [1]), { maxLength: 3 }),
  )
  it('counts a value as fitting exactly if a write of it would be accepted', async () => {
    const values = fc.sample(value, 40)
    const { key } = await storeValues(values)
    for (const type of declaredTypes)
      for (const cardinality of ['one', 'many'] as const) {
        const attribute = { type, cardinality } as Attribute
        const fits = values.filter(each => valueFault(attribute, each) === undefined).length
        const { data } = (await declare({ owner: 'people', key, type, cardinality, dry_run: true })).body
        expect([type, cardinality, data.fits, data.misfits]).toEqual([type, cardinality, fits, values.length - fits])
        const types = Object.values(data.misfit_types as Record<string, number>)
        expect(types.reduce((sum, count) => sum + count, 0)).toBe(data.misfits)
      }
  })
})

describe('the refusal of a declaration', () => {
  const valid: DeclareBody = { owner: 'people', key: 'fresh', type: 'text' }
  it.each<[string, object, number, string, string, RegExp]>([
    ['a capital letter', { key: 'Shoe' }, 400, 'invalid_parameter', '/key', /does not begin with a letter from a to z/],
    ['a space', { key: 'shoe size' }, 400, 'invalid_parameter', '/key', /other characters/],
    ['a long key', { key: `a${'b'.repeat(63)}` }, 400, 'invalid_parameter', '/key', /longer than 63/],
    ['an unknown owner', { owner: 'nothing' }, 400, 'invalid_parameter', '/owner', /key of a stack/],
    ['a relationship', { type: 'person' }, 400, 'invalid_parameter', '/type', /must be one of/],
    ['an index of json', { type: 'json', indexed: true }, 400, 'invalid_parameter', '/indexed', /json/],
    ['a declared key', { key: 'taken' }, 409, 'duplicate_entry', '/key', /already declared/],
  ])('names %s, also in a dry run, and changes nothing', async (_, wrong, status, error, path, message) => {
    await shop.send('POST', '/v1/schema/attributes', { owner: 'people', key: 'taken', type: 'text' })
    const before = (await shop.send('GET', '/v1/schema')).body.data
    for (const dry_run of [true, false]) {
      const reply = await declare({ ...valid, ...wrong, dry_run })
      expect([reply.status, reply.body.error, reply.body.details!.map(detail => detail.path)]).toEqual([
        status,
        error,
        [path],
      ])
      expect(reply.body.details![0]!.message).toMatch(message)
    }
    expect((await shop.send('GET', '/v1/schema')).body.data).toEqual(before)
  })

  it('names the limit of attributes, also in a dry run', async () => {
    await service.sql(
      `insert into attributes (organization_id, id, owner_stack_id, key, name, type, cardinality, indexed, state, created_at, updated_at, version)
       select $1, 100 + i, 0, 'filler' || i, 'x', 'text', 'one', false, 'archived', now(), now(), 2 from generate_series(1, $2::integer) i`,
      [(await service.organization('full')).id, service.config.limits.attributes],
    )
    const full = service.sender(await service.tokenFor('full'))
    const reply = await full('PUT', '/v1/schema/observed/declare', { ...valid, dry_run: true })
    expect(reply).toMatchObject({ status: 400, body: { error: 'invalid_parameter' } })
    expect(reply.body.message).toMatch(/limit of attributes/)
  })
})
