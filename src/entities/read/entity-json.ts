import { type Answers, consentDefaults, type StandingAnswer } from '../../consents/answers.ts'
import { type Definitions, peopleStackId } from '../../organizations/definitions.ts'
import { recordIdOf } from '../../values/formats.ts'
import { parseExactly } from '../../values/parse-json.ts'
import { profileFlags, readTexts } from '../../values/profile-fields.ts'
import { relationshipValue } from '../entity-row.ts'
import { RowPrinter } from './composite-row-parser.ts'
import { type Projection, shows, showsAllValues, showsLinksById, wholeOf } from './projection.ts'

/** Prints one entity of the stack that the printer was built for. */
type Print = (row: RowPrinter) => void

const end = Buffer.from('"}')
const [comma, lineFeed] = [Buffer.from(','), Buffer.from('\n')]

/** Identifiers, profile, answers, links, state, version and times: see `rowTextFrom` of read-sql.ts. */
const fieldsOfRow = 2 + readTexts.length + profileFlags.length + 6

/** The text of `answers` for a person without consent answers. */
const noAnswers = Buffer.from('{}')

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

const hasEvidence = ({ undated, pending, method, text_version }: StandingAnswer) =>
  undated !== undefined || pending !== undefined || method !== undefined || text_version !== undefined

function endWithEvidence({ undated, pending, method, text_version }: StandingAnswer): string {
  return `",${JSON.stringify({ undated, pending, method, text_version }).slice(1)}`
}

/** `keys` are those to print, as JSON. Undefined: all. */
type PrintedValues = { isById?: boolean; keys?: ReadonlySet<string> | undefined }

/** Prints the attribute values, or those of some keys. */
function printAttributeValues(row: RowPrinter, definitions: Definitions, { isById = false, keys }: PrintedValues = {}) {
  const links = row.readValue()
  if (links === null) return keys ? row.printMembers(keys) : row.printAttributes()
  const values = keys ? {} : (parseExactly(row.attributes) as Record<string, unknown>)
  addLinks(values, JSON.parse(links), definitions, isById)
  if (!keys) return row.appendText(JSON.stringify(values))
  // This path does not parse the attributes, because the changed spaces would reveal links that a role closes.
  const linked = Object.entries(values).map(([key, value]) => [JSON.stringify(key), JSON.stringify(value)] as const)
  const shown = linked.filter(([key]) => keys.has(key))
  row.printMembers(keys.difference(new Map(shown)), shown.map(member => member.join(':')).join())
}

/** The last element is the id of the target, or null if the target is shown by its external identifier. */
type PrintedLink = [attribute_id: number, position: number, external_id: string | null, id: string | null]

const compareLinks = ([attribute, position]: PrintedLink, [otherAttribute, otherPosition]: PrintedLink) =>
  attribute - otherAttribute || position - otherPosition

/** Adds the links to the plain attribute values. */
function addLinks(
  values: Record<string, unknown>,
  links: PrintedLink[],
  { attributeById }: Definitions,
  isById: boolean,
): void {
  for (const [attribute_id, targets] of Map.groupBy(links.sort(compareLinks), ([attribute_id]) => attribute_id)) {
    const attribute = attributeById.get(attribute_id)
    if (attribute)
      values[attribute.key] = relationshipValue(
        attribute,
        targets.map(([, , external_id, id]) => ({ id: id!, external_id: isById ? null : external_id })),
      )
  }
}

const [quote, closingBrace] = [Buffer.from('"'), Buffer.from('}')]
const skipField: Print = row => row.skip(1)

