import { randomUUID } from 'node:crypto'
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { Client, MatchKind } from '../client/index.ts'
import { type ColumnOptions, columnsOf } from '../transfer/columns.ts'
import { type CsvHead, type CsvSettings, csvItems, type FileColumns, settingsOf, textOf } from '../transfer/csv.ts'
import { type Format, formatOfName } from '../transfer/file.ts'
import { doneBytesOf, type ImportState, importAll, startState } from '../transfer/import.ts'
import type { ImportItem } from '../transfer/item.ts'
import { ndjsonItems } from '../transfer/ndjson.ts'
import { refusedOf } from '../transfer/refused.ts'
import { Retries } from '../transfer/retry.ts'
import { EarlierLines, SharedAddresses } from '../transfer/shared-addresses.ts'
import { newCommand, parsePair, printResult, UsageError, wholeNumber } from './command.ts'
import { addConnectionOptions, type ConnectionOptions, connect } from './connection.ts'
import { errorMessage } from './error-message.ts'
import { pathOf } from './files.ts'
import { AnswerCounts } from './import/answer-counts.ts'
import { formatOf, type Input, openInput } from './import/input.ts'
import { type ProfileOptions, profileColumnsOf } from './import/profile-columns.ts'
import { addProfileOptions, type ProfileCommandOptions, readProfileOptions } from './import/profile-options.ts'
import { openRejectsFile, type RejectsFile } from './import/rejects-file.ts'
import { loadTimeZone } from './import/time-zone.ts'
import { formatCount, formatDuration, startProgress } from './progress.ts'
import { handleInterrupt } from './signal-handling.ts'

type ImportOptions = ConnectionOptions &
  ProfileCommandOptions & {
    format?: Format
    map: Map<string, string>
    ignore: string[]
    attributes?: 'rest'
    listSeparator: string
    dateOrder?: 'dmy' | 'mdy'
    offset?: string
    timeZone?: string
    empty: 'absent' | 'null'
    delimiter?: string
    decimal: '.' | ','
    trueWords: string[]
    falseWords: string[]
    nullWords: string[]
    prefix: Map<string, string>
    set: Map<string, string>
    encoding?: string
    createOnly?: true
    maxRefused?: number
    consents?: 'now'
    lists: 'replace' | 'add'
    match?: MatchKind[]
    sharedAddresses?: true
    strictReferences?: true
    dryRun?: true
    skipLines: number
    refused?: string
    quiet?: true
    json?: true
  }

export function importCommand(environment: NodeJS.ProcessEnv): Command {
  const command = newCommand(
    'import',
    'Creates or changes people, or records of a stack, from a file of any length with one entity per line.',
    [
      'import people people.ndjson.gz',
      'import orders orders.csv --map "Order number=external_id" --dry-run',
      'import people people.csv --url https://kith.example.org --token-file token --date-order dmy',
      'import people - --format ndjson < people.ndjson',
      'import people newsletter.csv --match external_id,email --dry-run',
      'import people profiles.csv --profile klaviyo --exported-at 2026-01-31T09:00:00Z --dry-run',
    ],
  )
    .argument('<people|stack_key>', 'Either people or the key of a stack.')
    .argument('<file>', 'A file in NDJSON (.ndjson, .jsonl) or CSV (.csv, .tsv), plain or .gz; - for standard input.')
  return addConnectionOptions(addProfileOptions(withCsvOptions(command)))
    .addOption(
      new Option('--format <format>', 'The format. Default: as the file name says.').choices(['ndjson', 'csv']),
    )
    .option(
      '--encoding <name>',
      'The encoding of a file without a byte order mark. Default: UTF-8; of CSV also UTF-16 and windows-1252, as its bytes say.',
      parseEncoding,
    )
    .option(
      '--match <keys>',
      'People: recognize a person by these, in this order: external_id, email, mobile, separated by commas.',
      parseMatch,
    )
    .option(
      '--shared-addresses',
      'Recognize people also by an email or phone that more than ten lines of the file have.',
    )
    .option('--create-only', 'Refuse a line that would change an existing entity.')
    .addOption(
      new Option(
        '--consents <time>',
        'People: Answers without a time are given now, and become current. Without it, they only answer what is unanswered.',
      ).choices(['now']),
    )
    .addOption(
      new Option('--lists <how>', 'A list replaces the stored list, or adds its elements to it.')
        .choices(['replace', 'add'])
        .default('replace'),
    )
    .option(
      '--max-refused <count>',
      'End after this many refused lines in a row. Default: 1000.',
      wholeNumber(1, 1_000_000_000),
    )
    .option(
      '--subject <name>',
      'The subject of the token that the command creates itself, for the change log. Default: cli.',
    )
    .option('--dry-run', 'Check every line and report refusals, but store nothing.')
    .option('--strict-references', 'Refuse a line that refers to a missing entity, instead of creating a placeholder.')
    .option(
      '--skip-lines <count>',
      'Continue after this line of the file. It skips nothing of a file of refused lines.',
      wholeNumber(),
      0,
    )
    .option('--refused <file>', 'The file for refused lines and their reasons. Default: a file next to the input.')
    .option('--quiet', 'Show no progress.')
    .action((owner: string, file: string, options: ImportOptions) => run(environment, owner, file, options))
}

