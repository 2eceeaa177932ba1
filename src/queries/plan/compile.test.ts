import fc from 'fast-check'
import { expect, it } from 'vitest'
import { personFilters } from '../../../test/support/filter-generators.ts'
import { type Attribute, buildDefinitions } from '../../organizations/definitions.ts'
import { parseFilter } from '../grammar/parse.ts'
import { compileCondition } from './compile.ts'
import { Fragment, Parameter, render, sql } from './fragment.ts'

const times = { created_at: '2026-01-01T00:00:00.000Z', updated_at: '2026-01-01T00:00:00.000Z' }
const index = { id: 77_001, ready: true, indexed: 0, total: 0 }
const attribute = (id: number, key: string, target_stack_id: number | null): Attribute => ({
  ...times,
  ...{ id, owner_stack_id: 0, key, name: key, description: null, cardinality: 'many', indexed: true, state: 'active' },
  ...{ target_stack_id, type: target_stack_id === null ? 'text' : target_stack_id === 0 ? 'person' : 'stack', index },
})
const stack_id = 88_001
const definitions = buildDefinitions(99_001, {
  version: 1,
  stacks: [
    {
      id: stack_id,
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
    attribute(66_001, 'city', null),
    attribute(66_002, 'friends', 0),
    attribute(66_003, 'referrer', 0),
    attribute(66_004, 'mixed', 0),
    attribute(66_005, 'bought', stack_id),
    { ...attribute(66_006, 'buyer', 0), owner_stack_id: stack_id },
    { ...attribute(66_007, 'exact', null), owner_stack_id: stack_id, type: 'number', cardinality: 'one' },
  ],
  consent_types: [1, 2].map(id => ({
    ...{ id, key: `type${id}`, name: '', description: null, state: 'active', mandatory: false, default_state: false },
    ...{
      channels: [
        { channel: 'email', is_default: false, double_opt_in: false },
        { channel: 'sms', is_default: false, double_opt_in: false },
      ],
      text_versions: 0,
      ...times,
    },
  })),
})

const organization = new Parameter(definitions.organization_id)
const compile = (filter: unknown) =>
  render(compileCondition(parseFilter(filter, definitions, 0).condition, definitions, 0, organization).check, [
    organization,
  ])

// kith's own SQL text contains none of these.
const hostile = fc.constantFrom(
  ...["'; drop table entities; --", '$1', "\\'", '"', 'zzz', '{}', 'zzz::text', '/* zzz', '$zzz$', '%zzz_', '\u2028'],
)
const marked = hostile.map(text => `${text}\u{1f600}`)

it('puts no key and no value of a filter into the SQL text', () => {
  const operands = fc.oneof(
    marked,
    fc
      .record({ operator: fc.constantFrom('$eq', '$lt', '$contains', '$ends_with'), marked })
      .map(test => ({ [test.operator]: test.marked })),
    fc.array(marked).map($in => ({ $in })),
  )
  const structures = marked.map(text => ({ $eq: { [text]: [text] } }))
  const undeclared = marked.map(key => `attribute_values.${key}`)
  const texts = ['first_name', 'email', 'external_id', 'language', 'attribute_values.city', 'attribute_values.friends']
  const leaves = fc
    .oneof(fc.tuple(undeclared, fc.oneof(operands, structures)), fc.tuple(fc.constantFrom(...texts), operands))
    .map(([field, operand]) => ({ [field]: operand }))
  fc.assert(
    fc.property(leaves, leaves, (one, other) => {
      const filter = {
        $or: [one, { 'attribute_values.bought': { $some: { external_id: one.email ?? 'zzz' } } }, { $not: other }],
      }
      const { text } = compile(filter)
      expect(text).not.toContain('\u{1f600}')
      expect(text).not.toMatch(/zzz|drop|\u2028|99001|88001|7700|6600/)
    }),
  )
})

it('builds a text of harmless characters for any filter, with one number for each value', () => {
  fc.assert(
    fc.property(personFilters(), filter => {
      const { text, values } = compile(filter)
      expect(text).toMatch(/^[\n\w\s.,:()<>=+*#>'"{}[\]$^~|?!-]*$/)
      const used = new Set([...text.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number)))
      used.add(1)
      expect([...used].sort((a, b) => a - b)).toEqual(values.map((_, position) => position + 1))
    }),
  )
})

it('treats a string in a hole of a fragment as a value', () => {
  const organization = new Parameter(5)
  const inner = sql`a = ${'x; --'}`
  expect(render(sql`${inner} and b = ${organization} or ${inner} and ${'b'}`, [organization])).toEqual({
    text: 'a = $2 and b = $1 or a = $2 and $3',
    values: [5, 'x; --', 'b'],
  })
  expect(sql`x`).toBeInstanceOf(Fragment)
})
