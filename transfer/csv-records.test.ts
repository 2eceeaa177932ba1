import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type CsvRecord, CsvRecords } from './csv-records.ts'

/** Reads a text in pieces of these lengths, then the rest at once. */
function read(text: string, delimiter = ',', lengths: number[] = []): CsvRecord[] {
  const records = new CsvRecords(delimiter)
  const found: CsvRecord[] = []
  let at = 0
  for (const length of lengths) {
    found.push(...records.take(text.slice(at, at + length)))
    at += length
  }
  return [...found, ...records.take(text.slice(at)), ...records.last()]
}

const cellsOf = (records: CsvRecord[]) => records.map(record => ('cells' in record ? record.cells : record.text))

it('restores any cells that were written as RFC 4180 says, in pieces of any length', () => {
  const cell = fc.string({ unit: fc.constantFrom('a', ' ', '"', ';', '\n', '\r', '\\', 'ä'), maxLength: 8 })
  const rows = fc.array(fc.array(cell, { minLength: 2, maxLength: 4 }), { maxLength: 5 })
  const written = (row: string[]) =>
    row.map(text => (/[";\n\r\\]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)).join(';')
  fc.assert(
    fc.property(rows, fc.constantFrom('\n', '\r\n', '\r'), fc.array(fc.nat(9)), (all, lineEnd, lengths) => {
      expect(cellsOf(read(all.map(written).join(lineEnd), ';', lengths))).toEqual(all)
    }),
  )
})

it('finds the same records in any pieces, and each character in one of them, whatever the text', () => {
  const text = fc.string({ unit: fc.constantFrom('a', ' ', '"', ',', '\n', '\r', '\\'), maxLength: 40 })
  fc.assert(
    fc.property(text, fc.array(fc.nat(9)), (csv, lengths) => {
      const whole = read(csv)
      expect(read(csv, ',', lengths)).toEqual(whole)
      const lines = csv.split(/\r\n|\r|\n/).length
      for (const { line } of whole) expect(line).toBeLessThanOrEqual(lines)
      expect(whole.map(({ line }) => line)).toEqual(whole.map(({ line }) => line).toSorted((a, b) => a - b))
    }),
  )
})

it.each([
  ['white space around quotes', '1, "Ann" ,x', /white space before its opening quote/],
  ['white space behind a quote', '1,"Ann" ,x', /between a closing quote and the next separator/],
  ['quotes that a backslash escapes', String.raw`1,"Mary \"Molly\"",x`, /between a closing quote/],
  ['such quotes in a cell without quotes', String.raw`1,Mary \"Molly\",x`, /after a backslash/],
  ['a text behind a quoted one', '1,"Ann"a,x', /between a closing quote/],
  ['a quoted cell of several lines', '1,"A\nB"x,y', /between a closing quote/],
])('refuses a record with %s up to the end of that line, and reads the next one', (_, record, fault) => {
  expect(read(`h,h,h\n${record}\r\n2,Bo,"y"\n`)).toEqual([
    { line: 1, cells: ['h', 'h', 'h'] },
    { line: 2, text: record, fault: expect.stringMatching(fault) },
    { line: record.includes('\n') ? 4 : 3, cells: ['2', 'Bo', 'y'] },
  ])
})

it('takes a quote within a cell that does not begin with one as an ordinary character', () => {
  expect(cellsOf(read('1,Dwayne "The Rock" Johnson,6"\n'))).toEqual([['1', 'Dwayne "The Rock" Johnson', '6"']])
})

it('refuses a quote that is not closed, with all that follows it', () => {
  expect(read('h\n"a\nb\n')).toEqual([
    { line: 1, cells: ['h'] },
    { line: 2, text: '"a\nb\n', fault: 'has a quote that is not closed' },
  ])
})

it('throws if a quoted cell is longer than 16 MiB', () => {
  const records = new CsvRecords(',')
  expect(() => records.take(`h\n"${'a'.repeat(17_000_000)}`)).toThrow(/begins in line 2 .*quote/)
})
