import { type Answers, consentDefaults, type StandingAnswer } from '../consents/answers.ts'
import { type Definitions, peopleStackId } from '../organizations/definitions.ts'
import { parseExactly } from '../parse-json.ts'
import { profileFlags, profileTexts } from '../profile-fields.ts'
import { RowPrinter } from './composite-row-parser.ts'
import { relationshipValue } from './entity-row.ts'
import { recordIdOf } from './identifiers.ts'

/** Prints one entity of the stack that the printer was built for. */
type Print = (row: RowPrinter) => void

const jsonKey = (key: string) => Buffer.from(`,"${key}":`)

const [texts, flags] = [profileTexts.map(jsonKey), profileFlags.map(jsonKey)]
const [consents, attribute_values] = [jsonKey('consents'), jsonKey('attribute_values')]
const [personStart, recordStart, external_id] = ['{"id":"', '{"record_id":"', '","external_id":'].map(text =>
  Buffer.from(text),
) as [Buffer, Buffer, Buffer]
const states = { t: Buffer.from(',"state":"active"'), f: Buffer.from(',"state":"placeholder"') }
const [version, created_at, updated_at, end] = [',"version":', ',"created_at":"', '","updated_at":"', '"}'].map(text =>
  Buffer.from(text),
) as [Buffer, Buffer, Buffer, Buffer]
const [comma, lineFeed] = [Buffer.from(','), Buffer.from('\n')]

/** The text of `answers` for a person without consent answers. */
const noAnswers = Buffer.from('{}')

function personPrinter(definitions: Definitions): Print {
  const printConsents = consentsPrinter(definitions.consent_types)
  return row => {
    row.printRaw(personStart)
    row.printText(external_id)
    for (const key of texts) row.printText(key)
    for (const key of flags) row.printBoolean(key)
    row.append(consents)
    printConsents(row)
    printRest(row, definitions)
  }
}

/** Prints the effective consent of each type and channel. The JSON of all possible values is built in advance. */
function consentsPrinter(types: Definitions['consent_types']): Print {
  const entries = consentDefaults(types).map(({ answerKey, consent }, index) => {
    const before = index === 0 ? '[' : ','
    const answered = (state: boolean) =>
      Buffer.from(before + JSON.stringify({ ...consent, state, source: 'answer', answered_at: '' }).slice(0, -2))
    const defaultEntry = Buffer.from(before + JSON.stringify(consent))
    return { answerKey, defaultEntry, granted: answered(true), refused: answered(false) }
  })
  const allEnd = Buffer.from(entries.length === 0 ? '[]' : ']')
  const allDefaults = Buffer.concat([...entries.map(({ defaultEntry }) => defaultEntry), allEnd])
  return row => {
    if (row.skipIfEqual(noAnswers)) return row.append(allDefaults)
    const answers: Answers = JSON.parse(row.readValue()!)
    for (const { answerKey, defaultEntry, granted, refused } of entries) {
      const answer = answerKey === null ? undefined : answers[answerKey]
      if (answer) {
        row.append(answer.state ? granted : refused)
        row.appendText(answer.answered_at)
        if (hasEvidence(answer)) row.appendText(endWithEvidence(answer))
        else row.append(end)
      } else row.append(defaultEntry)
    }
    row.append(allEnd)
  }
}

const hasEvidence = ({ pending, method, text_version }: StandingAnswer) =>
  pending !== undefined || method !== undefined || text_version !== undefined

function endWithEvidence({ pending, method, text_version }: StandingAnswer): string {
  return `",${JSON.stringify({ pending, method, text_version }).slice(1)}`
}

function recordPrinter(definitions: Definitions, stack_id: number): Print {
  const { key } = definitions.stacks.find(({ id }) => id === stack_id)!
  const stack_key = Buffer.from(`,"stack_key":${JSON.stringify(key)}`)
  return row => {
    row.append(recordStart)
    row.appendText(recordIdOf(row.readValue()!))
    row.printText(external_id)
    row.append(stack_key)
    row.skip(profileTexts.length + profileFlags.length + 1)
    printRest(row, definitions)
  }
}

