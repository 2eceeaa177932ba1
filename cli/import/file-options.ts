import { type Command, InvalidArgumentError, Option } from 'commander'
import { type CsvSettings, settingsOf } from '../../transfer/csv.ts'
import { type Format, formatOfName } from '../../transfer/file.ts'
import { givenOf, parsePair, UsageError, wholeNumber } from '../command.ts'
import { loadTimeZone } from './time-zone.ts'

/** The options of a command that sends the lines of a file, as commander returns them. */
export type FileCommandOptions = {
  format?: Format
  encoding?: string
  map: Map<string, string>
  ignore: string[]
  prefix: Map<string, string>
  set: Map<string, string>
  dateOrder?: 'dmy' | 'mdy'
  offset?: string
  timeZone?: string
  delimiter?: string
  skipLines: number
  refused?: string
  quiet?: true
  json?: true
}

/** The options of the cells of CSV that only fields of entities need. */
export type CellCommandOptions = {
  listSeparator?: string
  decimal?: '.' | ','
  trueWords?: string[]
  falseWords?: string[]
  nullWords?: string[]
  empty?: 'absent' | 'null'
}

/** Adds the options to a command. */
export function addFileOptions(command: Command): Command {
  return addCsvOptions(command)
    .addOption(
      new Option('--format <format>', 'The format. Default: as the file name says.').choices(['ndjson', 'csv']),
    )
    .option(
      '--encoding <name>',
      'The encoding of a file without a byte order mark. Default: UTF-8; of CSV also UTF-16 and windows-1252, as its bytes say.',
      parseEncoding,
    )
    .option(
      '--skip-lines <count>',
      'Continue after this line of the file. It skips nothing of a file of refused lines.',
      wholeNumber(),
      0,
    )
    .option('--refused <file>', 'The file for refused lines and their reasons. Default: a file next to the input.')
    .option('--quiet', 'Show no progress.')
}

function addCsvOptions(command: Command): Command {
  return command
    .addOption(
      new Option('--map <column=field>', 'CSV: Map this column to a field (repeatable).')
        .argParser(parsePair)
        .default(new Map(), 'none'),
    )
    .addOption(
      new Option('--ignore <column>', 'CSV: Ignore this column (repeatable).')
        .argParser((name, all: string[]) => [...all, name])
        .default([], 'none'),
    )
    .addOption(
      new Option('--prefix <column=text>', 'CSV: Put this text before each value of this column (repeatable).')
        .argParser(parseValue)
        .default(new Map(), 'none'),
    )
    .addOption(
      new Option('--set <field=value>', 'CSV: Set this value on every record (repeatable).')
        .argParser(parseValue)
        .default(new Map(), 'none'),
    )
    .addOption(
      new Option('--date-order <order>', 'CSV: The order of 01/02/1999. Without it, such a date is refused.').choices([
        'dmy',
        'mdy',
      ]),
    )
    .option('--offset <offset>', 'CSV: The offset of times without one, such as Z or +01:00.', parseOffset)
    .option('--time-zone <name>', 'CSV: The time zone of times without an offset, such as Europe/Berlin.')
    .option(
      '--delimiter <character>',
      'CSV: The separator of cells; tab for a tab. Default: detected from the header.',
      parseDelimiter,
    )
}

/** Adds the options of cells. */
export function addCellOptions(command: Command): Command {
  return command
    .option('--list-separator <text>', 'CSV: The separator of the values of an attribute with many values.', '|')
    .addOption(
      new Option(
        '--decimal <mark>',
        'CSV: The decimal mark of numbers, a point or a comma. Default: detected from the first records.',
      ).choices(['.', ',']),
    )
    .addOption(wordsOption('true', 'Further words for yes, such as ja,oui'))
    .addOption(wordsOption('false', 'Further words for no, such as nein,non'))
    .addOption(wordsOption('null', 'Words for an empty cell, such as NULL,n/a'))
    .addOption(
      new Option('--empty <meaning>', 'CSV: An empty cell keeps the stored value (absent) or clears it (null).')
        .choices(['absent', 'null'])
        .default('absent'),
    )
}

const wordsOption = (meaning: string, description: string) =>
  new Option(`--${meaning}-words <words>`, `CSV: ${description}, separated by commas (repeatable).`)
    .argParser((text, all: string[]) => [...all, ...text.split(',')])
    .default([], 'none')

/** Throws a UsageError if options do not go together, or do not fit the format. */
export function checkFileOptions(format: Format, { prefix, set, offset, timeZone, refused }: FileCommandOptions): void {
  if (format === 'ndjson' && prefix.size + set.size > 0) throw new UsageError('--prefix and --set apply only to CSV.')
  if (offset !== undefined && timeZone !== undefined) throw new UsageError('Use either --offset or --time-zone.')
  const namedFormat = formatOfName(refused ?? '')
  if (namedFormat && namedFormat !== format)
    throw new UsageError(`The refused lines are ${format}. Give --refused a name that ends in .${format}.`)
}

export async function readSettings(options: FileCommandOptions & CellCommandOptions): Promise<CsvSettings> {
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
