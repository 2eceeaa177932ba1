import { describe, expect, it } from 'vitest'
import { type Attribute, buildDefinitions, type ConsentType } from '../../organizations/definitions.ts'
import type { Channel } from '../../values/channels.ts'
import { type Detail, Fault } from '../../values/errors.ts'
import { parseFilter } from './parse.ts'
import { scopesOf } from './scopes.ts'

const times = { created_at: '2026-01-01T00:00:00.000Z', updated_at: '2026-01-01T00:00:00.000Z' }
const attribute = (id: number, owner_stack_id: number, key: string, target_stack_id: number | null): Attribute => ({
  ...times,
  ...{ id, owner_stack_id, key, name: key, description: null, cardinality: 'many', indexed: false, state: 'active' },
  ...{ target_stack_id, type: target_stack_id === null ? 'text' : target_stack_id === 0 ? 'person' : 'stack' },
})
const consentType = (id: number, state: ConsentType['state'], ...channels: Channel[]): ConsentType => ({
  ...times,
  ...{ id, key: `type${id}`, name: '', description: null, state, mandatory: false, default_state: false },
  channels: channels.map(channel => ({ channel, is_default: false, double_opt_in: false })),
  text_versions: 3,
})
const definitions = buildDefinitions(1, {
  version: 1,
  stacks: [
    {
      id: 1,
      key: 'orders',
      name: 'orders',
      kind: 'item',
      retention_days: null,
      label: null,
      summary: null,
      erased_with: null,
      ...times,
    },
  ],
  attributes: [
    attribute(1, 0, 'friends', 0),
    attribute(2, 0, 'bought', 1),
    attribute(3, 1, 'buyer', 0),
    ...(['number', 'boolean', 'date', 'datetime', 'json', 'text'] as const).map((type, index) => ({
      ...attribute(4 + index, 0, type, null),
      ...{ type, cardinality: 'one' as const },
    })),
    { ...attribute(10, 1, 'invoiced_at', null), type: 'datetime', cardinality: 'one' },
    { ...attribute(11, 0, 'boss', 0), cardinality: 'one' },
    { ...attribute(12, 0, 'totals', null), type: 'number' },
    { ...attribute(14, 0, 'jsons', null), type: 'json' },
    { ...attribute(13, 0, 'retired', null), type: 'number', state: 'archived' },
  ],
  consent_types: [
    consentType(1, 'active', 'email', 'sms'),
    consentType(2, 'active', 'email'),
    consentType(3, 'archived', 'sms'),
  ],
})

function refusalOf(filter: unknown, stack_id = 0): Detail | undefined {
  try {
    parseFilter(filter, definitions, stack_id)
    return undefined
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    expect(error.refusal).toMatchObject({ code: 'invalid_parameter', status: 400 })
    return error.refusal.details[0]!
  }
}

const refusedAt = (filter: unknown, stack_id = 0) => refusalOf(filter, stack_id)?.path

const nested = (levels: number): unknown => (levels === 1 ? {} : { $not: nested(levels - 1) })
const friendsAtDepth = (depth: number): unknown =>
  depth === 0 ? {} : { 'attribute_values.friends': { $some: friendsAtDepth(depth - 1) } }
const conditions = (count: number) => ({ $and: Array.from({ length: count }, () => ({ first_name: 'a' })) })