function withCsvOptions(command: Command): Command {
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
      new Option('--attributes <which>', 'CSV: Import all other columns as attribute values, as texts.').choices([
        'rest',
      ]),
    )
    .option('--list-separator <text>', 'CSV: The separator of the values of an attribute with many values.', '|')
    .addOption(
      new Option('--decimal <mark>', 'CSV: The decimal mark of numbers, a point or a comma.')
        .choices(['.', ','])
        .default('.'),
    )
    .addOption(wordsOption('true', 'Further words for yes, such as ja,oui'))
    .addOption(wordsOption('false', 'Further words for no, such as nein,non'))
    .addOption(wordsOption('null', 'Words for an empty cell, such as NULL,n/a'))
    .addOption(
      new Option('--date-order <order>', 'CSV: The order of 01/02/1999. Without it, such a date is refused.').choices([
        'dmy',
        'mdy',
      ]),
    )
    .option('--offset <offset>', 'CSV: The offset of times without one, such as Z or +01:00.', parseOffset)
    .option('--time-zone <name>', 'CSV: The time zone of times without an offset, such as Europe/Berlin.')
    .addOption(
      new Option('--empty <meaning>', 'CSV: An empty cell keeps the stored value (absent) or clears it (null).')
        .choices(['absent', 'null'])
        .default('absent'),
    )
    .option(
      '--delimiter <character>',
      'CSV: The separator of cells; tab for a tab. Default: detected from the header.',
      parseDelimiter,
    )
}

/** Whether a person may be recognized by an email or a phone that many lines of the file share. */
const countsAddresses = ({ match = [], sharedAddresses }: ImportOptions) =>
  !sharedAddresses && match.some(kind => kind !== 'external_id')

const wordsOption = (meaning: string, description: string) =>
  new Option(`--${meaning}-words <words>`, `CSV: ${description}, separated by commas (repeatable).`)
    .argParser((text, all: string[]) => [...all, ...text.split(',')])
    .default([], 'none')

