import { type Command, InvalidArgumentError, Option } from 'commander'
import type { Client } from '../client/index.ts'
import { answer, newCommand, sentenceOf, UsageError } from './command.ts'
import { type ConnectionOptions, connect, pathOf, withConnection } from './connection.ts'
import { type ColumnOptions, columnsOf } from './import/columns.ts'
import { type CsvHead, csvItems } from './import/csv.ts'
import { type Format, formatOf, type Input, openInput } from './import/input.ts'
import type { Item, Refusal } from './import/item.ts'
import { ndjsonItems } from './import/ndjson.ts'
import { openRefused, type RefusedFile } from './import/rejects-file.ts'
import { type State, sendAll } from './import/send.ts'
import { numeral, startProgress, timeOf } from './progress.ts'
import { handleInterrupt } from './signal-handling.ts'

type ImportOptions = ConnectionOptions & {
  format?: Format
  map: Map<string, string>
  ignore: string[]
  attributes?: 'rest'
  listSeparator: string
  dateOrder?: 'dmy' | 'mdy'
  offset?: string
  empty: 'absent' | 'null'
  delimiter?: string
  prefix: Map<string, string>
  set: Map<string, string>
  encoding?: string
  createOnly?: true
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
    'create or change people, or the records of a stack, from a file of any length: an entity a line',
    [
      'import people people.ndjson.gz',
      'import orders orders.csv --map "Order number=external_id" --dry-run',
      'import people people.csv --url https://kith.example.org --token-file token --date-order dmy',
      'import people - --format ndjson < people.ndjson',
    ],
  )
    .argument('<people|stack_key>', 'people, or the key of a stack')
    .argument('<file>', '.ndjson, .jsonl, .csv or .tsv, each perhaps packed (.gz); - for standard input')
  return withConnection(withCsvOptions(command))
    .addOption(
      new Option('--format <format>', 'what the file is, where its name does not say').choices(['ndjson', 'csv']),
    )
    .option('--encoding <name>', 'what the file is written in, such as windows-1252; else UTF-8', parseEncoding)
    .option('--create-only', 'refuse a line that would change an entity that exists')
    .option('--subject <name>', 'the subject of the token that the command makes itself, for the change log; else cli')
    .option('--dry-run', 'check every line, say what is refused, and store nothing')
    .option(
      '--strict-references',
      'refuse a line that names somebody who is not there, instead of making a placeholder',
    )
    .option('--skip-lines <count>', 'go on after this line of the file', wholeNumber, 0)
    .option('--refused <file>', 'where refused lines go, with their reasons; else beside the file')
    .option('--quiet', 'show no progress')
    .action((owner: string, file: string, options: ImportOptions) => run(environment, owner, file, options))
}

function withCsvOptions(command: Command): Command {
  return command
    .option('--map <column=field>', 'CSV: what a column stands for, once for each', parsePair, new Map())
    .option(
      '--ignore <column>',
      'CSV: a column to leave out, once for each',
      (name, all: string[]) => [...all, name],
      [],
    )
    .option(
      '--prefix <column=text>',
      'CSV: put a text before each value of a column (repeatable)',
      parseValue,
      new Map(),
    )
    .option('--set <field=value>', 'CSV: give every record this value (repeatable)', parseValue, new Map())
    .addOption(
      new Option('--attributes <which>', 'CSV: take all other columns as attribute values, texts').choices(['rest']),
    )
    .option('--list-separator <text>', 'CSV: between the values of an attribute that holds many', '|')
    .addOption(
      new Option('--date-order <order>', 'CSV: what 01/02/1999 is; else such a date is refused').choices([
        'dmy',
        'mdy',
      ]),
    )
    .option('--offset <offset>', 'CSV: of times that name none, such as Z or +01:00', parseOffset)
    .addOption(
      new Option('--empty <meaning>', 'CSV: an empty cell keeps what stands, or clears it')
        .choices(['absent', 'null'])
        .default('absent'),
    )
    .option(
      '--delimiter <character>',
      'CSV: between cells, tab for a tab; else guessed from the header',
      parseDelimiter,
    )
}

async function run(environment: NodeJS.ProcessEnv, owner: string, file: string, options: ImportOptions) {
  const format = formatOf(file, options.format)
  if (file === '-' && options.tokenFile === '-') throw new UsageError('File and token cannot both be standard input.')
  if (format === 'ndjson' && options.prefix.size + options.set.size > 0)
    throw new UsageError('--prefix and --set are for CSV.')
  const path = (name: string) => pathOf(environment, name)
  const scope = `${owner === 'people' ? 'people:write records:write' : 'records:write people:write'} schema:read`
  const { client } = await connect(environment, options, { scope })
  const input = await openInput(file, path(file), options.encoding)
  const head: CsvHead = { cells: [], delimiter: ',' }
  const refused = await openRefused({ file, extension: format, named: options.refused }, path, head)
  const job = { client, owner, file, format, input, refused, head, options }
  const startedMs = performance.now()
  const outcome = await transfer(job).finally(input.close)
  await refused.close()
  report(job, outcome, (performance.now() - startedMs) / 1_000)
}

type Job = {
  client: Client
  owner: string
  file: string
  format: Format
  input: Input
  refused: RefusedFile
  head: CsvHead
  options: ImportOptions
}

type Outcome = { state: State; stopped: boolean; error: Error | null }