/** Prints the members that a projection shows. The others have no value in the row. */
function projectionPrinter(definitions: Definitions, stack_id: number, projection: Projection): Print {
  let separator = '{'
  const member = (name: string, print: (key: Buffer) => Print, before = ''): Print => {
    if (!shows(projection, name)) return skipField
    const key = Buffer.from(`${separator}"${name}":${before}`)
    separator = ','
    return print(key)
  }
  const literal = (name: string, value: () => unknown): Print =>
    shows(projection, name) ? member(name, key => row => row.append(key), JSON.stringify(value())) : () => {}
  const text = (name: string) => member(name, key => row => row.printText(key))
  const time = (name: string) =>
    member(
      name,
      key => row => {
        row.printTime(key)
        row.append(quote)
      },
      '"',
    )
  const isPerson = stack_id === peopleStackId
  const isById = showsLinksById(projection)
  const keys = showsAllValues(projection) ? undefined : new Set(projection.keys.map(key => JSON.stringify(key)))
  const steps = [
    isPerson ? member('id', printPersonId, '"') : member('record_id', printRecordId, '"'),
    text('external_id'),
    literal('stack_key', () => stackKeyOf(definitions, stack_id)),
    ...readTexts.map(text),
    ...profileFlags.map(name => member(name, key => row => row.printBoolean(key))),
    member('consents', key => afterKey(key, printersOf(definitions).consents)),
    member('attribute_values', key => afterKey(key, row => printAttributeValues(row, definitions, { isById, keys }))),
    member('state', key => row => {
      row.append(key)
      row.append(stateTexts[row.readValue() as 't' | 'f'])
    }),
    member('version', key => row => row.printRaw(key)),
    time('created_at'),
    time('updated_at'),
  ]
  return row => {
    for (const step of steps) step(row)
    row.append(closingBrace)
  }
}

const printPersonId =
  (key: Buffer): Print =>
  row => {
    row.printRaw(key)
    row.append(quote)
  }

const printRecordId =
  (key: Buffer): Print =>
  row => {
    row.append(key)
    row.appendText(recordIdOf(row.readValue()!))
    row.append(quote)
  }

const afterKey =
  (key: Buffer, print: Print): Print =>
  row => {
    row.append(key)
    print(row)
  }

const stateTexts = { t: Buffer.from('"active"'), f: Buffer.from('"placeholder"') }

const stackKeyOf = ({ stacks }: Definitions, stack_id: number) => stacks.find(({ id }) => id === stack_id)!.key

/** The JSON to add to each entity by id, in pieces: the members after its own ones, and the closing brace. */
export type AddedMembers = { of(id: string): readonly Buffer[] }

function withAdded(print: Print, added: AddedMembers): Print {
  return row => {
    print(row)
    row.reopen()
    for (const piece of added.of(row.id)) row.append(piece)
  }
}

/**
 * The printers of the consents and of whole entities by stack. They are built once for each version of the definitions.
 */
const printers = new WeakMap<Definitions, { consents: Print; whole: Map<number, Print> }>()

function printersOf(definitions: Definitions) {
  const known = printers.get(definitions) ?? { consents: consentsPrinter(definitions.consent_types), whole: new Map() }
  printers.set(definitions, known)
  return known
}

function printerOf(definitions: Definitions, stack_id: number): Print {
  const { whole } = printersOf(definitions)
  const print = whole.get(stack_id) ?? projectionPrinter(definitions, stack_id, wholeOf(stack_id))
  whole.set(stack_id, print)
  return print
}

/** The definitions, which must be at least as new as the rows, and the members to print, by default all. */
type Printed = {
  definitions: Definitions
  stack_id: number
  projection?: Projection | undefined
  added?: AddedMembers | undefined
}

function printerFor({ definitions, stack_id, projection, added }: Printed): Print {
  const print = projection ? projectionPrinterOf(definitions, stack_id, projection) : printerOf(definitions, stack_id)
  return added ? withAdded(print, added) : print
}

const projectionPrinters = new WeakMap<Projection, { definitions: Definitions; stack_id: number; print: Print }>()

/**
 * Returns the printer of a projection, which is built in about 5 µs. A role has one projection, so its printer is built
 * once.
 */
function projectionPrinterOf(definitions: Definitions, stack_id: number, projection: Projection): Print {
  const known = projectionPrinters.get(projection)
  if (known?.definitions === definitions && known.stack_id === stack_id) return known.print
  const print = projectionPrinter(definitions, stack_id, projection)
  projectionPrinters.set(projection, { definitions, stack_id, print })
  return print
}

