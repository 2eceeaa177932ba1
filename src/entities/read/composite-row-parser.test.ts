import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { useService } from '../../../test/support/service.ts'
import { parseExactly } from '../../values/parse-json.ts'
import { RowPrinter } from './composite-row-parser.ts'

const service = useService()

const key = (text: string) => Buffer.from(text)

type Entity = { text: string | null; flag: boolean | null; number: number; at: Date; other: string | null }

/** Returns the rows as PostgreSQL prints them. */
async function rowsOf(entities: Entity[]): Promise<string> {
  const [result] = await service.sql<{ rows: string }>(
    `select string_agg(j.attributes::text || E'\\n' || row(j.text, j.flag, j.number, j.at, j.other)::text, E'\\n' order by j.n) as rows
     from jsonb_to_recordset($1) as j(n integer, attributes jsonb, text text, flag boolean, number integer, at timestamptz, other text)`,
    [JSON.stringify(entities.map((entity, n) => ({ ...entity, n, attributes: { of: entity.text } })))],
  )
  return result!.rows
}

const printEntity = (row: RowPrinter) => {
  row.printText(key('{"text":'))
  row.printBoolean(key(',"flag":'))
  row.printRaw(key(',"number":'))
  row.printTime(key(',"at":"'))
  row.append(key('","other":'))
  row.appendText(JSON.stringify(row.readValue()))
  row.append(key(',"attributes":'))
  row.printAttributes()
  row.append(key('}'))
}

function print(printer: RowPrinter, rows: string): unknown[] {
  printer.start().setText(rows)
  printer.append(key('['))
  for (let first = true; printer.hasMore; first = false) {
    if (!first) printer.append(key(','))
    printer.printNext(printEntity)
  }
  printer.append(key(']'))
  expect(printer.bytes.toString()).toBe(printer.json)
  return JSON.parse(printer.json)
}

const expectedJson = ({ text, flag, number, at, other }: Entity) => ({
  text,
  flag,
  number,
  at: at.toISOString(),
  other,
  attributes: { of: text },
})

// PostgreSQL stores neither NUL nor lone surrogates.
const texts = fc
  .string({
    unit: fc.oneof(
      fc.constantFrom(...'"\\,() \n\t\r\b\f\v\u0001\u001f\u007f\u2028é{}x'),
      fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
    ),
  })
  .map(text => text.replaceAll('\0', ''))
const entities = fc.record<Entity>({
  text: fc.option(texts),
  flag: fc.option(fc.boolean()),
  number: fc.integer({ min: -1e9, max: 1e9 }),
  at: fc.date({ min: new Date('0100-01-01'), max: new Date('9999-12-31'), noInvalidDate: true }),
  other: fc.option(texts),
})

const values = fc.oneof(
  fc.oneof(texts, fc.integer(), fc.boolean(), fc.constant(null)).map(value => JSON.stringify(value)),
  fc.tuple(texts, texts).map(([key, text]) => JSON.stringify({ [key]: [text, { '}': ['{', key, []] }, {}], ',': 1 })),
)
const attribute = fc.tuple(texts, values, fc.boolean())

describe('rows printed by PostgreSQL', () => {
  it('are converted to JSON with the same values', async () => {
    const printer = new RowPrinter()
    await fc.assert(
      fc.asyncProperty(fc.array(entities, { minLength: 1, maxLength: 8 }), async written => {
        expect(print(printer, await rowsOf(written))).toEqual(written.map(expectedJson))
      }),
      { numRuns: 300 },
    )
  })

  // JSON.parse of V8 confuses escaped keys, see parseExactly.
  it('are printed with some of their attributes and with other members', async () => {
    const printer = new RowPrinter()
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(attribute, { selector: ([key]) => key }), async written => {
        const attributes = `{${written.map(([key, value]) => `${JSON.stringify(key)}:${value}`).join()}}`
        const [row] = await service.sql<{ text: string; spaceless: string }>(
          `select $1::jsonb::text || E'\\n(1)' as text, '{' || (
             select coalesce(string_agg(to_json(key)::text || ':' || value::text, ','), '') from jsonb_each($1::jsonb)
           ) || E'}\\n(1)' as spaceless`,
          [attributes],
        )
        const keys = new Set(written.flatMap(([key, , isShown]) => (isShown ? JSON.stringify(key) : [])))
        for (const [text, others] of [
          [row!.text, {}],
          [row!.spaceless, { other: 1 }],
        ] as const) {
          printer.start().setText(text)
          printer.printNext(row => {
            row.printMembers(keys, JSON.stringify(others).slice(1, -1))
            row.skip(1)
          })
          const expected = written.flatMap(([key, value, isShown]) =>
            isShown ? [[key, parseExactly(value)] as [string, unknown]] : [],
          )
          const byKey = ([a]: [string, unknown], [b]: [string, unknown]) => (a < b ? -1 : 1)
          expect(Object.entries(parseExactly(printer.json) as object).sort(byKey)).toEqual(
            [...expected, ...Object.entries(others)].sort(byKey),
          )
        }
      }),
      { numRuns: 300 },
    )
  })

  it('are printed completely when the buffer has to grow', async () => {
    const printer = new RowPrinter()
    const entity = { flag: null, number: 1, at: new Date(0), other: '' }
    const written = Array.from({ length: 60 }, (_, n) => ({ ...entity, text: 'é"'.repeat(n * n) }))
    const rows = await rowsOf(written)
    for (let round = 0; round < 3; round += 1) expect(print(printer, rows)).toEqual(written.map(expectedJson))
    const huge = [{ ...entity, text: '𝄞\u0001'.repeat(500_000) }]
    expect(print(printer, await rowsOf(huge))).toEqual(huge.map(expectedJson))
    expect(print(printer, rows)).toEqual(written.map(expectedJson))
  })

  it('are printed completely at every fill level of the buffer', () => {
    const entity = { flag: true, number: 1, at: new Date(0), other: null }
    for (let length = 32_600; length < 32_800; length += 1) {
      const written = ['x'.repeat(length), 'y'].map(text => ({ ...entity, text }))
      const rows = written.map(({ text }) => `{"of": "${text}"}\n(${text},t,1,"1970-01-01 00:00:00+00",)`).join('\n')
      expect(print(new RowPrinter(), rows)).toEqual(written.map(expectedJson))
    }
  })
})
