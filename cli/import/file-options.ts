import { InvalidArgumentError } from 'commander'
import { type CsvSettings, settingsOf } from '../../transfer/csv.ts'
import { type Format, formatOfName } from '../../transfer/file.ts'
import { givenOf, parsePair, UsageError, wholeNumber } from '../command.ts'
import type { OptionsOf, PlainCommand } from '../kith-command.ts'
import { loadTimeZone } from './time-zone.ts'

/** Adds the options of a command that sends the lines of a file. */
export const fileOptions = (command: PlainCommand) =>
  command
    .option('--map <column=field>', 'CSV: Map this column to a field (repeatable).', pairs(parsePair))
    .option(
      '--ignore <column>',
      'CSV: Ignore this column (repeatable).',
      texts(name => [name]),
    )
    .option(
      '--prefix <column=text>',
      'CSV: Put this text before each value of this column (repeatable).',
      pairs(parseValue),
    )
    .option('--set <field=value>', 'CSV: Set this value on every record (repeatable).', pairs(parseValue))
    .option('--date-order <order>', 'CSV: The order of 01/02/1999. Without it, such a date is refused.', {
      choices: ['dmy', 'mdy'],
    })
    .option('--offset <offset>', 'CSV: The offset of times without one, such as Z or +01:00.', { parse: parseOffset })
    .option('--time-zone <name>', 'CSV: The time zone of times without an offset, such as Europe/Berlin.')
    .option(
      '--delimiter <character>',
      'CSV: The separator of cells; tab for a tab. Default: detected from the header.',
      { parse: parseDelimiter },
    )
    .option('--format <format>', 'The format. Default: as the file name says.', { choices: ['ndjson', 'csv'] })
    .option(
      '--encoding <name>',
      'The encoding of a file without a byte order mark. Default: UTF-8; of CSV also UTF-16 and windows-1252, as its bytes say.',
      { parse: parseEncoding },
    )
    .option(
      '--skip-lines <count>',
      'Continue after this line of the file. It skips nothing of a file of refused lines.',
      { parse: wholeNumber(), default: 0 },
    )
    .option('--refused <file>', 'The file for refused lines and their reasons. Default: a file next to the input.')
    .option('--quiet', 'Show no progress.')

export type FileCommandOptions = OptionsOf<typeof fileOptions>

/** Adds the options of CSV cells that only the fields of entities need. */
export const cellOptions = (command: PlainCommand) =>
  command
    .option('--list-separator <text>', 'CSV: The separator of the values of an attribute with many values.', {
      default: '|',
    })
    .option(
      '--decimal <mark>',
      'CSV: The decimal mark of numbers, a point or a comma. Default: detected from the first records.',
      { choices: ['.', ','] },
    )
    .option('--true-words <words>', `CSV: Further words for yes, such as ja,oui${separated}`, words)
    .option('--false-words <words>', `CSV: Further words for no, such as nein,non${separated}`, words)
    .option('--null-words <words>', `CSV: Words for an empty cell, such as NULL,n/a${separated}`, words)
    .option('--empty <meaning>', 'CSV: An empty cell keeps the stored value (absent) or clears it (null).', {
      choices: ['absent', 'null'],
      default: 'absent',
    })

export type CellCommandOptions = OptionsOf<typeof cellOptions>

const separated = ', separated by commas (repeatable).'

/** The settings of repeatable options: of pairs, and of texts. */
const pairs = <Parse>(parse: Parse) => ({ parse, default: new Map<string, string>(), shown: 'none' })
const texts = (read: (text: string) => string[]) => ({
  parse: (text: string, all: string[]) => [...all, ...read(text)],
  default: [] as string[],
  shown: 'none',
})
const words = texts(text => text.split(','))

/** Throws a UsageError if options contradict each other or the format. */
export function checkFileOptions(format: Format, { prefix, set, offset, timeZone, refused }: FileCommandOptions): void {
  if (format === 'ndjson' && prefix.size + set.size > 0) throw new UsageError('--prefix and --set apply only to CSV.')
  if (offset !== undefined && timeZone !== undefined) throw new UsageError('Use either --offset or --time-zone.')
  const namedFormat = formatOfName(refused ?? '')
  if (namedFormat && namedFormat !== format)
    throw new UsageError(`The refused lines are ${format}. Give --refused a name that ends in .${format}.`)
}

export async function readSettings(options: FileCommandOptions & Partial<CellCommandOptions>): Promise<CsvSettings> {
  const { dateOrder = null, delimiter = null, timeZone, trueWords = [], falseWords = [], nullWords = [] } = options
  const offset = timeZone === undefined ? (options.offset ?? null) : await loadTimeZone(timeZone)
  const words = { true_words: trueWords, false_words: falseWords, null_words: nullWords }
  try {
    const cells = givenOf(options, 'listSeparator', 'decimal', 'empty')
    return settingsOf({ dateOrder, delimiter, offset, ...cells, ...words })
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

/** Adds `name=value` to the pairs. The value may contain an equals sign, and begin or end with spaces. */
function parseValue(text: string, values: Map<string, string>): Map<string, string> {
  const [name = '', value = ''] = text.split(/=(.*)/s, 2)
  if (name.trim() === '' || value === '') throw new InvalidArgumentError('Give name=value.')
  return new Map([...values, [name.trim(), value]])
}

function parseEncoding(text: string): string {
  try {
    return new TextDecoder(text).encoding
  } catch {
    throw new InvalidArgumentError('Give a name of the Encoding Standard, such as latin1, windows-1252 or utf-16le.')
  }
}

function parseDelimiter(text: string): string {
  if (text === 'tab' || text === '\\t') return '\t'
  if (!/^[\t -~]$/.test(text) || text === '"') throw new InvalidArgumentError('Give one character, or tab.')
  return text
}

function parseOffset(text: string): string {
  if (!/^(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/.test(text)) throw new InvalidArgumentError('Give Z, or such as +01:00.')
  return text
}
