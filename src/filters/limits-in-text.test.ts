import fc from 'fast-check'
import { expect, it } from 'vitest'
import { useService } from '../../test/support/service.ts'
import { type Detail, Fault } from '../errors.ts'
import { type Attribute, buildDefinitions } from '../organizations/definitions.ts'
import { throwIfOverFilterLimits } from './limits-in-text.ts'
import { parseFilter } from './parse.ts'

const service = useService()

const times = { created_at: '2026-01-01T00:00:00.000Z', updated_at: '2026-01-01T00:00:00.000Z' }
const friends: Attribute = {
  ...times,
  ...{ id: 1, owner_stack_id: 0, key: 'friends', name: 'friends', description: null, cardinality: 'many' },
  ...{ indexed: false, state: 'active', target_stack_id: 0, type: 'person' },
}
const definitions = buildDefinitions(1, { version: 1, stacks: [], attributes: [friends], consent_types: [] })

function detailOf(check: () => unknown): Detail | undefined {
  try {
    check()
    return undefined
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    return error.refusal.details[0]
  }
}
const excessOf = (text: string) => detailOf(() => [...throwIfOverFilterLimits(text)])
const faultOf = (filter: unknown) => detailOf(() => parseFilter(filter, definitions, 0))

const list = (length: number, element: unknown = 'a,]}') => Array<unknown>(length).fill(element)
const { filter: anyFilter } = fc.letrec<{ filter: object; member: [string, unknown] }>(tie => ({
  member: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.tuple(fc.constant('first_name'), fc.constantFrom<unknown>('a"]', null, { $eq: '{"$in":[' }, { $contains: 'x' })),
    fc.tuple(
      fc.constant('attribute_values.x'),
      fc.constantFrom<unknown>({ $eq: { $in: list(501) } }, { $in: [list(501)] }),
    ),
    fc.tuple(
      fc.constantFrom('external_id', 'last_name'),
      fc.constantFrom(500, 501).map(length => ({ $in: list(length) })),
    ),
    fc.tuple(fc.constantFrom('city', '$and', '$or'), fc.constantFrom<unknown>(1)),
    fc.tuple(
      fc.constant('consents'),
      fc.constantFrom({ $some: { channel: 'email', text_version: { $gte: 1, $nin: list(3, 1) } } }),
    ),
    fc.tuple(fc.constant('$not'), tie('filter')),
    fc.tuple(fc.constantFrom('$and', '$or'), fc.array(tie('filter'), { maxLength: 30 })),
    fc.tuple(fc.constant('attribute_values.friends'), fc.record({ $some: tie('filter') })),
  ),
  filter: fc.array(tie('member'), { maxLength: 3 }).map(members => Object.fromEntries(members)),
}))

it('never refuses by its text a filter that the parser accepts', () => {
  fc.assert(
    fc.property(anyFilter, fc.constantFrom(0, 2), (filter, indent) => {
      const text = JSON.stringify({ include: ['$in'], filter, cursor_configuration: { size: 5 } }, null, indent)
      if (excessOf(text)) expect(faultOf(filter)).toBeDefined()
    }),
    { numRuns: 2000 },
  )
})

it('names the part that the parser names if that is over a limit', () => {
  const nested = (levels: number): object => (levels === 1 ? {} : { $not: nested(levels - 1) })
  const conditions = (count: number) => ({ $or: Array.from({ length: count }, () => ({ first_name: { $eq: 'a' } })) })
  const filters = [
    ...[500, 501].map(length => ({ first_name: { $in: list(length) } })),
    ...[500, 501].map(length => ({ $and: [{}, { 'attribute_values.a/b': { $nin: list(length) } }] })),
    ...[5, 6].map(nested),
    ...[50, 51].map(conditions),
    ...[49, 50].map(count => ({ $and: [conditions(count), { 'attribute_values.friends': { $some: {} } }] })),
    { 'attribute_values.friends': { $some: { $and: [nested(3)] } } },
    { 'attribute_values.friends': { $some: { $and: [nested(4)] } } },
  ]
  for (const filter of filters) {
    const fault = faultOf(filter)
    expect(excessOf(JSON.stringify({ filter }))).toEqual(fault)
    expect(excessOf(`{\n"filter" :${' '.repeat(200)}${JSON.stringify(filter, null, 1)} }`)).toEqual(fault)
  }
  expect(filters.filter(filter => faultOf(filter))).toHaveLength(6)
})

it('refuses a filter with thirty thousand operands after it has looked at 501 of them', async () => {
  const { send, token } = await service.organization()
  const operands = JSON.stringify(Array.from({ length: 30_000 }, (_, index) => `name ${index}`)).slice(0, -1)
  const addresses = ['/v1/people/filter', '/v1/people/aggregate']
  for (const path of addresses) {
    const response = await fetch(`${service.address}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      // The end is no JSON, which shows that nothing read it.
      body: `{"filter": {"first_name": {"$in": ${operands}, and no end`,
    })
    expect(response.status).toBe(400)
    const { error, details } = (await response.json()) as { error: string; details: Detail[] }
    expect([error, details]).toEqual([
      'invalid_parameter',
      [{ path: '/filter/first_name/$in', message: 'must have at most 500 elements' }],
    ])
  }
  const segment = { key: 'many', name: 'many', filter: { first_name: { $in: Array(30_000).fill('name') } } }
  const refused = await send('POST', '/v1/segments', segment)
  expect([refused.status, refused.body.details?.[0]?.path]).toEqual([400, '/filter/first_name/$in'])
})
