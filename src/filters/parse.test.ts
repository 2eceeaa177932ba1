import { describe, expect, test } from 'vitest'
import { Fault } from '../errors.ts'
import { type Attribute, defineFrom } from '../organizations/definitions.ts'
import { parseFilter } from './parse.ts'
import { scopesOf } from './scopes.ts'

const times = { created_at: '2026-01-01T00:00:00.000Z', updated_at: '2026-01-01T00:00:00.000Z' }
const attribute = (id: number, owner_stack_id: number, key: string, target_stack_id: number | null): Attribute => ({
  ...times,
  ...{ id, owner_stack_id, key, name: key, description: null, cardinality: 'many', indexed: false, state: 'active' },
  ...{ target_stack_id, type: target_stack_id === null ? 'text' : target_stack_id === 0 ? 'person' : 'stack' },
})
const definitions = defineFrom(1, {
  version: 1,
  stacks: [{ id: 1, key: 'orders', name: 'orders', kind: 'item', ...times }],
  attributes: [attribute(1, 0, 'friends', 0), attribute(2, 0, 'bought', 1), attribute(3, 1, 'buyer', 0)],
  consent_types: [],
})

function refusedAt(filter: unknown, stack_id = 0): string | undefined {
  try {
    parseFilter(filter, definitions, stack_id)
    return undefined
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    expect(error.refusal).toMatchObject({ word: 'invalid_parameter', status: 400 })
    return error.refusal.details[0]!.path
  }
}

const nested = (levels: number): unknown => (levels === 1 ? {} : { $not: nested(levels - 1) })
const hopping = (hops: number): unknown =>
  hops === 0 ? {} : { 'attribute_values.friends': { $some: hopping(hops - 1) } }
const conditions = (count: number) => ({ $and: Array.from({ length: count }, () => ({ first_name: 'a' })) })

describe('a filter is refused with the path', () => {
  test.each([
    [null, '/filter'],
    [[], '/filter'],
    ['x', '/filter'],
    [{ first: 1 }, '/filter/first'],
    [{ version: 1 }, '/filter/version'],
    [{ record_id: 'a' }, '/filter/record_id'],
    [{ attribute_values: {} }, '/filter/attribute_values'],
    [{ constructor: 1 }, '/filter/constructor'],
    [{ $nor: [] }, '/filter/$nor'],
    [{ $and: {} }, '/filter/$and'],
    [{ $or: [{}, 1] }, '/filter/$or/1'],
    [{ $not: [] }, '/filter/$not'],
    [{ first_name: {} }, '/filter/first_name'],
    [{ first_name: { $like: 'a' } }, '/filter/first_name/$like'],
    [{ 'attribute_values.a/b~c': { x: 1 } }, '/filter/attribute_values.a~1b~0c/x'],
    [{ first_name: { $lt: null } }, '/filter/first_name/$lt'],
    [{ first_name: { $lt: true } }, '/filter/first_name/$lt'],
    [{ first_name: { $in: 'a' } }, '/filter/first_name/$in'],
    [{ first_name: { $contains: 1 } }, '/filter/first_name/$contains'],
    [{ first_name: { $exists: 'yes' } }, '/filter/first_name/$exists'],
    [{ created_at: '2026-01-01' }, '/filter/created_at'],
    [{ created_at: { $gt: 5 } }, '/filter/created_at/$gt'],
    [{ created_at: { $in: ['2026-01-01T00:00:00Z', 'x'] } }, '/filter/created_at/$in/1'],
    [{ updated_at: { $contains: '2026' } }, '/filter/updated_at/$contains'],
    [{ first_name: { $some: {} } }, '/filter/first_name/$some'],
    [{ 'attribute_values.city': { $some: {} } }, '/filter/attribute_values.city/$some'],
    [{ 'attribute_values.bought': { $some: { email: 'a' } } }, '/filter/attribute_values.bought/$some/email'],
    [{ 'attribute_values.bought': { $none: 'o1' } }, '/filter/attribute_values.bought/$none'],
    [{ consents: true }, '/filter/consents'],
    [{ consents: { $none: {} } }, '/filter/consents/$none'],
    [{ consents: { $some: { channel: 'push' } } }, '/filter/consents/$some/channel'],
    [{ consents: { $some: { consent_type_id: 0 } } }, '/filter/consents/$some/consent_type_id'],
    [{ consents: { $some: { state: 'granted' } } }, '/filter/consents/$some/state'],
    [{ consents: { $some: { source: 'answer' } } }, '/filter/consents/$some/source'],
  ])('%j: %s', (filter, path) => {
    expect(refusedAt(filter)).toBe(path)
  })

  test.each(['id', 'email', 'consents', 'email_consent'])('of a record by %s', field => {
    expect(refusedAt({ [field]: 'x' }, 1)).toBe(`/filter/${field}`)
  })

  test('at six levels, not at five', () => {
    expect(refusedAt(nested(5))).toBeUndefined()
    expect(refusedAt(nested(6))).toBe('/filter/$not/$not/$not/$not/$not')
  })

  test('at four relationships in a row, not at three', () => {
    expect(refusedAt(hopping(3))).toBeUndefined()
    expect(refusedAt(hopping(4))).toBe(`/filter${'/attribute_values.friends/$some'.repeat(4)}`)
  })

  test('at 51 conditions, not at 50', () => {
    expect(refusedAt(conditions(50))).toBeUndefined()
    expect(refusedAt(conditions(51))).toBe('/filter/$and/50/first_name')
  })

  test('at 501 elements of $in, not at 500', () => {
    expect(refusedAt({ first_name: { $in: Array(500).fill('a') } })).toBeUndefined()
    expect(refusedAt({ first_name: { $nin: Array(501).fill('a') } })).toBe('/filter/first_name/$nin')
  })
})

describe('a filter needs the read scope', () => {
  test.each([
    [{}, 0, ['people:read']],
    [{}, 1, ['records:read']],
    [{ 'attribute_values.bought': 'o1' }, 0, ['people:read']],
    [{ 'attribute_values.bought': { $none: {} } }, 0, ['people:read', 'records:read']],
    [{ $or: [{ $not: { 'attribute_values.buyer': { $every: {} } } }] }, 1, ['records:read', 'people:read']],
  ])('%j of stack %i: %j', (filter, stack_id, scopes) => {
    expect([...scopesOf(parseFilter(filter, definitions, stack_id), stack_id)]).toEqual(scopes)
  })
})
