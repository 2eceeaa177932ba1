import { randomUUID } from 'node:crypto'
import { InvalidArgumentError } from 'commander'
import type { Client, MatchKind } from '../client/index.ts'
import { type ColumnOptions, columnsOf, targetsOf } from '../transfer/columns.ts'
import { type CsvHead, type CsvSettings, csvItems, type FileColumns } from '../transfer/csv.ts'
import { eventsOf, inRequests } from '../transfer/delivery-events.ts'
import type { Format } from '../transfer/file.ts'
import type { ImportItem } from '../transfer/item.ts'
import { ndjsonItems } from '../transfer/ndjson.ts'
import { EarlierLines, SharedAddresses } from '../transfer/shared-addresses.ts'
import { givenOf, type Result, UsageError, wholeNumber } from './command.ts'
import { connect } from './connection.ts'
import { pathOf } from './files.ts'
import { AnswerCounts } from './import/answer-counts.ts'
import { cellOptions, checkFileOptions, fileOptions, readSettings } from './import/file-options.ts'
import { formatOf, type Input, openInput } from './import/input.ts'
import { createPhoneSplitter } from './import/phone.ts'
import { type ProfileOptions, profileColumnsOf } from './import/profile-columns.ts'
import { profileOptions, readProfileOptions } from './import/profile-options.ts'
import { openRejectsFile, type RejectsFile } from './import/rejects-file.ts'
import { rememberedOptions } from './import/remembered-mapping.ts'
import {
  closingHints,
  countsText,
  endOf,
  formatLines,
  headerOf,
  type Outcome,
  refusedHints,
  resultOf,
  sendFile,
} from './import/send-file.ts'
import { newCommand, type OptionsOf, type PlainCommand } from './kith-command.ts'
import { formatCount } from './progress.ts'

export const importCommand = (environment: NodeJS.ProcessEnv) =>
  newCommand(
    environment,
    'import',
    'Creates or changes people, or records of a stack, from a file of any length with one entity per line.',
  )
    .examples(
      'import people people.ndjson.gz',
      'import orders orders.csv --map "Order number=external_id" --dry-run',
      'import people people.csv --url https://kith.example.org --token-file token --date-order dmy',
      'import people - --format ndjson < people.ndjson',
      'import people newsletter.csv --match external_id,email --dry-run',
      'import people profiles.csv --profile klaviyo --exported-at 2026-01-31T09:00:00Z --dry-run',
    )
    .argument('<people|stack_key>', 'Either people or the key of a stack.')
    .argument('<file>', 'A file in NDJSON (.ndjson, .jsonl) or CSV (.csv, .tsv), plain or .gz; - for standard input.')
    .with(importOptions)
    .action((owner, file, options) => run(environment, owner, file, options))

const importOptions = (command: PlainCommand) =>
  command
    .with(fileOptions)
    .with(cellOptions)
    .with(profileOptions)
    .connection()
    .option('--attributes <which>', 'CSV: Import all other columns as attribute values, as texts.', {
      choices: ['rest'],
    })
    .option('--no-mapping', 'CSV: Do not read the columns as an import in the console did that had the same header.')
    .option(
      '--match <keys>',
      'People: recognize a person by these, in this order: external_id, email, mobile, separated by commas.',
      { parse: parseMatch },
    )
    .option(
      '--shared-addresses',
      'Recognize people also by an email or phone that more than ten lines of the file have.',
    )
    .option('--create-only', 'Refuse a line that would change an existing entity.')
    .option(
      '--consents <time>',
      'People: Answers without a time are given now, and become current. Without it, they only answer what is unanswered.',
      { choices: ['now'] },
    )
    .option('--lists <how>', 'A list replaces the stored list, or adds its elements to it.', {
      choices: ['replace', 'add'],
      default: 'replace',
    })
    .option('--max-refused <count>', 'End after this many refused lines in a row. Default: 1000.', {
      parse: wholeNumber(1, 1_000_000_000),
    })
    .option(
      '--subject <name>',
      'The subject of the token that the command creates itself, for the change log. Default: cli.',
    )
    .option('--dry-run', 'Check every line and report refusals, but store nothing.')
    .option('--strict-references', 'Refuse a line that refers to a missing entity, instead of creating a placeholder.')