async function run(environment: NodeJS.ProcessEnv, owner: string, file: string, options: ImportOptions) {
  const format = formatOf(file, options.format)
  if (file === '-' && options.tokenFile === '-') throw new UsageError('File and token cannot both be standard input.')
  if (format === 'ndjson' && options.prefix.size + options.set.size > 0)
    throw new UsageError('--prefix and --set apply only to CSV.')
  if (options.offset !== undefined && options.timeZone !== undefined)
    throw new UsageError('Use either --offset or --time-zone.')
  if (options.profile !== undefined && (owner !== 'people' || format !== 'csv'))
    throw new UsageError('--profile applies only to CSV of people.')
  const namedFormat = formatOfName(options.refused ?? '')
  if (namedFormat && namedFormat !== format)
    throw new UsageError(`The refused lines are ${format}. Give --refused a name that ends in .${format}.`)
  if (options.consents && owner !== 'people') throw new UsageError('--consents applies only to people.')
  if (options.match && owner !== 'people') throw new UsageError('--match applies only to people.')
  if (file === '-' && countsAddresses(options))
    throw new UsageError(
      'To find addresses that many lines share, a file is read twice. Give a file, or --shared-addresses to recognize people by them too.',
    )
  const path = (name: string) => pathOf(environment, name)
  const scope = `${owner === 'people' ? 'people:write records:write' : 'records:write people:write'} schema:read`
  const profile = options.profile === undefined ? null : await readProfileOptions(options.profile, options, file, path)
  // The profile of an import is the format of its file.
  const { client } = await connect(environment, { ...options, profile: undefined }, { scope })
  const settings = await readSettings(options)
  const input = await openInput(path(file), { name: file, format, encoding: options.encoding })
  try {
    const head: CsvHead = { cells: [], delimiter: ',' }
    const refused = await openRejectsFile({ file, extension: format, named: options.refused }, path, head)
    const job = {
      id: randomUUID(),
      client,
      owner,
      file,
      path: path(file),
      format,
      input,
      refused,
      head,
      options,
      settings,
      profile,
      counts: new AnswerCounts(),
      leftOut: [],
      typeKeys: new Map(),
      hasRefused: false,
      shared: new SharedAddresses(options.match ?? []),
      earlier: new EarlierLines(options.match ?? ['external_id']),
    }
    const startedMs = performance.now()
    const outcome = await transfer(job)
    await refused.close()
    report(job, outcome, (performance.now() - startedMs) / 1_000)
  } finally {
    input.close()
  }
}

