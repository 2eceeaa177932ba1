import type { Static } from 'typebox'
import { columnsOf, noFields, targetsOf, UnknownColumns } from '../../transfer/columns.ts'
import { csvItems, settingsOf, textOf } from '../../transfer/csv.ts'
import type { ImportItem } from '../../transfer/item.ts'
import { EncodingError, toUtf8 } from '../../transfer/pieces.ts'
import { type Definitions, ownerOf } from '../organizations/definitions.ts'
import { yieldIfDue } from '../process/event-loop.ts'
import { createRefusal, refuse } from '../values/errors.ts'
import type { Line } from './lines.ts'
import type { RefusedLine } from './refusals.ts'
import { csvParameters, type recordsImportQuery } from './schema.ts'

/** The query parameters that describe a CSV body. kith detects an absent one or uses its default. */
export type CsvQuery = Pick<Static<typeof recordsImportQuery>, keyof typeof csvParameters>

/** A record or a step of this size takes a few milliseconds, even if each cell has one character. */
const limits = { maxCharacters: 262_144, stepBytes: 4_096 }
const maxColumns = 5_000
const maxNamed = 20

/** Throws a Fault of 400 if a query describes CSV but the body is not CSV. */
export function throwIfCsvQuery(query: CsvQuery): void {
  const given = (Object.keys(csvParameters) as (keyof CsvQuery)[]).find(name => query[name] !== undefined)
  if (given) refuse('invalid_parameter', `${given} applies only to a body with Content-Type: text/csv.`)
}

/**
 * Converts the records of CSV to lines of JSON, with the numbers of the lines where they begin, or refuses them. Throws
 * a Fault of 400 for an invalid header or encoding.
 */
export async function* csvLinesOf(
  chunks: AsyncIterable<Buffer>,
  query: CsvQuery,
  stack_id: number,
  definitions: Definitions,
): AsyncGenerator<(Line | RefusedLine)[]> {
  const { encoding, delimiter = null, date_order: dateOrder = null, list_separator: listSeparator = '|' } = query
  const { decimal = null, empty = 'absent', true_words = [], false_words = [], null_words = [] } = query
  // The conversion does not close a body that it stops reading, and the unread rest would block the connection.
  const body = chunks[Symbol.asyncIterator]()
  try {
    const split = (words: string[]) => words.flatMap(each => each.split(','))
    const words = { true_words: split(true_words), false_words: split(false_words), null_words: split(null_words) }
    const settings = settingsOf({ delimiter, dateOrder, listSeparator, decimal, empty, ...limits, ...words })
    const pieces = toUtf8(
      'The body',
      { [Symbol.asyncIterator]: () => body },
      { named: encoding, isGuessed: true, found: () => {} },
    )
    const items = csvItems(pieces, settings, ({ cells }) => planOf(cells, query, stack_id, definitions))
    for await (const batch of items) {
      const turn = yieldIfDue()
      if (turn) await turn
      yield batch.flatMap(lineOf)
    }
  } catch (error) {
    throwExplained(error)
  } finally {
    await body.return?.()
  }
}

/** An exported placeholder becomes no line. The entity that links to it creates it again. */
function lineOf({ line: number, body, refusal }: ImportItem): (Line | RefusedLine)[] {
  if (body !== null) return [{ number, text: Buffer.from(body) }]
  if (!refusal) return []
  const details = refusal.details.map(({ path, message }) => ({ path, message: nameParameters(message) }))
  const message = `The record ${refusal.message || 'has wrong cells'}.`
  return [{ number, refusal: createRefusal('invalid_parameter', message, { details }) }]
}

function planOf(cells: string[], { attributes }: CsvQuery, stack_id: number, definitions: Definitions) {
  if (cells.length > maxColumns)
    refuse('invalid_parameter', `The header has ${cells.length} columns. It may have ${maxColumns}.`)
  const names = cells.map(cell => textOf(cell).trim())
  const owner = ownerOf(definitions, stack_id)
  const declared = [...(definitions.declared.get(stack_id)?.values() ?? [])].map(each => ({ ...each, owner }))
  const known = { stacks: [], attributes: declared, consent_types: definitions.consent_types } as never
  const targets = targetsOf(owner, known)
  const none = { map: new Map(), ignore: [], prefixes: new Map(), constants: new Map() }
  return columnsOf(names, targets, { ...none, unknownAsAttributes: attributes === 'rest' })
}

/**
 * The conversion throws an Error with a message about the body. The client receives it as a Fault. Any other error is a
 * fault of kith and is rethrown.
 */
function throwExplained(error: unknown): never {
  if (error instanceof UnknownColumns) {
    const advice = 'Rename or remove such columns, or import them as texts with attributes=rest.'
    refuse('invalid_parameter', `${noFields(error.names.slice(0, maxNamed))} ${advice} ${error.fields}`)
  }
  const isOfBody = error instanceof EncodingError || (error instanceof Error && error.constructor === Error)
  if (!isOfBody) throw error
  return refuse('invalid_parameter', nameParameters(error.message))
}

const optionTexts = [
  [/(?:Use another|Name it with) --encoding/, 'Give the parameter encoding'],
  ['Ignore or map', 'Rename or remove'],
  ['--decimal ,', 'decimal=,'],
  ['--date-order dmy or mdy', 'date_order=dmy or date_order=mdy'],
  ['--true-words and --false-words', 'true_words and false_words'],
  [/Use --offset.*/, 'Write one, such as Z or +01:00'],
] as const

/** Replaces the options of the command line, which shares the conversion, by the parameters of the query. */
const nameParameters = (message: string) =>
  optionTexts.reduce((text, [option, parameter]) => text.replace(option, parameter), message)