type ImportOptions = OptionsOf<typeof importOptions>

/** Whether the import counts the lines that share an email or a phone, to recognize no person by them. */
const countsAddresses = ({ match = [], sharedAddresses }: ImportOptions) =>
  !sharedAddresses && match.some(kind => kind !== 'external_id')

async function run(
  environment: NodeJS.ProcessEnv,
  owner: string,
  file: string,
  options: ImportOptions,
): Promise<Result> {
  const format = formatOf(file, options.format)
  if (file === '-' && options.tokenFile === '-') throw new UsageError('File and token cannot both be standard input.')
  checkFileOptions(format, options)
  if (options.profile !== undefined && (owner !== 'people' || format !== 'csv'))
    throw new UsageError('--profile applies only to CSV of people.')
  const { status, exportedAt, consentType, externalId, consents, match, phoneCountry } = options
  const given = {
    status,
    'exported-at': exportedAt,
    'consent-type': consentType.size,
    'external-id': externalId !== 'id',
  }
  for (const [name, value] of Object.entries(given))
    if (value && options.profile === undefined) throw new UsageError(`--${name} applies only with --profile.`)
  for (const [name, value] of Object.entries({ consents, match, 'phone-country': phoneCountry }))
    if (value && owner !== 'people') throw new UsageError(`--${name} applies only to people.`)
  if (file === '-' && countsAddresses(options))
    throw new UsageError(
      'To find addresses that many lines share, a file is read twice. Give a file, or --shared-addresses to recognize people by them too.',
    )
  const path = (name: string) => pathOf(environment, name)
  const scope = `${owner === 'people' ? 'people:write records:write' : 'records:write people:write'} schema:read`
  const profile = options.profile === undefined ? null : await readProfileOptions(options.profile, options, file, path)
  // In an import, `profile` is the format of the file and no profile of a service.
  const client = await connect(environment, { ...options, profile: undefined }, { scope })
  // The default is the country of the organization, as for every other phone number.
  if (profile && options.phoneCountry === undefined)
    profile.splitPhone = createPhoneSplitter((await client.schema.settings()).default_country ?? undefined)
  const settings = await readSettings(options)
  const input = await openInput(path(file), { name: file, format, encoding: options.encoding })
  try {
    const head: CsvHead = { cells: [], delimiter: ',' }
    const refused = await openRejectsFile({ file, extension: format, named: options.refused }, path, head)
    const about = { client, owner, file, path: path(file), format, input, refused, head, options, settings, profile }
    const job = newJob(about)
    const startedMs = performance.now()
    const outcome = await transfer(job)
    await refused.close()
    return report(job, outcome, (performance.now() - startedMs) / 1_000)
  } finally {
    input.close()
  }
}

type About = {
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
}

const newJob = (about: About) => ({
  ...about,
  /** The id of the import. */
  id: randomUUID(),
  /** The counts of the answers that the profile has read. */
  counts: new AnswerCounts(),
  /** The columns that the profile left out. Filled when the header has been read. */
  leftOut: [] as string[],
  /** The keys of the consent types by id. Filled when the header has been read. */
  typeKeys: new Map<number, string>(),
  shared: new SharedAddresses(about.options.match ?? []),
  earlier: new EarlierLines(about.options.match ?? ['external_id']),
})
type Job = ReturnType<typeof newJob>