// Printing is synchronous, so all calls can share one printer.
const sharedPrinter = new RowPrinter()

/** Prints an entity's row as JSON, by default whole. The definitions must be at least as new as the row. */
export const printEntity = (
  rowText: string,
  definitions: Definitions,
  stack_id: number,
  projection?: Projection,
): string => entityPrinter(definitions, stack_id, projection)(rowText)

/** Returns a function that prints rows of a stack, as {@link printEntity} does. */
export function entityPrinter(
  definitions: Definitions,
  stack_id: number,
  projection?: Projection,
  added?: AddedMembers,
): (rowText: string) => string {
  const print = printerFor({ definitions, stack_id, projection, added })
  return rowText => {
    const row = sharedPrinter.start().setText(rowText)
    row.printNext(print)
    return row.json
  }
}

/**
 * Prints the first `size` rows as JSON, separated by commas, and tells whether more rows follow. Returns undefined if a
 * row is missing (only its id is present) or the JSON exceeds `maxBytes`.
 */
export function printPage(
  rows: string,
  size: number,
  { maxBytes, ...printed }: Printed & { maxBytes: number },
): { items: string; has_more: boolean; ids: string[] } | undefined {
  const row = sharedPrinter.start().setText(rows)
  const print = printerFor(printed)
  const ids: string[] = []
  for (let count = 0; row.hasMore && count < size; count += 1) {
    if (!row.isWhole || row.size > maxBytes) return undefined
    if (count > 0) row.append(comma)
    row.printNext(print)
    ids.push(row.id)
  }
  if (row.size > maxBytes) return undefined
  return { items: row.json, has_more: row.hasMore, ids }
}

/** Returns the ids of the first `size` entities of a page, with or without their rows. */
export function idsOfPage(rows: string, size: number): string[] {
  return sharedPrinter.start().setText(rows).readIds(size, fieldsOfRow)
}

/**
 * Prints rows of several stacks as JSON, one by one. `projectionOf` returns the members to print of a stack, by default
 * all.
 */
export function printEach(
  rows: string,
  definitions: Definitions,
  stackOf: (id: string) => number,
  projectionOf?: (stack_id: number) => Projection,
): Map<string, Buffer> {
  const row = sharedPrinter.start().setText(rows)
  const ends: [id: string, end: number][] = []
  const stackPrinters = new Map<number, Print>()
  const print: Print = next => {
    const stack_id = stackOf(next.id)
    const known = stackPrinters.get(stack_id)
    const printStack = known ?? printerFor({ definitions, stack_id, projection: projectionOf?.(stack_id) })
    if (!known) stackPrinters.set(stack_id, printStack)
    printStack(next)
  }
  while (row.hasMore) {
    row.printNext(print)
    ends.push([row.id, row.size])
  }
  const bytes = Buffer.from(row.bytes)
  return new Map(ends.map(([id, end], index) => [id, bytes.subarray(ends[index - 1]?.[1] ?? 0, end)]))
}

/**
 * Prints rows as JSON, starting at index `first`, until the output has `maxBytes` or the rows end. With `continues`,
 * the output starts with a comma. `next` is the index of the first row that is not printed.
 */
export function printPart(
  rows: readonly string[],
  first: number,
  { maxBytes, continues, ...printed }: Printed & { maxBytes: number; continues: boolean },
): { bytes: Buffer; next: number } {
  const row = sharedPrinter.start()
  const print = printerFor(printed)
  let next = first
  for (; next < rows.length && row.size < maxBytes; next += 1) {
    if (continues || next > first) row.append(comma)
    row.setText(rows[next]!)
    row.printNext(print)
  }
  return { bytes: Buffer.from(row.bytes), next }
}

/** Returns a function that appends a row, as received from the database, to the printer as a line of JSON. */
export function linePrinter(row: RowPrinter, printed: Printed): (bytes: Buffer, start: number) => void {
  const print = printerFor(printed)
  return (bytes, start) => {
    row.setRows(bytes, bytes.length, start)
    row.printNext(print)
    row.append(lineFeed)
  }
}
