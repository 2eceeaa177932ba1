import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { normalizeRelationship, type TargetKind } from './normalize.ts'

const one = (value: unknown) => normalizeRelationship(value, { cardinality: 'one', maxLinks: 1_000, kind: 'person' })
const many = (value: unknown, kind: TargetKind = 'person') =>
  normalizeRelationship(value, { cardinality: 'many', maxLinks: 1_000, kind })
const named = (...names: string[]) => names.map(external_id => ({ external_id }))
const faultPath = (value: unknown, cardinality: 'one' | 'many' = 'one') => {
  const normalized = normalizeRelationship(value, { cardinality, maxLinks: 3, kind: 'person' })
  return 'fault' in normalized ? normalized.fault.path : undefined
}

describe('a relationship value', () => {
  it.each([null, '', '   ', []])('%j unlinks', value => {
    expect(one(value)).toEqual({ references: [], paths: [] })
    expect(many(value)).toEqual({ references: [], paths: [] })
  })

  it.each([
    ['ada', ['ada']],
    ['  ada ', ['ada']],
    [42, ['42']],
    [-7, ['-7']],
    [{ external_id: 'ada' }, ['ada']],
    [{ external_id: 42 }, ['42']],
    [{ external_id: null }, []],
    [['ada'], ['ada']],
  ])('%j names %j', (value, names) => {
    expect(one(value)).toMatchObject({ references: named(...names) })
    expect(many(value)).toMatchObject({ references: named(...names) })
  })

  it.each([
    ['\ufeffada', ['\ufeffada']],
    [{ external_id: 'ada\ufeff' }, ['ada\ufeff']],
    [
      ['\ufeffada', 'ada'],
      ['\ufeffada', 'ada'],
    ],
    ['\u0085ada\u3000', ['ada']],
    [{ external_id: '\u0085ada' }, ['ada']],
    [['\u2003ada'], ['ada']],
  ])('%j names %j, because only Unicode white space is trimmed', (value, names) => {
    expect(many(value)).toMatchObject({ references: named(...names) })
  })

  it('keeps the order of a list and removes duplicates of any shape', () => {
    expect(many(['b', 7, { external_id: 'a' }, ' b ', '7', 'a'])).toEqual({
      references: named('b', '7', 'a'),
      paths: [[0], [1], [2]],
    })
  })

  it.each([
    [true, []],
    [1.5, []],
    [{}, []],
    [{ external_id: 'a', name: 'b' }, []],
    [{ external_id: true }, []],
    [{ external_id: { external_id: 'a' } }, []],
    [['a', 'b'], []],
    ['..', []],
    ['a\u0007b', []],
    ['x'.repeat(256), []],
  ])('%j is refused for a link to one', (value, path) => {
    expect(faultPath(value)).toEqual(path)
  })

  it.each([
    [['a', null], [1]],
    [['a', ''], [1]],
    [[['a']], [0]],
    [['a', 'b', 1.5], [2]],
    [['a', 'b', 'c', 'd'], []],
  ])('%j is refused for a link to many, with the path of the fault', (value, path) => {
    expect(faultPath(value, 'many')).toEqual(path)
  })

  it('is refused for more links than it may have, and not for duplicates', () => {
    const rules = { cardinality: 'many', maxLinks: 2, kind: 'person' } as const
    expect(normalizeRelationship(['a', 'b', 'a', { external_id: 'b' }], rules)).toMatchObject({
      references: named('a', 'b'),
    })
    expect(normalizeRelationship(['a', 'b', 'a', 'c'], rules)).toMatchObject({ fault: { path: [] } })
  })

  const id = '01a205a8-8eaf-7000-8000-0123456789ab'
  const record_id = '65f0c0ffee65f0c0ffee65f0'

  it('names an entity by its internal identifier, in the form of the kind of the target', () => {
    expect(one({ id: ` ${id.toUpperCase()} ` })).toEqual({ references: [{ id }], paths: [[]] })
    expect(many([{ id }, 'b', { id }, id])).toEqual({
      references: [{ id }, { external_id: 'b' }, { external_id: id }],
      paths: [[0], [1], [3]],
    })
    expect(many({ record_id }, 'record')).toEqual({ references: [{ id: record_id }], paths: [[]] })
  })

  it.each([{ id: 'ada' }, { id: 7 }, { id: null }, { id, external_id: 'ada' }, { record_id }, { id: record_id }])(
    '%j does not name a person',
    value => {
      expect(faultPath(value)).toEqual([])
      expect(faultPath(['ada', value], 'many')).toEqual([1])
    },
  )

  it('does not change when it is normalized again', () => {
    const scalar = fc.oneof(
      fc.string(),
      fc.integer(),
      fc.record({ external_id: fc.string() }),
      fc.record({ id: fc.uuid() }),
    )
    fc.assert(
      fc.property(fc.oneof(scalar, fc.array(scalar, { maxLength: 5 })), value => {
        const normalized = many(value)
        if ('references' in normalized)
          expect(many(normalized.references)).toMatchObject({ references: normalized.references })
      }),
    )
  })

  it('is accepted only if every name is a valid external identifier', () => {
    fc.assert(
      fc.property(fc.jsonValue(), value => {
        const normalized = many(value)
        if (!('references' in normalized)) return
        for (const reference of normalized.references)
          expect('external_id' in reference && reference.external_id).toMatch(/^(?!\.{1,2}$)\P{Cc}{1,255}$/u)
      }),
    )
  })
})
