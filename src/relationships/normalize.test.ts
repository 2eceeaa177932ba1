import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { normalizeRelationship } from './normalize.ts'

const one = (value: unknown) => normalizeRelationship(value, 'one', 1_000)
const many = (value: unknown) => normalizeRelationship(value, 'many', 1_000)
const faultPath = (value: unknown, cardinality: 'one' | 'many' = 'one') => {
  const normalized = normalizeRelationship(value, cardinality, 3)
  return 'fault' in normalized ? normalized.fault.path : undefined
}

describe('a relationship value', () => {
  it.each([null, '', '   ', []])('%j unlinks', value => {
    expect(one(value)).toEqual({ names: [], paths: [] })
    expect(many(value)).toEqual({ names: [], paths: [] })
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
    expect(one(value)).toMatchObject({ names })
    expect(many(value)).toMatchObject({ names })
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
    expect(many(value)).toMatchObject({ names })
  })

  it('keeps the order of a list and removes duplicates of any shape', () => {
    expect(many(['b', 7, { external_id: 'a' }, ' b ', '7', 'a'])).toEqual({
      names: ['b', '7', 'a'],
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

  it('does not change when it is normalized again', () => {
    const scalar = fc.oneof(fc.string(), fc.integer(), fc.record({ external_id: fc.string() }))
    fc.assert(
      fc.property(fc.oneof(scalar, fc.array(scalar, { maxLength: 5 })), value => {
        const normalized = many(value)
        if ('names' in normalized) expect(many(normalized.names)).toMatchObject({ names: normalized.names })
      }),
    )
  })

  it('is accepted only if every name is a valid external identifier', () => {
    fc.assert(
      fc.property(fc.jsonValue(), value => {
        const normalized = many(value)
        if (!('names' in normalized)) return
        for (const name of normalized.names) expect(name).toMatch(/^(?!\.{1,2}$)\P{Cc}{1,255}$/u)
      }),
    )
  })
})
