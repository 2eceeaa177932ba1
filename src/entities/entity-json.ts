import { type Answers, consentDefaults } from '../consents/answers.ts'
import { type Definitions, peopleStackId } from '../organizations/definitions.ts'
import { parseExactly } from '../parse-json.ts'
import { RowPrinter } from './composite-row-parser.ts'
import { shownLinks } from './entity-row.ts'
import { recordIdOf } from './identifiers.ts'
import { profileFlags, profileTexts } from './sql.ts'

/** Prints one entity of the stack it was made for. */
type Print = (row: RowPrinter) => void

const keyed = (key: string) => Buffer.from(`,"${key}":`)

const [texts, flags] = [profileTexts.map(keyed), profileFlags.map(keyed)]
const [consents, attribute_values] = [keyed('consents'), keyed('attribute_values')]
const [startOfPerson, startOfRecord, external_id] = ['{"id":"', '{"record_id":"', '","external_id":'].map(text =>
  Buffer.from(text),
) as [Buffer, Buffer, Buffer]
const states = { t: Buffer.from(',"state":"active"'), f: Buffer.from(',"state":"placeholder"') }
const [version, created_at, updated_at, end] = [',"version":', ',"created_at":"', '","updated_at":"', '"}'].map(text =>
  Buffer.from(text),
) as [Buffer, Buffer, Buffer, Buffer]
const [between, lineEnd] = [Buffer.from(','), Buffer.from('\n')]

/** What PostgreSQL writes for `{}`: whoever has answered nothing. */
const nothingAnswered = Buffer.from('{}')

function personPrinter(definitions: Definitions): Print {
  const printConsents = consentsPrinter(definitions.consent_types)
  return row => {
    row.bare(startOfPerson)
    row.text(external_id)
    for (const key of texts) row.text(key)
    for (const key of flags) row.flag(key)
    row.put(consents)
    printConsents(row)
    printRest(row, definitions)
  }
}

/** Prints what counts, answered or not, of texts made beforehand. */
function consentsPrinter(types: Definitions['consent_types']): Print {
  const entries = consentDefaults(types).map(({ answerKey, consent }, index) => {
    const before = index === 0 ? '[' : ','
    const answered = (state: boolean) =>
      Buffer.from(before + JSON.stringify({ ...consent, state, source: 'answer', answered_at: '' }).slice(0, -2))
    const byDefault = Buffer.from(before + JSON.stringify(consent))
    return { answerKey, by_default: byDefault, granted: answered(true), refused: answered(false) }
  })
  const allEnd = Buffer.from(entries.length === 0 ? '[]' : ']')
  const allByDefault = Buffer.concat([...entries.map(({ by_default: byDefault }) => byDefault), allEnd])
  return row => {
    if (row.passes(nothingAnswered)) return row.put(allByDefault)
    const answers: Answers = JSON.parse(row.value()!)
    for (const { answerKey, by_default: byDefault, granted, refused } of entries) {
      const answer = answerKey === null ? undefined : answers[answerKey]
      if (answer) {
        row.put(answer.state ? granted : refused)
        row.copy(answer.answered_at)
        row.put(end)
      } else row.put(byDefault)
    }
    row.put(allEnd)
  }
}

function recordPrinter(definitions: Definitions, stack_id: number): Print {
  const { key } = definitions.stacks.find(({ id }) => id === stack_id)!
  const stack_key = Buffer.from(`,"stack_key":${JSON.stringify(key)}`)
  return row => {
    row.put(startOfRecord)
    row.copy(recordIdOf(row.value()!))
    row.text(external_id)
    row.put(stack_key)
    row.pass(profileTexts.length + profileFlags.length + 1)
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
function withLinks(attributes: string, links: Links, { attributeById }: Definitions): string {
  const shown = parseExactly(attributes) as Record<string, unknown>
  for (const [attribute_id, targets] of Map.groupBy(links, ([attribute_id]) => attribute_id)) {
    const attribute = attributeById.get(attribute_id)
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
    (stack_id === peopleStackId ? personPrinter(definitions) : recordPrinter(definitions, stack_id))
  known.set(stack_id, print)
  return print
}

// Printing never waits, so that all who want a text at the end take turns at one.
const shared = new RowPrinter()

/** An entity's row as JSON. All of these want definitions that are no older than the row. */
export function printEntity(rowText: string, definitions: Definitions, stack_id: number): string {
  const row = shared.start().readText(rowText)
  row.next(printerOf(definitions, stack_id))
  return row.json
}

/**
 * The first `size` of the rows as JSON texts with commas between them, and whether there are more. Undefined where one of them is
 * missing, of which there is the id alone, and where they have more than `mostBytes`.
 */
export function printPage(
  rows: string,
  size: number,
  { definitions, stack_id, mostBytes }: { definitions: Definitions; stack_id: number; mostBytes: number },
): { items: string; has_more: boolean } | undefined {
  const row = shared.start().readText(rows)
  const print = printerOf(definitions, stack_id)
  for (let count = 0; row.more && count < size; count += 1) {
    if (!row.isWhole || row.size > mostBytes) return undefined
    if (count > 0) row.put(between)
    row.next(print)
  }
  return row.size > mostBytes ? undefined : { items: row.json, has_more: row.more }
}

/**
 * The same of some rows from `first` on, until there are `mostBytes` or the rows end: what was printed, with a comma before it where
 * `continues`, and the row to go on with.
 */
export function printPart(
  rows: readonly string[],
  first: number,
  {
    definitions,
    stack_id,
    mostBytes,
    continues,
  }: { definitions: Definitions; stack_id: number; mostBytes: number; continues: boolean },
): { bytes: Buffer; next: number } {
  const row = shared.start()
  const print = printerOf(definitions, stack_id)
  let next = first
  for (; next < rows.length && row.size < mostBytes; next += 1) {
    if (continues || next > first) row.put(between)
    row.readText(rows[next]!)
    row.next(print)
  }
  return { bytes: Buffer.from(row.bytes), next }
}

/** Has a printer add a row, as it comes from the database, as a line of JSON with its line feed. */
export function linePrinter(
  row: RowPrinter,
  definitions: Definitions,
  stack_id: number,
): (bytes: Buffer, start: number) => void {
  const print = printerOf(definitions, stack_id)
  return (bytes, start) => {
    row.read(bytes, bytes.length, start)
    row.next(print)
    row.put(lineEnd)
  }
}
