import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { habitsOf } from './cell-habits.ts'
import { jsonOf, type ParseOptions } from './cell-parser.ts'
import { usualSettings } from './csv.ts'
import type { Target } from './target.ts'

const column = (type: 'number' | 'date'): Target => ({
  ...{ to: 'attribute', name: 'a', key: 'a', label: 'a', type, many: false },
})
const habitsOfCells = (type: 'number' | 'date', ...cells: string[]) =>
  habitsOf(
    cells.map(cell => [cell]),
    [column(type)],
  )
const read = (cell: string, type: 'number' | 'boolean', options: Partial<ParseOptions> = {}) =>
  JSON.parse(jsonOf(cell, type, { ...usualSettings, ...options }))

describe('the cells of a file tell', () => {
  it.each([
    [',', ['12,5', '7']],
    [',', ['1.234,50']],
    [',', ['1.234', '0,125']],
    ['.', ['12.5', '1,234']],
    ['.', ['1,234.5']],
    [null, ['1,234', '12']],
    [null, ['12,5', '12.5']],
  ])('the decimal mark %s of %j', (decimal, cells) => {
    expect(habitsOfCells('number', ...cells).decimal).toBe(decimal)
  })

  it.each([
    ['dmy', ['01/02/2024', '25/12/2024 14:30']],
    ['mdy', ['01-02-2024', '12-25-2024']],
    ['mixed', ['01/02/2024']],
    ['mixed', ['25/12/2024', '12/25/2024']],
    [null, ['31.12.2024', '2024-12-31', '02/02/2024', '']],
  ])('the order %s of the dates %j', (dateOrder, cells) => {
    expect(habitsOfCells('date', ...cells).dateOrder).toBe(dateOrder)
  })
})

describe('a cell', () => {
  it('of a number may have separators of thousands, and is read as it was written with either mark', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: -99_999_999, max: 99_999_999 }),
        fc.constantFrom('de', 'en', 'it'),
        (cents, locale) => {
          const text = (cents / 100).toLocaleString(locale, { minimumFractionDigits: 2 })
          expect(read(text, 'number', { decimal: locale === 'en' ? '.' : ',' })).toBe(cents / 100)
        },
      ),
    )
    expect([read("1'234.5", 'number'), read('1 234', 'number')]).toEqual([1234.5, 1234])
    // The cell could also mean one and a quarter.
    expect(() => read('1,250', 'number')).toThrow('is not a number')
  })

  it.each([
    [true, 'ja JA sì oui sí x X wahr 1 true vero'],
    [false, 'nein no non NON falsch 0 falso false'],
  ])('means %s by the words %s', (meaning, words) => {
    expect(words.split(' ').map(word => read(word, 'boolean'))).toEqual(words.split(' ').map(() => meaning))
  })
})