describe('a filter', () => {
  it.each([
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
    [{ consents: { $some: { method: 'pigeon' } } }, '/filter/consents/$some/method'],
    [{ consents: { $some: { method: { $in: ['import', 1] } } } }, '/filter/consents/$some/method/$in/1'],
    [{ consents: { $some: { method: { $gt: 'import' } } } }, '/filter/consents/$some/method/$gt'],
    [{ consents: { $some: { method: { $contains: 'import' } } } }, '/filter/consents/$some/method/$contains'],
    [{ consents: { $some: { method: {} } } }, '/filter/consents/$some/method'],
    [{ consents: { $some: { pending: 'yes' } } }, '/filter/consents/$some/pending'],
    [{ consents: { $some: { text_version: 0 } } }, '/filter/consents/$some/text_version'],
    [{ consents: { $some: { text_version: { $gte: '2' } } } }, '/filter/consents/$some/text_version/$gte'],
    [{ consents: { $some: { answered_at: '2020-01-01' } } }, '/filter/consents/$some/answered_at'],
    [{ consents: { $some: { answered_at: { $lt: null } } } }, '/filter/consents/$some/answered_at/$lt'],
    [{ consents: { $some: { answered_at: { $some: {} } } } }, '/filter/consents/$some/answered_at/$some'],
  ])('%j is refused at %s', (filter, path) => {
    expect(refusedAt(filter)).toBe(path)
  })

  it('is told how an attribute is named', () => {
    const message = 'is no field: write attribute_values.<key>'
    expect(refusalOf({ attribute_values: { city: 'Rome' } })).toEqual({ path: '/filter/attribute_values', message })
  })

  it.each<[string, unknown[], unknown[]]>([
    ['attribute_values.number', [5, -0.5], ['5', true, [5], '']],
    ['attribute_values.totals', [5, [5, 6], []], ['5', [5, '6'], [null]]],
    ['attribute_values.boolean', [true, false], ['true', 1, [true]]],
    ['attribute_values.date', ['2024-02-29'], ['2023-02-29', '29.02.2024', '2024-02-29T00:00:00Z', 20240229]],
    ['attribute_values.datetime', ['2024-02-29T00:00:00+01:00'], ['2024-02-29', '2024-02-29T00:00:00', 1709164800]],
    ['attribute_values.text', ['', 'x'], [1, true, ['x']]],
    ['attribute_values.json', ['x', 1, true, [null]], []],
    ['attribute_values.jsons', ['x', [], [null], [[null]], [{ a: null }]], []],
    ['attribute_values.boss', ['ada', '7'], [7, '', ['ada'], true]],
    ['attribute_values.friends', ['ada', ['ada', 'bob']], [7, [], ['ada', 7], ['ada', null], ['']]],
    ['attribute_values.retired', ['x', 1, true, [null]], []],
    ['attribute_values.undeclared', ['x', 1, true, [null]], []],
    ['id', ['01936F3E-0a5c-7c3e-9d0a-5b6f3c1d2e4f'], ['ada', '01936f3e', '66f0a1b2c3d4e5f607182939', 1]],
    ['external_id', ['ada'], ['', 7, ['ada']]],
    ['email', ['ada@example.org', 'ada'], ['', false]],
    ['first_name', ['', 'Ada'], [7, ['Ada']]],
    ['date_of_birth', ['1815-12-10'], ['1815', '1815-12-10T00:00:00Z', 1815]],
    ['email_consent', [true], ['true', 1]],
    ['state', ['active', 'placeholder'], ['actve', true]],
    ['created_at', ['2024-02-29T00:00:00Z'], ['2024-02-29', 1709164800]],
    ['updated_at', ['2024-02-29T00:00:00Z'], ['yesterday']],
  ])('is refused on %s if the operand can never equal the field', (field, right, wrong) => {
    for (const operand of [...right, null]) {
      for (const tests of [{ $eq: operand }, { $neq: operand }, { $in: [operand] }, { $nin: [operand, operand] }])
        expect(refusedAt({ [field]: tests })).toBeUndefined()
      expect(refusedAt({ [field]: operand })).toBeUndefined()
    }
    for (const operand of wrong) {
      const faultPath = refusedAt({ [field]: operand })!
      expect(faultPath).toMatch(new RegExp(`^/filter/${field}(/\\d)?$`))
      const [elementPath = ''] = /(?<=[a-z])\/\d$/.exec(faultPath) ?? []
      for (const operator of ['$eq', '$neq'])
        expect(refusedAt({ [field]: { [operator]: operand } })).toBe(`/filter/${field}/${operator}${elementPath}`)
      for (const operator of ['$in', '$nin'])
        expect(refusedAt({ [field]: { [operator]: [null, right[0], operand] } })).toBe(
          `/filter/${field}/${operator}/2${elementPath}`,
        )
    }
  })

  it('is refused on a record if the record_id is malformed', () => {
    expect(refusedAt({ record_id: '66f0a1b2c3d4e5f607182939' }, 1)).toBeUndefined()
    expect(refusedAt({ record_id: { $gt: '66f0a1b2c3d4e5f607182939' } }, 1)).toBeUndefined()
    expect(refusedAt({ record_id: '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f' }, 1)).toBe('/filter/record_id')
    expect(refusedAt({ record_id: { $in: ['1'] } }, 1)).toBe('/filter/record_id/$in/0')
  })

  it.each([
    ['attribute_values.number', 1, ['1', true, null]],
    ['attribute_values.totals', 1, ['1', [1]]],
    ['attribute_values.boolean', undefined, [true, 'a', 1]],
    ['attribute_values.date', '2024-02-29', ['2024', '2024-02-29T00:00:00Z', 2024]],
    ['attribute_values.datetime', '2024-02-29T00:00:00Z', ['2024-02-29', 1709164800]],
    ['attribute_values.text', '', [1]],
    ['attribute_values.json', 1, [true, []]],
    ['attribute_values.boss', 'a', [1]],
    ['attribute_values.undeclared', 'a', [true]],
    ['state', undefined, ['active']],
    ['id', '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f', ['01936f3e']],
    ['email', '', [1]],
    ['date_of_birth', '1815-12-10', ['1815']],
    ['email_consent', undefined, [true]],
    ['created_at', '2024-02-29T00:00:00Z', ['2024-02-29', 1709164800, null]],
  ])('is refused on %s if the bound of a range has no order with the field', (field, right, wrong) => {
    for (const operator of ['$lt', '$lte', '$gt', '$gte']) {
      if (right !== undefined) expect(refusedAt({ [field]: { [operator]: right } })).toBeUndefined()
      for (const operand of wrong)
        expect(refusedAt({ [field]: { [operator]: operand } })).toBe(`/filter/${field}/${operator}`)
    }
  })

  it.each([
    ['attribute_values.number', [], ['1']],
    ['attribute_values.totals', [], ['1']],
    ['attribute_values.boolean', [], ['true']],
    ['attribute_values.date', ['02', '2024-02-29'], ['Feb', '2024-02-29T', '02.29']],
    ['attribute_values.datetime', [], ['2024']],
    ['attribute_values.text', ['x', ''], []],
    ['attribute_values.json', ['x'], []],
    ['attribute_values.boss', ['a'], []],
    ['attribute_values.undeclared', ['a'], []],
    ['state', [], ['act']],
    ['id', ['0F'], ['x', '--']],
    ['date_of_birth', ['12'], ['december']],
    ['email_consent', [], ['t']],
    ['created_at', [], ['2024']],
  ])('is refused on %s if the field can never contain the text', (field, right, wrong) => {
    for (const operator of ['$contains', '$starts_with', '$ends_with']) {
      for (const operand of right) expect(refusedAt({ [field]: { [operator]: operand } })).toBeUndefined()
      for (const operand of [...wrong, 1])
        expect(refusedAt({ [field]: { [operator]: operand } })).toBe(`/filter/${field}/${operator}`)
    }
  })

  it.each<[unknown, number, string]>([
    [{ 'attribute_values.boss': { $none: { state: 'x' } } }, 0, '/attribute_values.boss/$none/state'],
    [
      {
        $not: {
          $or: [{}, { 'attribute_values.bought': { $every: { 'attribute_values.invoiced_at': { $lt: 'x' } } } }],
        },
      },
      0,
      '/$not/$or/1/attribute_values.bought/$every/attribute_values.invoiced_at/$lt',
    ],
    [
      {
        'attribute_values.buyer': {
          $some: { 'attribute_values.friends': { $some: { 'attribute_values.number': 'x' } } },
        },
      },
      1,
      '/attribute_values.buyer/$some/attribute_values.friends/$some/attribute_values.number',
    ],
    [{ $and: [{ consents: { $some: { consent_type_id: 9 } } }] }, 0, '/$and/0/consents/$some/consent_type_id'],
    [{ consents: { $some: { consent_type_id: 3 } } }, 0, '/consents/$some/consent_type_id'],
    [{ consents: { $some: { state: true, channel: 'sms', consent_type_id: 2 } } }, 0, '/consents/$some/channel'],
  ])('%j is refused at any depth', (filter, stack_id, path) => {
    expect(refusedAt(filter, stack_id)).toBe(`/filter${path}`)
  })

  it.each<[unknown, string]>([
    [
      { 'attribute_values.datetime': { $gte: '2025-01-01' } },
      '2025-01-01 is a date; the attribute is a date and time: write 2025-01-01T00:00:00Z',
    ],
    [{ created_at: '2025-01-01' }, '2025-01-01 is a date; the field is a date and time: write 2025-01-01T00:00:00Z'],
    [
      { 'attribute_values.date': '2025-01-01T10:00:00Z' },
      'is a date and time; the attribute is a date: write 2025-01-01',
    ],
    [{ 'attribute_values.number': '1.50' }, 'must be a number: write 1.5, without quotes'],
    [{ 'attribute_values.boolean': 'true' }, 'must be a boolean: write true, without quotes'],
    [{ 'attribute_values.boss': 7 }, 'must be a string: write "7"'],
    [{ email: { $neq: '' } }, 'is never empty: write null to match a missing value'],
    [{ state: 'actve' }, 'must be active or placeholder'],
    [
      { consents: { $some: { channel: 'sms', consent_type_id: 2 } } },
      'is not a channel of consent type 2, which has: email',
    ],
  ])('%j is refused with a message that says what to write', (filter, message) => {
    expect(refusalOf(filter)?.message).toBe(message)
  })

  it.each(['id', 'email', 'consents', 'email_consent'])('is refused on a record by %s', field => {
    expect(refusedAt({ [field]: 'x' }, 1)).toBe(`/filter/${field}`)
  })

  it('is refused at six levels of nesting but not at five', () => {
    expect(refusedAt(nested(5))).toBeUndefined()
    expect(refusedAt(nested(6))).toBe('/filter/$not/$not/$not/$not/$not')
  })

  it('is refused at four relationships in a row but not at three', () => {
    expect(refusedAt(friendsAtDepth(3))).toBeUndefined()
    expect(refusedAt(friendsAtDepth(4))).toBe(`/filter${'/attribute_values.friends/$some'.repeat(4)}`)
  })

  it('is refused at 51 conditions but not at 50', () => {
    expect(refusedAt(conditions(50))).toBeUndefined()
    expect(refusedAt(conditions(51))).toBe('/filter/$and/50/first_name')
  })

  it('is refused at 501 elements of $in but not at 500', () => {
    expect(refusedAt({ first_name: { $in: Array(500).fill('a') } })).toBeUndefined()
    expect(refusedAt({ first_name: { $nin: Array(501).fill('a') } })).toBe('/filter/first_name/$nin')
  })
})

describe('the read scopes of a filter', () => {
  it.each([
    [{}, 0, ['people:read']],
    [{}, 1, ['records:read']],
    [{ 'attribute_values.bought': 'o1' }, 0, ['people:read']],
    [{ 'attribute_values.bought': { $none: {} } }, 0, ['people:read', 'records:read']],
    [{ $or: [{ $not: { 'attribute_values.buyer': { $every: {} } } }] }, 1, ['records:read', 'people:read']],
  ])('%j on stack %i needs %j', (filter, stack_id, scopes) => {
    expect([...scopesOf(parseFilter(filter, definitions, stack_id).condition, stack_id)]).toEqual(scopes)
  })
})
