import { stringify } from 'csv-stringify/sync'
import { type Attribute, type Definitions, type Person, profileFieldNames, type StackRecord } from '../client/index.ts'
import { answerableConsents, summaryFields } from './columns.ts'

type Entity = Person | StackRecord
type Cell = string | number | boolean | null
type Column = { name: string; cellOf: (entity: Entity) => Cell }

const readOnlyPersonFields = [...summaryFields, 'mobile_e164', 'id', 'state', 'version', 'created_at', 'updated_at']
const readOnlyRecordFields = ['record_id', 'stack_key', 'state', 'version', 'created_at', 'updated_at']

/**
 * The format of CSV. With `escapesFormulas`, an apostrophe is put before a text that a spreadsheet would run as a
 * formula.
 */
export type CsvLook = {
  escapesFormulas?: boolean
  /** The separator of cells. The default is a comma. */
  delimiter?: string
  /** The decimal mark of numbers. The default is a point. */
  decimal?: string
  /** The header of a column. The default is its name, which an import recognizes. */
  headerOf?: (name: string) => string
}

/** Lines of CSV. */
export const csvText = (
  rows: readonly (readonly Cell[])[],
  { escapesFormulas = false, delimiter = ',', decimal = '.' }: CsvLook = {},
): string =>
  stringify([...rows] as Cell[][], {
    cast: { boolean: String, number: value => String(value).replace('.', decimal) },
    escape_formulas: escapesFormulas,
    delimiter,
  })

/** Formats entities as lines that an import can read. `header` and `rowsOf` return text with line ends. */
export type ExportShape = { header: string; rowsOf: (entities: Entity[]) => string }

export const ndjsonShape: ExportShape = {
  header: '',
  rowsOf: entities => entities.map(entity => `${JSON.stringify(entity)}\n`).join(''),
}

/**
 * Returns the columns of an export: each field, each declared attribute, and each consent that can be answered. A
 * consent column has only answers: no defaults and no grants that wait for their confirmation. Columns for the time,
 * the method and the text of the answer follow it. The column `attribute_values` has, as JSON, the values that a cell
 * cannot represent: of undeclared keys, of another type than declared, and empty ones. The read-only fields come last.
 * An import keeps the apostrophe of `escapesFormulas`. `names` selects columns and their order.
 */
export function csvShape(
  owner: string,
  definitions: Definitions,
  listSeparator: string,
  { names, ...look }: CsvLook & { names?: readonly string[] | undefined } = {},
): ExportShape {
  const declared = definitions.attributes.filter(each => each.owner === owner && each.state === 'active')
  const all = [
    field('external_id'),
    ...(owner === 'people'
      ? [...profileFieldNames.filter(name => !summaryFields.includes(name)).map(field), ...consentColumns(definitions)]
      : []),
    ...declared.map(attribute => attributeColumn(attribute, listSeparator)),
    remainderColumn(declared, listSeparator),
    ...(owner === 'people' ? readOnlyPersonFields : readOnlyRecordFields).map(field),
  ]
  const columns = names === undefined ? all : names.flatMap(name => all.filter(column => column.name === name))
  return {
    header: csvText([headersOf(columns, look)], { ...look, escapesFormulas: false }),
    rowsOf: entities =>
      csvText(
        entities.map(entity => columns.map(({ cellOf }) => cellOf(entity))),
        look,
      ),
  }
}

/** The headers of columns. The names of the columns distinguish equal headers. */
function headersOf(columns: readonly Column[], { headerOf = name => name }: CsvLook): string[] {
  const headers = columns.map(({ name }) => headerOf(name))
  return headers.map((header, at) => {
    const isTaken = headers.indexOf(header) !== headers.lastIndexOf(header)
    return isTaken ? `${header} (${columns[at]!.name})` : header
  })
}

const field = (name: string): Column => ({ name, cellOf: entity => (entity as Record<string, unknown>)[name] as Cell })

function consentColumns({ consent_types }: Definitions): Column[] {
  return answerableConsents(consent_types).flatMap(({ name, consent_type_id, channel }) => {
    const answerOf = (entity: Entity) =>
      (entity as Person).consents.find(
        each =>
          each.consent_type_id === consent_type_id &&
          each.channel === channel &&
          each.source === 'answer' &&
          !each.pending,
      )
    return [
      { name, cellOf: entity => answerOf(entity)?.state ?? null },
      {
        name: `${name}.collected_at`,
        // An undated answer has an unknown time. Its cell is empty, so an import reads it as undated again.
        cellOf: entity => (answerOf(entity)?.undated ? null : (answerOf(entity)?.answered_at ?? null)),
      },
      { name: `${name}.method`, cellOf: entity => answerOf(entity)?.method ?? null },
      { name: `${name}.text_version`, cellOf: entity => answerOf(entity)?.text_version ?? null },
    ]
  })
}

function attributeColumn(attribute: Attribute, listSeparator: string): Column {
  return {
    name: `attribute_values.${attribute.key}`,
    cellOf: ({ attribute_values }) => cellOf(attribute, attribute_values[attribute.key], listSeparator) ?? null,
  }
}

function remainderColumn(declared: Attribute[], listSeparator: string): Column {
  const byKey = new Map(declared.map(attribute => [attribute.key, attribute]))
  const needsJson = ([key, value]: [string, unknown]) => {
    const attribute = byKey.get(key)
    return attribute === undefined || cellOf(attribute, value, listSeparator) === undefined
  }
  return {
    name: 'attribute_values',
    cellOf: ({ attribute_values }) => {
      const entries = Object.entries(attribute_values).filter(needsJson)
      return entries.length > 0 ? JSON.stringify(Object.fromEntries(entries)) : null
    },
  }
}

/** The cell from which an import restores the value, or undefined if a cell cannot represent it. */
function cellOf({ type, cardinality }: Attribute, value: unknown, listSeparator: string): Cell | undefined {
  if (value === undefined || value === null) return null
  if (type === 'json') return cardinality === 'one' || Array.isArray(value) ? JSON.stringify(value) : undefined
  if (cardinality === 'one') return plain(type, value)
  if (!Array.isArray(value) || value.length === 0) return undefined
  const texts = value.map(element => plain(type, element))
  if (texts.includes(undefined)) return undefined
  const joined = texts.join(listSeparator)
  return texts.some(text => String(text).includes(listSeparator)) || joined.startsWith('[')
    ? JSON.stringify(value)
    : joined
}

function plain(type: Attribute['type'], value: unknown): Cell | undefined {
  const expectedType = type === 'number' || type === 'boolean' ? type : 'string'
  if (typeof value !== expectedType || value === '') return undefined
  return value as Cell
}
