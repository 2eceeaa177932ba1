import fc from 'fast-check'
import { expect, it } from 'vitest'
import { eachText, noProfile } from '../../test/support/profile.ts'
import type { CurrentState, EntityRow, Target } from '../entities/entity-row.ts'
import { type Attribute, buildDefinitions } from '../organizations/definitions.ts'
import { plainColumns } from '../values/profile-fields.ts'
import { planMerge, type Undo } from './merge.ts'
import { planUnmerge } from './unmerge.ts'

const relationship = (id: number, key: string, cardinality: Attribute['cardinality']): Attribute => ({
  id,
  owner_stack_id: 0,
  key,
  name: key,
  description: null,
  type: 'person',
  target_stack_id: 0,
  cardinality,
  indexed: false,
  state: 'active',
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
})
const definitions = buildDefinitions(1, {
  version: 1,
  stacks: [],
  consent_types: [],
  attributes: [relationship(1, 'referrer', 'one'), relationship(2, 'friends', 'many')],
})

const ids = ['ada', 'bob', 'cleo', 'dan', 'eve']
const target = fc.constantFrom(...ids).map((id): Target => ({ id, external_id: id }))
const targets = fc.uniqueArray(target, { selector: ({ id }) => id, minLength: 1, maxLength: 5 })
const links = fc
  .record({ 1: fc.option(targets.map(list => list.slice(0, 1))), 2: fc.option(targets) })
  .map(given => new Map([1, 2].flatMap(id => (given[id as 1 | 2] ? [[id, given[id as 1 | 2]!]] : []))))
const text = fc.option(fc.constantFrom('x', 'y'))
const phone = fc.constantFrom(null, 'x', 'y')
const value = fc.constantFrom<unknown>(1, 'x', { a: [1] })
const row = (id: string): fc.Arbitrary<EntityRow> =>
  fc
    .record({
      ...eachText(() => text),
      mobile_prefix: phone,
      mobile_number: phone,
      push_notification_consent: fc.option(fc.boolean()),
      attributes: fc.dictionary(fc.constantFrom('a', 'b', 'constructor', 'toString'), value),
    })
    .map(fields => ({
      stack_id: 0,
      id,
      external_id: id,
      active: true,
      version: 1,
      ...noProfile,
      answers: {},
      ...fields,
    }))
const person = (id: string): fc.Arbitrary<CurrentState> => fc.record({ row: row(id), links })
const pair = fc.tuple(person('ada'), person('bob'))

/** The survivor after a merge plan. */
function filled(state: CurrentState, plan: ReturnType<typeof planMerge>['fill']): CurrentState {
  const attributes = { ...state.row.attributes }
  for (const [key, value] of plan.plain)
    if (value === null) delete attributes[key]
    else Object.defineProperty(attributes, key, { value, enumerable: true, configurable: true, writable: true })
  const after = new Map(state.links)
  for (const { attribute, targets } of plan.links) {
    if (targets.length > 0) after.set(attribute.id, targets)
    else after.delete(attribute.id)
  }
  return { row: { ...state.row, ...plan.columns, attributes } as EntityRow, links: after }
}

const idsOf = (state: CurrentState, attribute_id: number) => (state.links.get(attribute_id) ?? []).map(({ id }) => id)

it('keeps every field and attribute value that the survivor has, and takes the others', () => {
  fc.assert(
    fc.property(pair, ([survivor, other]) => {
      const merged = filled(survivor, planMerge(survivor, other, definitions, 100).fill)
      for (const column of plainColumns) {
        const [own, others, after] = [survivor, other, merged].map(({ row }) => row[column])
        if (column === 'push_notification_consent')
          expect(after).toBe(own === false || others === false ? false : (own ?? others))
        else if (column !== 'mobile_prefix') expect(after).toBe(own ?? others)
      }
      const [own, others] = [survivor.row, other.row]
      const phone = [own, others].find(({ mobile_number }) => mobile_number !== null)
      const prefix = phone ? phone.mobile_prefix : (own.mobile_prefix ?? others.mobile_prefix)
      expect([merged.row.mobile_prefix, merged.row.mobile_number]).toEqual([prefix, phone?.mobile_number ?? null])
      expect(merged.row.attributes).toEqual({ ...others.attributes, ...own.attributes })
    }),
  )
})