async function transfer(job: Job): Promise<Outcome> {
  const { client, owner, input, options } = job
  const dryRun = options.dryRun ?? false
  const importOptions = {
    dryRun,
    createOnly: options.createOnly ?? false,
    ...givenOf(options, 'maxRefused', 'consents', 'match'),
    // All requests have the same id, so that they form one import.
    requestId: job.id,
    ...(options.lists === 'add' && { lists: options.lists }),
    ...(options.strictReferences && { references: 'strict' as const }),
    ...(!job.profile && options.phoneCountry && { phoneCountry: options.phoneCountry }),
  }
  return sendFile(job, async ({ signal, isStopped, print, retry }) => {
    if (countsAddresses(options)) await countAddresses(job, isStopped)
    return {
      items: job.shared.spareAll(itemsOf(job, input, print)),
      open: lines => client.entities(owner).import(lines, { ...importOptions, signal }),
      isStreamed: true,
      isRepeatable: item =>
        dryRun || (!item.recognizesNobody && (options.match ?? []).some(key => key !== 'external_id')),
      async done(items) {
        job.counts.add(items)
        job.earlier.add(items)
        if (dryRun) return
        for (const events of inRequests(items.flatMap(eventsOf)))
          await retry(() => client.deliverability.record(events, { signal }))
      },
    }
  })
}

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
  if (owner !== 'people' && !definitions.stacks.some(({ key }) => key === owner))
    throw new Error(`There is no such stack: ${JSON.stringify(owner)}.`)
  const mappings = options.mapping && !job.profile ? await client.imports.mappings() : []
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
    const targets = targetsOf(owner, definitions)
    const remembered = rememberedOptions(names, mappings, { owner, targets, options: columnOptions })
    if (remembered) printMessage(remembered.notice)
    const columns: FileColumns = job.profile
      ? profileColumnsOf(names, definitions, columnOptions, job.profile)
      : columnsOf(names, targets, remembered?.options ?? columnOptions)
    job.leftOut.push(...(columns.profile?.leftOut ?? []))
    for (const { id, key } of definitions.consent_types) job.typeKeys.set(id, key)
    for (const notice of columns.notices) printMessage(notice)
    return columns
  })
}

function report(job: Job, outcome: Outcome, seconds: number): Result {
  const { received, created, updated, unchanged, failed, leftOut, warnings } = outcome.state
  const value = {
    ...{ received, created, updated, unchanged, failed, left_out: leftOut, warnings },
    import_id: job.options.dryRun ? null : job.id,
    dry_run: job.options.dryRun ?? false,
    ...endOf(outcome, job.refused),
    ...(job.options.match && { met_earlier: job.earlier.count, shared_addresses: job.shared.lines }),
    ...(job.profile && { answers: job.counts.value(), left_out_columns: job.leftOut }),
  }
  return resultOf(outcome, { value, summary: summaryOf(job, outcome, seconds) })
}

function summaryOf(job: Job, outcome: Outcome, seconds: number): string[] {
  const { refused, options } = job
  const { received, created, updated, unchanged, failed, leftOut, warnings } = outcome.state
  return [
    countsText(
      received,
      seconds,
      { created, updated, unchanged, refused: failed },
      options.dryRun ? ', checked and not stored' : '',
    ),
    ...job.counts.lines(id => job.typeKeys.get(id)!),
    ...(job.leftOut.length > 0 ? [leftOutHint(job.leftOut)] : []),
    ...(leftOut > 0
      ? [`Skipped ${formatCount(leftOut)} ${leftOut === 1 ? 'placeholder' : 'placeholders'}, which links create again.`]
      : []),
    ...refusedHints(outcome.state, refused),
    ...(warnings > 0 ? [warningsHint(warnings)] : []),
    ...(options.match && job.earlier.count > 0
      ? [`${formatLines(job.earlier.count)} met a person of an earlier line of the file.`]
      : []),
    ...(job.shared.lines > 0 ? [sharedHint(job.shared.lines)] : []),
    ...closingHints(outcome, job),
  ]
}

const leftOutHint = (columns: string[]) =>
  `Left out these columns: ${columns.join(', ')}. Keep one with --map "<column>=attribute_values.<key>", or all as texts with --attributes rest.`

const warningsHint = (lines: number) =>
  `${formatLines(lines)} ${lines === 1 ? 'has' : 'have'} a mobile_number that is no phone number with its country. It is stored as sent, and is no address.`

const sharedHint = (lines: number) =>
  `${formatLines(lines)} ${lines === 1 ? 'has' : 'have'} an email or phone that more than ten lines of the file share, so that nobody was ` +
  'recognized by it. Use --shared-addresses to recognize people by it too.'

const matchKinds: readonly string[] = ['external_id', 'email', 'mobile'] satisfies MatchKind[]

function parseMatch(text: string): MatchKind[] {
  const kinds = text.split(',').map(kind => kind.trim())
  if (kinds.every(kind => matchKinds.includes(kind)) && new Set(kinds).size === kinds.length)
    return kinds as MatchKind[]
  throw new InvalidArgumentError('Give external_id, email and mobile, each once at most, such as external_id,email.')
}