async function readSettings(options: ImportOptions): Promise<CsvSettings> {
  const { listSeparator, dateOrder = null, delimiter = null, decimal, empty } = options
  const offset = options.timeZone === undefined ? (options.offset ?? null) : await loadTimeZone(options.timeZone)
  const words = { true_words: options.trueWords, false_words: options.falseWords, null_words: options.nullWords }
  try {
    return settingsOf({ listSeparator, dateOrder, delimiter, decimal, empty, offset, ...words })
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

type Job = {
  /** The id of the import. */
  id: string
  client: Client
  owner: string
  file: string
  /** The file that is read. */
  path: string
  format: Format
  input: Input
  refused: RejectsFile
  head: CsvHead
  options: ImportOptions
  settings: CsvSettings
  profile: ProfileOptions | null
  /** The counts of the answers that the profile read. */
  counts: AnswerCounts
  /** The columns that the profile left out. Filled when the header has been read. */
  leftOut: string[]
  /** The keys of the consent types by id. Filled when the header has been read. */
  typeKeys: Map<number, string>
  /** Whether the file has lines that an earlier import refused. */
  hasRefused: boolean
  shared: SharedAddresses
  earlier: EarlierLines
}

type Outcome = { state: ImportState; stopped: boolean; error: Error | null }

async function transfer(job: Job): Promise<Outcome> {
  const { client, owner, input, refused, options } = job
  const state = startState(options.skipLines)
  const reading = () => ({
    count: state.received,
    fraction: input.totalBytes === null ? null : doneBytesOf(input.readBytes(), state) / Math.max(1, input.totalBytes),
    refused: state.failed,
  })
  const progressLine = startProgress('lines', reading, options)
  const interrupt = handleInterrupt(() =>
    progressLine.print('Stopping after the lines already sent. Press Ctrl-C again to stop immediately.'),
  )
  const importOptions = {
    dryRun: options.dryRun ?? false,
    createOnly: options.createOnly ?? false,
    ...(options.maxRefused !== undefined && { maxRefused: options.maxRefused }),
    // One id for all requests, so that the import is one.
    requestId: job.id,
    ...(options.consents && { consents: options.consents }),
    ...(options.lists === 'add' && { lists: options.lists }),
    ...(options.strictReferences && { references: 'strict' as const }),
  }
  const retries = new Retries()
  let error: Error | null = null
  try {
    const { signal } = interrupt
    if (countsAddresses(options)) await countAddresses(job, () => interrupt.isRequested)
    await importAll({
      items: job.shared.spareAll(skipping(itemsOf(job, input, progressLine.print), options.skipLines)),
      open: lines =>
        client
          .entities(owner)
          .import(lines, { ...importOptions, ...(options.match && { match: options.match }), signal }),
      isStreamed: true,
      isRepeatable: item =>
        importOptions.dryRun || (!item.recognizesNobody && (options.match ?? []).some(key => key !== 'external_id')),
      stop: interrupt,
      state,
      done(items) {
        job.counts.add(items)
        job.earlier.add(items)
        job.hasRefused ||= items.some(({ isRefused }) => isRefused)
        return refused.write(refusedOf(items))
      },
      async failed(error, isDoubling) {
        if (isDoubling) throw new Error(`${errorMessage(error)} ${doublingHint}`)
        await retries.wait(error, state.received, interrupt, pauseMs =>
          progressLine.print(
            `${errorMessage(error)} Continuing after line ${state.line} in ${(pauseMs / 1_000).toFixed(1)} s.`,
          ),
        )
        return 'repeat'
      },
    })
  } catch (fault) {
    error = fault as Error
  } finally {
    progressLine.end()
    interrupt.end()
  }
  return { state, stopped: interrupt.isRequested, error }
}

const doublingHint =
  'The next lines may be stored already, and one without external_id is stored again each time it is sent. Look them up before you continue.'

/** Reads the whole file once before it is sent. */
async function countAddresses(job: Job, isStopped: () => boolean): Promise<void> {
  const { file, path, format, options } = job
  const input = await openInput(path, { name: file, format, encoding: options.encoding })
  try {
    await job.shared.count(
      itemsOf({ ...job, leftOut: [] }, input, () => {}),
      isStopped,
    )
  } finally {
    input.close()
  }
}

async function* itemsOf(job: Job, input: Input, printMessage: (line: string) => void): AsyncGenerator<ImportItem[]> {
  const { client, owner, format, head, options, settings } = job
  if (format === 'ndjson') return yield* ndjsonItems(input.pieces, owner)
  const definitions = await client.schema.get()
  const columnOptions: ColumnOptions = {
    map: options.map,
    ignore: options.ignore,
    unknownAsAttributes: options.attributes === 'rest',
    prefixes: options.prefix,
    constants: options.set,
  }
  yield* csvItems(input.pieces, settings, fileHead => {
    Object.assign(head, fileHead)
    const names = headerOf(fileHead)
    const columns: FileColumns = job.profile
      ? profileColumnsOf(names, definitions, columnOptions, job.profile)
      : columnsOf(names, owner, definitions, columnOptions)
    job.leftOut.push(...(columns.profile?.leftOut ?? []))
    for (const { id, key } of definitions.consent_types) job.typeKeys.set(id, key)
    for (const notice of columns.notices) printMessage(notice)
    return columns
  })
}

function headerOf({ cells }: CsvHead): string[] {
  try {
    return cells.map(textOf)
  } catch {
    throw new Error('The header of the file is not UTF-8. Name the encoding of the file with --encoding.')
  }
}

async function* skipping(batches: AsyncIterable<ImportItem[]>, lines: number): AsyncGenerator<ImportItem[]> {
  for await (const batch of batches)
    yield lines === 0 ? batch : batch.filter(item => item.isRefused || item.line > lines)
}

function report(job: Job, outcome: Outcome, seconds: number) {
  const { state, stopped, error } = outcome
  const { received, created, updated, unchanged, failed } = state
  const value = {
    ...{ received, created, updated, unchanged, failed, left_out: state.leftOut },
    warnings: state.warnings,
    import_id: job.options.dryRun ? null : job.id,
    dry_run: job.options.dryRun ?? false,
    refused_file: failed > 0 ? job.refused.name : null,
    stopped_after: stopped || error ? state.line : null,
    error: error && errorMessage(error),
    ...(job.options.match && { met_earlier: job.earlier.count, shared_addresses: job.shared.lines }),
    ...(job.profile && { answers: job.counts.value(), left_out_columns: job.leftOut }),
  }
  const summary = error && received === 0 ? [] : summaryOf(job, outcome, seconds)
  printResult(job.options, { value, messages: [...(error ? [errorMessage(error)] : []), ...summary] })
  if (stopped || error || failed > 0) process.exitCode = 1
}

function summaryOf(job: Job, { state, stopped, error }: Outcome, seconds: number): string[] {
  const { file, input, refused, options, hasRefused } = job
  const { received, created, updated, unchanged, failed, leftOut, line, warnings } = state
  const outcomes = { created, updated, unchanged, refused: failed }
  const counts = Object.entries(outcomes).map(([outcome, count]) => `${formatCount(count)} ${outcome}`)
  const dryRunNote = options.dryRun ? ', checked and not stored' : ''
  return [
    `${formatLines(received)} in ${formatDuration(seconds)}${dryRunNote}: ${counts.join(', ')}`,
    ...job.counts.lines(id => job.typeKeys.get(id)!),
    ...(job.leftOut.length > 0 ? [leftOutHint(job.leftOut)] : []),
    ...(leftOut > 0 ? [`Skipped ${formatCount(leftOut)} placeholders: the links to them create them again.`] : []),
    ...(failed > 0 ? [`Refused lines and their reasons are in ${refused.name}. Correct that file and import it.`] : []),
    ...(warnings > 0 ? [warningsHint(warnings)] : []),
    ...(options.match && job.earlier.count > 0
      ? [`${formatLines(job.earlier.count)} met a person of an earlier line of the file.`]
      : []),
    ...(job.shared.lines > 0 ? [sharedHint(job.shared.lines)] : []),
    ...(options.encoding === undefined && input.encoding() === 'windows-1252' ? [encodingHint(file)] : []),
    ...(hasRefused && options.skipLines > 0
      ? [`--skip-lines skipped none of the lines that were refused before.`]
      : []),
    ...(stopped || error ? [continueHint(file === '-' || hasRefused ? null : line, line)] : []),
  ]
}

const leftOutHint = (columns: string[]) =>
  `Left out these columns: ${columns.join(', ')}. Keep one with --map "<column>=attribute_values.<key>", or all as texts with --attributes rest.`

const formatLines = (count: number) => `${formatCount(count)} ${count === 1 ? 'line' : 'lines'}`

const warningsHint = (lines: number) =>
  `${formatLines(lines)} ${lines === 1 ? 'has' : 'have'} a mobile_number that is no phone number with its country. It is stored as sent, and is no address.`

const sharedHint = (lines: number) =>
  `${formatLines(lines)} ${lines === 1 ? 'has' : 'have'} an email or phone that more than ten lines of the file share, so that nobody was ` +
  'recognized by it. Use --shared-addresses to recognize people by it too.'

const encodingHint = (file: string) =>
  `${file} is not UTF-8, and was read as windows-1252. Name another encoding with --encoding.`

/** `skippable` is the line for --skip-lines; null if the option does not apply to the file. */
function continueHint(skippable: number | null, line: number): string {
  const option = skippable === null ? 'only the remaining lines' : `--skip-lines ${skippable}`
  return `Stopped after line ${line}. To continue, run the command again with ${option}, or with all lines: lines already stored change nothing.`
}

/** Adds `name=value` to the pairs. The value may contain an equals sign, and begin or end with spaces. */
function parseValue(text: string, values: Map<string, string>): Map<string, string> {
  const [name = '', value = ''] = text.split(/=(.*)/s, 2)
  if (name.trim() === '' || value === '') throw new InvalidArgumentError('Give name=value.')
  return new Map([...values, [name.trim(), value]])
}

const matchKinds: readonly string[] = ['external_id', 'email', 'mobile'] satisfies MatchKind[]

function parseMatch(text: string): MatchKind[] {
  const kinds = text.split(',').map(kind => kind.trim())
  if (kinds.every(kind => matchKinds.includes(kind)) && new Set(kinds).size === kinds.length)
    return kinds as MatchKind[]
  throw new InvalidArgumentError('Give external_id, email and mobile, each once at most, such as external_id,email.')
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