it('joins the links to several in order, keeps a link to one, and leaves no link between the two', () => {
  fc.assert(
    fc.property(pair, ([survivor, other]) => {
      const plan = planMerge(survivor, other, definitions, 100)
      const merged = filled(survivor, plan.fill)
      const moved = (attribute_id: number) =>
        idsOf(other, attribute_id)
          .filter(id => id !== 'ada')
          .map(id => (id === 'bob' ? 'ada' : id))
      const own = (attribute_id: number) => idsOf(survivor, attribute_id).filter(id => id !== 'bob')
      expect(idsOf(merged, 2)).toEqual([...new Set([...own(2), ...moved(2)])])
      expect(idsOf(merged, 1)).toEqual(own(1).length > 0 ? own(1) : moved(1))
      for (const attribute_id of [1, 2]) expect(idsOf(merged, attribute_id)).not.toContain('bob')
      const total = [1, 2].reduce((sum, id) => sum + idsOf(survivor, id).length + idsOf(other, id).length, 0)
      const left = [1, 2].reduce((sum, id) => sum + idsOf(merged, id).length, 0)
      expect(plan.links.dropped).toBe(total - left)
    }),
  )
})

it('refuses more links than an attribute may have', () => {
  const friends = (...names: string[]) => new Map([[2, names.map(id => ({ id, external_id: id }))]])
  fc.assert(
    fc.property(pair, ([survivor, other]) => {
      const one = { row: survivor.row, links: friends('cleo', 'dan') }
      const two = { row: other.row, links: friends('dan', 'eve') }
      expect(planMerge(one, two, definitions, 3).faults).toEqual([])
      expect(planMerge(one, two, definitions, 2).faults).toEqual([
        { path: '/attribute_values/friends', message: 'would have more than 2 links' },
      ])
    }),
    { numRuns: 10 },
  )
})

const undoOf = (survivor: CurrentState, other: CurrentState): Undo => ({
  into_version: 2,
  other: {
    columns: { ...other.row, answers: undefined, attributes: undefined } as never,
    answers: other.row.answers,
    attributes: other.row.attributes,
    links: Object.fromEntries([...other.links].map(([id, list]) => [id, list.map(one => one.id)])),
  },
  filled: planMerge(survivor, other, definitions, 100).filled,
  flags: { email_consent: null, sms_consent: null },
  aliases: [],
  merges: [],
  answers: [],
})
const facts = {
  merge_id: 1,
  merged_id: 'bob',
  written: { fields: new Set<string>(), keys: new Set<string>() },
  isEmptied: false,
  ownAnswers: [],
  remaining: [],
  givenAt: () => undefined,
  resolve: (_: number, id: string): Target => ({ id, external_id: id }),
}

it('is undone exactly if nothing was written since', () => {
  fc.assert(
    fc.property(pair, ([survivor, other]) => {
      const merged = filled(survivor, planMerge(survivor, other, definitions, 100).fill)
      const returned = filled(merged, planUnmerge(merged, undoOf(survivor, other), facts, definitions).fill)
      expect(returned.row).toEqual(survivor.row)
      for (const attribute_id of [1, 2]) expect(idsOf(returned, attribute_id)).toEqual(idsOf(survivor, attribute_id))
    }),
  )
})

it('leaves what was written since when it is undone', () => {
  fc.assert(
    fc.property(pair, person('ada'), ([survivor, other], later) => {
      const merged = filled(survivor, planMerge(survivor, other, definitions, 100).fill)
      // All fields and keys count as written.
      const keys = new Set([...Object.keys(merged.row.attributes), 'referrer', 'friends'])
      const written = { fields: new Set<string>(plainColumns), keys }
      const state = { row: { ...merged.row, ...later.row, answers: {} }, links: later.links }
      const undone = planUnmerge(state, undoOf(survivor, other), { ...facts, written }, definitions)
      expect([undone.fill.plain.size, undone.fill.links, undone.fill.columns]).toEqual([0, [], {}])
    }),
  )
})
