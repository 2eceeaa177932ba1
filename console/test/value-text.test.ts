import { describe, expect, it } from 'vitest'
import {
  type EditedAttribute,
  formOf,
  localMoment,
  momentOfLocal,
  textOf,
  valueOfText,
} from '../src/records/value-text.ts'

const attributeOf = (
  type: EditedAttribute['type'],
  cardinality: EditedAttribute['cardinality'] = 'one',
): EditedAttribute => ({ type, cardinality })

/** A value after it was shown as a text and read from it. */
function roundTrip(attribute: EditedAttribute | undefined, value: unknown): unknown {
  const form = formOf(attribute, value)
  return valueOfText(form, attribute, textOf(form, value))
}

describe('a value that is edited as a text', () => {
  it.each([
    [attributeOf('text'), 'Ring twice.\nThen wait.'],
    [attributeOf('text'), '<img src=x onerror=alert(1)>\u202E "quoted"'],
    [attributeOf('text'), 7],
    [attributeOf('text', 'many'), ['one', 'two']],
    [attributeOf('text', 'many'), ['two\nlines', 'one']],
    [attributeOf('number'), 1e21],
    [attributeOf('number'), -0.1],
    [attributeOf('number'), 'not a number'],
    [attributeOf('number', 'many'), [1, 2.5]],
    [attributeOf('boolean'), false],
    [attributeOf('date'), '2026-01-31'],
    [attributeOf('datetime'), '2026-01-31T12:00:00.123456+02:00'],
    [attributeOf('json'), { a: [null, 1, { b: 'c' }] }],
    [attributeOf('person'), 'ada'],
    [attributeOf('stack', 'many'), ['o-1', 'o-2']],
    [attributeOf('stack', 'many'), ['o-1', null]],
    [undefined, 'a text without an attribute'],
    [undefined, ['a', { b: 1 }]],
  ])('stays as it is: %o %o', (attribute, value) => {
    expect(roundTrip(attribute, value)).toEqual({ value })
  })

  it('is removed by an empty text', () => {
    for (const form of ['plain', 'lines', 'json'] as const)
      expect(valueOfText(form, attributeOf('text'), ' \n ')).toEqual({ value: null })
  })

  it('is refused with its reason if the text is none of its type', () => {
    expect(valueOfText('plain', attributeOf('number'), '12,5')).toEqual({ fault: { reason: 'number' } })
    expect(valueOfText('lines', attributeOf('boolean', 'many'), 'true\nperhaps')).toEqual({
      fault: { reason: 'boolean' },
    })
    expect(valueOfText('json', undefined, '{"a"')).toEqual({ fault: { reason: 'json', words: expect.any(String) } })
  })
})

it('a moment is shown in the time zone of the browser, and leads back to the same moment', () => {
  for (const moment of ['2026-01-31T12:00:00.000Z', '2026-07-31T23:59:58.120Z'])
    expect(momentOfLocal(localMoment(moment))).toBe(moment)
  expect([localMoment('soon'), momentOfLocal('')]).toEqual(['', ''])
})
