import { type Answers, effectiveConsents } from '../consents/answers.ts'
import { type Definitions, people_stack_id } from '../organizations/definitions.ts'
import { parseExactly } from '../parse-json.ts'
import { recordIdOf } from './identifiers.ts'
import { shownLinks } from './row.ts'
import { RowPrinter } from './row-printer.ts'
import { profile_flags, profile_texts } from './sql.ts'

/** Prints one entity of the stack it was made for. */
type Print = (row: RowPrinter) => void

const keyed = (key: string) => Buffer.from(`,"${key}":`)

const [texts, flags] = [profile_texts.map(keyed), profile_flags.map(keyed)]
const [consents, attribute_values] = [keyed('consents'), keyed('attribute_values')]
const [start_of_person, start_of_record, external_id] = ['{"id":"', '{"record_id":"', '","external_id":'].map(text =>
  Buffer.from(text),
) as [Buffer, Buffer, Buffer]
const states = { t: Buffer.from(',"state":"active"'), f: Buffer.from(',"state":"placeholder"') }
const [version, created_at, updated_at, end] = [',"version":', ',"created_at":"', '","updated_at":"', '"}'].map(text =>
  Buffer.from(text),
) as [Buffer, Buffer, Buffer, Buffer]
const [between, line_end] = [Buffer.from(','), Buffer.from('\n')]

/** What PostgreSQL writes for `{}`: whoever has answered nothing. */
const nothing_answered = '{}'

function personPrinter(definitions: Definitions): Print {
  const consentsOf = (answers: Answers) => JSON.stringify(effectiveConsents(answers, definitions.consent_types))
  const by_default = Buffer.from(consentsOf({}))
  return row => {
    row.bare(start_of_person)
    row.text(external_id)
    for (const key of texts) row.text(key)
    for (const key of flags) row.flag(key)
    row.put(consents)
    const answers = row.value()!
    if (answers === nothing_answered) row.put(by_default)
    else row.copy(consentsOf(JSON.parse(answers)))
    printRest(row, definitions)
  }
}

function recordPrinter(definitions: Definitions, stack_id: number): Print {
  const { key } = definitions.stacks.find(({ id }) => id === stack_id)!
  const stack_key = Buffer.from(`,"stack_key":${JSON.stringify(key)}`)
  return row => {
    row.put(start_of_record)
    row.copy(recordIdOf(row.value()!))
    row.text(external_id)
    row.put(stack_key)
    row.pass(profile_texts.length + profile_flags.length + 1)
    printRest(row, definitions)
  }
}

/** What every entity ends with. */
function printRest(row: RowPrinter, definitions: Definitions) {
  row.put(attribute_values)
  const links = row.value()
  if (links === null) row.copyAttributes()
  else row.copy(withLinks(row.attributes, JSON.parse(links), definitions))
  row.put(states[row.value() as 't' | 'f'])
  row.bare(version)
  row.moment(created_at)
  row.moment(updated_at)
  row.put(end)
}

type Links = [attribute_id: number, external_id: string | null][]

/** The plain values and the links, which are shown as the external identifiers of their targets. */
function withLinks(attributes: string, links: Links, { attribute_by_id }: Definitions): string {
  const shown = parseExactly(attributes) as Record<string, unknown>
  for (const [attribute_id, targets] of Map.groupBy(links, ([attribute_id]) => attribute_id)) {
    const attribute = attribute_by_id.get(attribute_id)
    if (attribute)
      shown[attribute.key] = shownLinks(
        attribute.cardinality,
        targets.map(([, name]) => ({ external_id: name })),
      )
  }
  return JSON.stringify(shown)
}

const printers = new WeakMap<Definitions, Map<number, Print>>()

/** Made once for each stack and version of the definitions. */
function printerOf(definitions: Definitions, stack_id: number): Print {
  const known = printers.get(definitions) ?? new Map<number, Print>()
  printers.set(definitions, known)
  const print =
    known.get(stack_id) ??
    (stack_id === people_stack_id ? personPrinter(definitions) : recordPrinter(definitions, stack_id))
  known.set(stack_id, print)
  return print
}

// Printing never waits, so that all who want a text at the end take turns at one.
const shared = new RowPrinter()

/** What was printed. What it was printed from, and room of unusual size, are let go. */
function take(row: RowPrinter): string {
  const { json } = row
  row.start('')
  return json
}

/** An entity's row as JSON. All of these want definitions that are no older than the row. */
export function printEntity(row_text: string, definitions: Definitions, stack_id: number): string {
  const row = shared.start(row_text)
  row.next(printerOf(definitions, stack_id))
  return take(row)
}

/** The first `size` of the rows as JSON texts with commas between them, and whether there are more. */
export function printPage(
  rows: string,
  size: number,
  definitions: Definitions,
  stack_id: number,
): { items: string; has_more: boolean } {
  const row = shared.start(rows)
  const print = printerOf(definitions, stack_id)
  for (let count = 0; row.more && count < size; count += 1) {
    if (count > 0) row.put(between)
    row.next(print)
  }
  const has_more = row.more
  return { items: take(row), has_more }
}

/**
 * The rows as lines of JSON, each with its line feed, and the id of the last one, of which there must be one. The bytes
 * are the printer's own: what it prints next is written over them.
 */
export function printLines(
  row: RowPrinter,
  rows: string,
  definitions: Definitions,
  stack_id: number,
): { lines: Buffer; last: string } {
  const print = printerOf(definitions, stack_id)
  row.start(rows)
  while (row.more) {
    row.next(print)
    row.put(line_end)
  }
  return { lines: row.bytes, last: row.id }
}