/** Prints the fields that people and records share. */
function printRest(row: RowPrinter, definitions: Definitions) {
  row.append(attribute_values)
  const links = row.readValue()
  if (links === null) row.printAttributes()
  else row.appendText(withLinks(row.attributes, JSON.parse(links), definitions))
  row.append(states[row.readValue() as 't' | 'f'])
  row.printRaw(version)
  row.printTime(created_at)
  row.printTime(updated_at)
  row.append(end)
}

type Links = [attribute_id: number, external_id: string | null][]

/** Adds the links to the plain attribute values, as the external identifiers of their targets. */
function withLinks(attributes: string, links: Links, { attributeById }: Definitions): string {
  const values = parseExactly(attributes) as Record<string, unknown>
  for (const [attribute_id, targets] of Map.groupBy(links, ([attribute_id]) => attribute_id)) {
    const attribute = attributeById.get(attribute_id)
    if (attribute)
      values[attribute.key] = relationshipValue(
        attribute.cardinality,
        targets.map(([, name]) => ({ external_id: name })),
      )
  }
  return JSON.stringify(values)
}

const printers = new WeakMap<Definitions, Map<number, Print>>()

/** Returns the printer of a stack. It is built once for each version of the definitions. */
function printerFor(definitions: Definitions, stack_id: number): Print {
  const known = printers.get(definitions) ?? new Map<number, Print>()
  printers.set(definitions, known)
  const print =
    known.get(stack_id) ??
    (stack_id === peopleStackId ? personPrinter(definitions) : recordPrinter(definitions, stack_id))
  known.set(stack_id, print)
  return print
}

// Printing is synchronous, so all calls can share one printer.
const sharedPrinter = new RowPrinter()

/** Prints an entity's row as JSON. The definitions must be at least as new as the row. */
export function printEntity(rowText: string, definitions: Definitions, stack_id: number): string {
  const row = sharedPrinter.start().setText(rowText)
  row.printNext(printerFor(definitions, stack_id))
  return row.json
}

/**
 * Prints the first `size` rows as JSON, separated by commas, and tells whether more rows follow. Returns undefined if a
 * row is missing (only its id is present) or the JSON exceeds `maxBytes`. The definitions must be at least as new as
 * the rows.
 */
export function printPage(
  rows: string,
  size: number,
  { definitions, stack_id, maxBytes }: { definitions: Definitions; stack_id: number; maxBytes: number },
): { items: string; has_more: boolean } | undefined {
  const row = sharedPrinter.start().setText(rows)
  const print = printerFor(definitions, stack_id)
  for (let count = 0; row.hasMore && count < size; count += 1) {
    if (!row.isWhole || row.size > maxBytes) return undefined
    if (count > 0) row.append(comma)
    row.printNext(print)
  }
  return row.size > maxBytes ? undefined : { items: row.json, has_more: row.hasMore }
}

/**
 * Prints rows as JSON, starting at index `first`, until the output has `maxBytes` or the rows end. With `continues`,
 * the output starts with a comma. `next` is the index of the first row that is not printed. The definitions must be at
 * least as new as the rows.
 */
export function printPart(
  rows: readonly string[],
  first: number,
  {
    definitions,
    stack_id,
    maxBytes,
    continues,
  }: { definitions: Definitions; stack_id: number; maxBytes: number; continues: boolean },
): { bytes: Buffer; next: number } {
  const row = sharedPrinter.start()
  const print = printerFor(definitions, stack_id)
  let next = first
  for (; next < rows.length && row.size < maxBytes; next += 1) {
    if (continues || next > first) row.append(comma)
    row.setText(rows[next]!)
    row.printNext(print)
  }
  return { bytes: Buffer.from(row.bytes), next }
}

/** Returns a function that appends a row, as received from the database, to the printer as a line of JSON. */
export function linePrinter(
  row: RowPrinter,
  definitions: Definitions,
  stack_id: number,
): (bytes: Buffer, start: number) => void {
  const print = printerFor(definitions, stack_id)
  return (bytes, start) => {
    row.setRows(bytes, bytes.length, start)
    row.printNext(print)
    row.append(lineFeed)
  }
}
