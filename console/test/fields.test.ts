import { describe, expect, it } from 'vitest'
import {
  attributeField,
  draftOf,
  type EditedAttribute,
  type Field,
  localTime,
  momentOf,
  parseDraft,
  personField,
  undeclaredField,
} from '../src/entity/fields.ts'

type Rules = Partial<EditedAttribute>

/** The field of a value of an attribute, or of a key that is not declared. */
const fieldOf = (type: EditedAttribute['type'] | undefined, value: unknown = null, rules: Rules = {}): Field =>
  type ? attributeField({ key: 'key', type, cardinality: 'one', ...rules }, value) : undeclaredField('key')

const many = { cardinality: 'many' } as const

describe('a value that is edited as a text', () => {
  it.each<[EditedAttribute['type'] | undefined, unknown, Rules?]>([
    ['text', 'Ring twice.\nThen wait.'],
    ['text', '<img src=x onerror=alert(1)>\u202E "quoted"'],
    ['text', 7],
    ['text', ['one', 'two'], many],
    ['text', ['two\nlines', 'one'], many],
    ['text', 'one', many],
    ['text', 'gold', { enum: ['gold', 'silver'] }],
    ['text', 'bronze', { enum: ['gold', 'silver'] }],
    ['number', 1e21],
    ['number', -0.1],
    ['number', 0.1 + 0.2],
    ['number', 2, { enum: [1, 2] }],
    ['number', 'not a number'],
    ['number', [1, 2.5], many],
    ['boolean', false],
    ['boolean', [true, false], many],
    ['date', '2026-01-31'],
    ['date', 'soon'],
    ['datetime', '2026-01-31T12:00:00.000Z'],
    ['datetime', '2026-07-31T23:59:58.120Z'],
    ['datetime', 'soon'],
    ['datetime', '2026-01-31T12:00:00.123456+02:00'],
    ['json', { a: [null, 1, { b: 'c' }] }],
    ['json', [{ a: 1 }, 'b'], many],
    ['json', { a: 1 }, many],
    ['person', 'ada'],
    ['stack', ['o-1', 'o-2'], many],
    ['stack', ['o-1', null], many],
    [undefined, 'a text without an attribute'],
    [undefined, ['a', { b: 1 }]],
  ])('stays as it is: %o %o', (type, value, rules = {}) => {
    const field = fieldOf(type, value, rules)
    expect(parseDraft(field, draftOf(field, value), value)).toEqual({ value })
  })

  it('is removed by an empty text', () => {
    for (const type of ['text', 'number', 'json', 'datetime'] as const) {
      expect(parseDraft(fieldOf(type), ' \n ')).toEqual({ value: null })
      expect(parseDraft(fieldOf(type, null, many), ['', ' '])).toEqual({ value: null })
    }
  })

  it('is refused with its reason if the text is none of its type', () => {
    expect(parseDraft(fieldOf('number'), '12,5')).toEqual({ fault: { reason: 'number' } })
    expect(parseDraft(fieldOf('number'), '12345678901234567890')).toEqual({ fault: { reason: 'exactNumber' } })
    expect(parseDraft(fieldOf('datetime'), 'soon')).toEqual({ fault: { reason: 'datetime' } })
    expect(parseDraft(fieldOf('number', null, many), ['1', 'perhaps'])).toEqual({ fault: { reason: 'number' } })
    expect(parseDraft(fieldOf(undefined), '{"a"')).toEqual({ fault: { reason: 'json', words: expect.any(String) } })
  })

  it('stays as it is where another one of its list changes, even if its text says less', () => {
    const stored = ['2026-01-31T12:00:00.123456+02:00', '2026-02-01T00:00:00Z']
    const field = fieldOf('datetime', stored, many)
    const [first] = draftOf(field, stored)
    expect(parseDraft(field, [first!, localTime('2026-03-01T08:30:00.000Z')], stored)).toEqual({
      value: [stored[0], '2026-03-01T08:30:00.000Z'],
    })
  })

  it('keeps the spaces at its ends in an attribute, and loses them in a name or an identifier', () => {
    expect(parseDraft(fieldOf('text'), ' a ')).toEqual({ value: ' a ' })
    expect(parseDraft(personField('external_id', { external_id: 'Identifier' }), ' a ')).toEqual({ value: 'a' })
  })
})

it('a moment is shown in the time zone of the browser, and leads back to the same moment', () => {
  for (const moment of ['2026-01-31T12:00:00.000Z', '2026-07-31T23:59:58.120Z'])
    expect(new Date(localTime(moment)).toISOString()).toBe(moment)
  expect(localTime('soon')).toBe('')
})

it('a local time that clocks are put forward over is no moment', () => {
  const zone = process.env.TZ
  process.env.TZ = 'Europe/Berlin'
  try {
    expect(['2026-03-29T02:30', '2026-03-29T02:00:00', 'soon', ''].map(momentOf)).toEqual(Array(4).fill(undefined))
    expect(momentOf('2026-03-29T01:59')).toBe('2026-03-29T00:59:00.000Z')
    expect(momentOf('2026-03-29T03:00:00.5')).toBe('2026-03-29T01:00:00.500Z')
    const field = fieldOf('datetime')
    expect(parseDraft(field, '2026-03-29T02:30')).toEqual({ fault: { reason: 'datetime' } })
  } finally {
    if (zone === undefined) delete process.env.TZ
    else process.env.TZ = zone
  }
})

describe('a key that is not declared', () => {
  it.each([
    ['a text', 'blue', 'text', 'blue'],
    ['a number', 4.5, 'number', '4.5'],
    ['true or false', true, 'boolean', 'true'],
    ['a list of texts', ['a', 'b'], 'text', ['a', 'b']],
    ['an object', { a: 1 }, 'json', '{\n  "a": 1\n}'],
    ['a mixed list', ['a', 1], 'json', '[\n  "a",\n  1\n]'],
    ['an empty text', '', 'json', '""'],
  ])('is edited by the type of its value: %s', (_, value, kind, draft) => {
    const field = undeclaredField('key', value)
    expect([field.kind, draftOf(field, value)]).toEqual([kind, draft])
    expect(parseDraft(field, draftOf(field, value), value)).toEqual({ value })
  })
})
