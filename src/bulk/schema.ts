import type { TSchema } from 'typebox'
import { linksById, matchBody } from '../entities/schema.ts'
import { matchKinds } from '../entities/write-request.ts'
import { detail } from '../values/errors.ts'
import { closedObject, count, filledText, flag, number, pageLimit, Type, text } from '../values/json-schema.ts'
import { defaultMaxRefused } from './refusals.ts'

const importParameters = {
  dry_run: Type.Optional(flag('Process all lines, and store nothing.')),
  create_only: Type.Optional(
    flag('Refuse a line that would change an existing entity. Placeholders are completed all the same.'),
  ),
  max_refused: pageLimit(
    1_000_000_000,
    `The import ends after so many refused lines in a row. The default is ${defaultMaxRefused.toLocaleString('en')}.`,
  ),
  lists: Type.Optional(
    Type.Enum(['replace', 'add'], {
      description:
        'What the list of an attribute of cardinality `many` does: it replaces the stored list, or adds its elements to it. The default is `replace`.',
    }),
  ),
}

const words = (meaning: string) =>
  Type.Optional(
    Type.Array(filledText(100), {
      minItems: 1,
      maxItems: 100,
      description: `CSV: further words for ${meaning}, separated by commas or repeated.`,
    }),
  )

/** The parameters for reading the CSV of a body. The command line has the same options. */
export const csvParameters = {
  encoding: Type.Optional(
    Type.Enum(['utf-8', 'utf-16le', 'utf-16be', 'windows-1252', 'iso-8859-15', 'windows-1250', 'windows-1251'], {
      description: 'CSV: the encoding. By default it is found from the bytes, as UTF-8, UTF-16 or windows-1252.',
    }),
  ),
  delimiter: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 1,
      pattern: '^[^"\\r\\n]$',
      description: 'CSV: the separator of cells. By default it is found from the header.',
    }),
  ),
  decimal: Type.Optional(
    Type.Enum(['.', ','], {
      description: 'CSV: the decimal mark of numbers. By default it is found from the first records, and else a point.',
    }),
  ),
  true_words: words('yes'),
  false_words: words('no'),
  null_words: words('an empty cell'),
  date_order: Type.Optional(
    Type.Enum(['dmy', 'mdy'], {
      description: 'CSV: the order of a date such as 01/02/1999. Without it, such a date is refused.',
    }),
  ),
  list_separator: Type.Optional(
    filledText(10, 'CSV: the separator of the values of an attribute with many values. The default is `|`.'),
  ),
  empty: Type.Optional(
    Type.Enum(['absent', 'null'], {
      description: 'CSV: an empty cell keeps the stored value (`absent`, the default), or clears it (`null`).',
    }),
  ),
  attributes: Type.Optional(
    Type.Literal('rest', { description: 'CSV: import columns that are no fields as attribute values, as texts.' }),
  ),
}

export const recordsImportQuery = closedObject({ ...importParameters, ...csvParameters })

const kind = `(${matchKinds.join('|')})`

export const peopleImportQuery = closedObject({
  ...importParameters,
  ...csvParameters,
  match: Type.Optional(
    Type.Array(Type.String({ pattern: `^${kind}(,${kind})*$` }), {
      minItems: 1,
      maxItems: 3,
      description:
        'What people are recognized by, in this order: `external_id`, `email` and `mobile`, separated by commas or repeated. ' +
        'The default is the external identifier alone.',
    }),
  ),
  phone_country: Type.Optional(
    Type.String({
      pattern: '^[A-Z]{2}$',
      description:
        'The country (ISO 3166, such as `IT`) of numbers without a prefix: they are stored with the prefix of the country. ' +
        'Without it, they are stored as they are, and read with `default_country` of the settings.',
    }),
  ),
  consents: Type.Optional(
    Type.Literal('now', {
      description:
        'Consent answers without `collected_at` are given now, as in other writes, and become current. Without it, their time is ' +
        'unknown: they answer what is unanswered, and else go to the history as superseded.',
    }),
  ),
  erased: Type.Optional(
    Type.Literal('recreate', {
      description: 'Store people anew who were erased. Without it, their lines are refused.',
    }),
  ),
})

/** A line of an import of people: the body of a create, and the `match` that overrides that of the query. */
export function personLine(body: TSchema): TSchema {
  const { properties, examples } = body as TSchema & { properties: Record<string, TSchema>; examples: unknown[] }
  return closedObject({ ...properties, match: matchBody }, { title: 'PersonImportLine', examples })
}

/** The body of an export. `format` is the format of the kind's identifiers. */
export const exportBody = (format: 'uuid' | 'object-id'): TSchema =>
  closedObject({
    after_id: Type.Optional(Type.String({ format, description: 'Return only entities after this identifier.' })),
    links: linksById,
  })

const counts = {
  received: count('Lines so far, without blank ones.'),
  created: count('New entities and completed placeholders.'),
  updated: count('Lines merged into an existing entity.'),
  unchanged: count('Lines that change nothing.'),
  failed: count('Refused lines.'),
}

const finalCounts = Type.Object(
  {
    ...counts,
    warnings: Type.Optional(
      number(
        'Stored lines with a `mobile_number` that is no phone number. Absent if there are none. With `Prefer: handling=strict`, such lines are refused.',
      ),
    ),
    sequence: Type.Optional(
      number(
        'The number of a change. The log up to it includes all lines that were not refused. Absent if nothing was stored.',
      ),
    ),
  },
  { title: 'ImportCounts' },
)

const details = Type.Array(detail)
const progress = Type.Object(counts, { title: 'ImportProgress' })

const refusedLine = Type.Object(
  {
    line: number('The number of the line in the body. Blank lines count.'),
    error: text('The error code, as for a single request.'),
    message: text(),
    details,
    reason: Type.Optional(Type.Literal('erased', { description: 'A value belonged to a person who was erased.' })),
  },
  { title: 'ImportRefusedLine' },
)

const lineNumber = number()
const refused_lines = Type.Object(
  {
    refused_lines: Type.Array(Type.Array(lineNumber, { minItems: 2, maxItems: 2 }), {
      description:
        'After the first 10,000 refusals, or 1 MiB of them: the further refused lines, without their reasons. ' +
        'Each item is the first and the last line of a run.',
    }),
  },
  { title: 'ImportRefusedLines' },
)

const progressLine = Type.Object({ progress }, { title: 'ImportProgressLine' })

const faultLine = Type.Object(
  {
    error: text(),
    message: text(),
    details,
    request_id: text(),
    outcome: Type.Optional(
      Type.Literal('unknown', { description: 'Lines that `progress` does not count may have been stored.' }),
    ),
    progress,
  },
  { title: 'ImportFault' },
)

/** A line of an import's response. The last line has the counts, or the error that ended the import early. */
export const importAnswer = Type.Union([finalCounts, progressLine, refusedLine, refused_lines, faultLine], {
  title: 'ImportLine',
  examples: [{ received: 2, created: 1, updated: 0, unchanged: 0, failed: 1, sequence: 17 }],
})