async function transfer({ client, owner, input, refused, options, ...job }: Job): Promise<Outcome> {
  const state: State = {
    received: 0,
    created: 0,
    updated: 0,
    unchanged: 0,
    failed: 0,
    line: options.skipLines,
    drawn: 0,
    leftOut: 0,
  }
  const reading = () => ({
    count: state.received,
    part: partOf(input, state),
    refused: state.failed,
  })
  const meter = startProgress('lines', reading, { silent: Boolean(options.quiet || options.json) })
  const interrupt = handleInterrupt(() => meter.tell('stopping after what is under way; again to stop at once'))
  const entities = owner === 'people' ? client.people : client.stack(owner)
  const told = {
    dryRun: options.dryRun ?? false,
    createOnly: options.createOnly ?? false,
    ...(options.strictReferences && { references: 'strict' as const }),
  }
  let error: Error | null = null
  try {
    const items = itemsOf({ client, owner, input, refused, options, ...job }, meter.tell)
    await sendAll({
      items: skipping(items, options.skipLines),
      open: (lines, signal) => entities.import(lines, { ...told, signal }),
      interrupt,
      state,
      done: items => refused.write(items.filter(isRefused)),
      broken: (error, pauseMs) =>
        meter.tell(`${sentenceOf(error)} Going on after line ${state.line} in ${(pauseMs / 1_000).toFixed(1)} s.`),
    })
  } catch (fault) {
    error = fault as Error
  } finally {
    meter.end()
    interrupt.end()
  }
  return { state, stopped: interrupt.asked, error }
}

/** What has been read of the file, less what is still on its way. */
function partOf({ totalBytes, readBytes }: Input, { received, drawn, leftOut }: State): number | null {
  if (totalBytes === null) return null
  return Math.min(1, readBytes() / Math.max(1, totalBytes)) * ((received + leftOut) / Math.max(1, drawn))
}

const isRefused = (item: Item): item is Item & { refusal: Refusal } => item.refusal !== undefined

async function* itemsOf(job: Job, say: (line: string) => void): AsyncGenerator<Item[]> {
  const { client, owner, input, format, head, options } = job
  if (format === 'ndjson') return yield* ndjsonItems(input.pieces, owner)
  const definitions = await client.schema.get()
  const wishes: ColumnOptions = {
    map: options.map,
    ignore: options.ignore,
    rest: options.attributes === 'rest',
    prefixes: options.prefix,
    constants: options.set,
  }
  const settings = {
    listSeparator: options.listSeparator,
    dateOrder: options.dateOrder ?? null,
    offset: options.offset ?? null,
    delimiter: options.delimiter ?? null,
    empty: options.empty,
  }
  yield* csvItems(input.pieces, settings, read => {
    Object.assign(head, read)
    const columns = columnsOf(read.cells, owner, definitions, wishes)
    for (const notice of columns.notices) say(notice)
    return columns
  })
}

async function* skipping(batches: AsyncIterable<Item[]>, lines: number): AsyncGenerator<Item[]> {
  for await (const batch of batches) yield lines === 0 ? batch : batch.filter(({ line }) => line > lines)
}

function report(job: Job, outcome: Outcome, seconds: number) {
  const { state, stopped, error } = outcome
  const { received, created, updated, unchanged, failed } = state
  const value = {
    ...{ received, created, updated, unchanged, failed, leftOut: state.leftOut },
    dry_run: job.options.dryRun ?? false,
    refused_file: failed > 0 ? job.refused.name : null,
    stopped_after: stopped || error ? state.line : null,
    error: error && sentenceOf(error),
  }
  const summary = error && received === 0 ? [] : summaryOf(job, outcome, seconds)
  answer(job.options, { value, said: [...(error ? [sentenceOf(error)] : []), ...summary] })
  if (stopped || error || failed > 0) process.exitCode = 1
}

function summaryOf({ file, refused, options }: Job, { state, stopped, error }: Outcome, seconds: number): string[] {
  const { received, created, updated, unchanged, failed, leftOut, line } = state
  const ofWords = { created, updated, unchanged, refused: failed }
  const counts = Object.entries(ofWords).map(([word, count]) => `${numeral(count)} ${word}`)
  const would = options.dryRun ? ', checked and not stored' : ''
  return [
    `${numeral(received)} lines in ${timeOf(seconds)}${would}: ${counts.join(', ')}`,
    ...(leftOut > 0 ? [`${numeral(leftOut)} placeholders left out: the links to them make them again`] : []),
    ...(failed > 0 ? [`the refused ones and their reasons are in ${refused.name}: mend it, and import it`] : []),
    ...(stopped || error ? [howToGoOn(file, line)] : []),
  ]
}

function howToGoOn(file: string, line: number): string {
  const again = file === '-' ? 'give the rest' : `run it again with --skip-lines ${line}`
  return `stopped after line ${line}; to go on, ${again}, or all of it: what is stored already stays as it is`
}

function parsePair(text: string, pairs: Map<string, string>): Map<string, string> {
  const at = text.lastIndexOf('=')
  if (at < 1 || at === text.length - 1) throw new InvalidArgumentError('Give column=field.')
  return new Map([...pairs, [text.slice(0, at).trim(), text.slice(at + 1).trim()]])
}

/** A value may hold an equals sign, and begin or end with spaces. */
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

function wholeNumber(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError('Give a whole number.')
  return Number(text)
}
