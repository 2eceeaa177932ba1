import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { normalizeRelationship } from './normalize.ts'

const one = (value: unknown) => normalizeRelationship(value, 'one', 1_000)
const many = (value: unknown) => normalizeRelationship(value, 'many', 1_000)
const refused = (value: unknown, cardinality: 'one' | 'many' = 'one') => {
  const normalized = normalizeRelationship(value, cardinality, 3)
  return 'refused' in normalized ? normalized.refused.path : undefined
}

describe('a relationship value', () => {
  test.each([null, '', '   ', []])('%j unlinks', value => {
    expect(one(value)).toEqual({ names: [], places: [] })
    expect(many(value)).toEqual({ names: [], places: [] })
  })

  test.each([
    ['ada', ['ada']],
    ['  ada ', ['ada']],
    [42, ['42']],
    [-7, ['-7']],
    [{ external_id: 'ada' }, ['ada']],
    [{ external_id: 42 }, ['42']],
    [{ external_id: null }, []],
    [['ada'], ['ada']],
  ])('%j means %j', (value, names) => {
    expect(one(value)).toMatchObject({ names })
    expect(many(value)).toMatchObject({ names })
  })

  test.each([
    ['\ufeffada', ['\ufeffada']],
    [{ external_id: 'ada\ufeff' }, ['ada\ufeff']],
    [
      ['\ufeffada', 'ada'],
      ['\ufeffada', 'ada'],
    ],
    ['\u0085ada\u3000', ['ada']],
    [{ external_id: '\u0085ada' }, ['ada']],
    [['\u2003ada'], ['ada']],
  ])('%j means %j: trimmed of white space as Unicode has it, and of nothing else', (value, names) => {
    expect(many(value)).toMatchObject({ names })
  })

  test('in a list keeps its order and loses duplicates, whatever shape they come in', () => {
    expect(many(['b', 7, { external_id: 'a' }, ' b ', '7', 'a'])).toEqual({
      names: ['b', '7', 'a'],
      places: [[0], [1], [2]],
    })
  })

  test.each([
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
    expect(refused(value)).toEqual(path)
  })

  test.each([
    [['a', null], [1]],
    [['a', ''], [1]],
    [[['a']], [0]],
    [['a', 'b', 1.5], [2]],
    [['a', 'b', 'c', 'd'], []],
  ])('%j is refused for a link to many, at the place that is wrong', (value, path) => {
    expect(refused(value, 'many')).toEqual(path)
  })

  test('normalized again is itself', () => {
    const scalar = fc.oneof(fc.string(), fc.integer(), fc.record({ external_id: fc.string() }))
    fc.assert(
      fc.property(fc.oneof(scalar, fc.array(scalar, { maxLength: 5 })), value => {
        const normalized = many(value)
        if ('names' in normalized) expect(many(normalized.names)).toMatchObject({ names: normalized.names })
      }),
    )
  })

  test('is never accepted with a name that could not be an external identifier', () => {
    fc.assert(
      fc.property(fc.jsonValue(), value => {
        const normalized = many(value)
        if (!('names' in normalized)) return
        for (const name of normalized.names) expect(name).toMatch(/^(?!\.{1,2}$)\P{Cc}{1,255}$/u)
      }),
    )
  })
})
