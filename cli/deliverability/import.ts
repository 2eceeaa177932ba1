import type { DeliveryEvent } from '../../client/index.ts'
import { type Columns, columnsOf } from '../../transfer/columns.ts'
import { type CsvHead, csvItems } from '../../transfer/csv.ts'
import { recordLines } from '../../transfer/delivery-events.ts'
import type { ImportItem } from '../../transfer/item.ts'
import { ndjsonItems } from '../../transfer/ndjson.ts'
import { normalize } from '../../transfer/normalize-name.ts'
import type { Target } from '../../transfer/target.ts'
import { type Result, UsageError } from '../command.ts'
import { type ConnectionOptions, connect } from '../connection.ts'
import { pathOf } from '../files.ts'
import { checkFileOptions, type FileCommandOptions, fileOptions, readSettings } from '../import/file-options.ts'
import { formatOf, type Input, openInput } from '../import/input.ts'
import { openRejectsFile, type RejectsFile } from '../import/rejects-file.ts'
import {
  closingHints,
  countsText,
  endOf,
  headerOf,
  type Outcome,
  refusedHints,
  resultOf,
  sendFile,
} from '../import/send-file.ts'
import type { PlainCommand } from '../kith-command.ts'

type Options = ConnectionOptions & FileCommandOptions

/** Adds the command that imports events of addresses. */
export function addImport(deliverability: PlainCommand): void {
  const { environment } = deliverability
  deliverability
    .add(
      'import',
      'Records events of addresses from a file, such as the list of suppressed addresses of another tool, also of addresses that no person ' +
        'has. A line has an address or an external_id, a type and a time. The order does not matter, and the same file twice changes nothing.',
    )
    .examples(
      'deliverability import suppressed.csv --set provider=postmark',
      'deliverability import bounces.csv --set type=hard_bounce --set at=2026-01-31T09:00:00Z',
      'deliverability import deliverability.ndjson',
    )
    .argument('<file>', 'A file in NDJSON (.ndjson, .jsonl) or CSV (.csv, .tsv), plain or .gz; - for standard input.')
    .with(fileOptions)
    .connection()
    .action((file, options) => run(environment, file, options))
}

async function run(environment: NodeJS.ProcessEnv, file: string, options: Options): Promise<Result> {
  const format = formatOf(file, options.format)
  checkFileOptions(format, options)
  if (file === '-' && options.tokenFile === '-') throw new UsageError('File and token cannot both be standard input.')
  const client = await connect(environment, options, { scope: 'people:write' })
  const settings = await readSettings(options)
  const path = (name: string) => pathOf(environment, name)
  const input = await openInput(path(file), { name: file, format, encoding: options.encoding })
  const leftOut: string[] = []
  async function* itemsOf(): AsyncGenerator<ImportItem[]> {
    if (format === 'ndjson') return yield* ndjsonItems(input.pieces, 'deliverability')
    const batches = csvItems(input.pieces, settings, fileHead => {
      Object.assign(head, fileHead)
      const columns = eventColumnsOf(headerOf(fileHead), options)
      leftOut.push(...columns.leftOut)
      return columns
    })
    for await (const batch of batches)
      yield batch.map(item =>
        item.body === null ? item : { ...item, body: JSON.stringify(eventOf(JSON.parse(item.body))) },
      )
  }
  const head: CsvHead = { cells: [], delimiter: ',' }
  try {
    const refused = await openRejectsFile({ file, extension: format, named: options.refused }, path, head)
    const startedMs = performance.now()
    const outcome = await sendFile({ input, refused, options }, ({ signal }) => ({
      items: itemsOf(),
      open: lines => recordLines(lines, (events: DeliveryEvent[]) => client.deliverability.record(events, { signal })),
      isStreamed: false,
      isRepeatable: () => true,
      done() {},
    }))
    await refused.close()
    return report({ file, input, refused, options, leftOut }, outcome, (performance.now() - startedMs) / 1_000)
  } finally {
    input.close()
  }
}

type Job = { file: string; input: Input; refused: RejectsFile; options: Options; leftOut: string[] }

function report(job: Job, outcome: Outcome, seconds: number): Result {
  const { refused, leftOut } = job
  const { received, updated: stored, unchanged, failed } = outcome.state
  const summary = [
    countsText(received, seconds, { stored, unchanged, refused: failed }),
    ...(leftOut.length > 0 ? [`Left out these columns: ${leftOut.join(', ')}.`] : []),
    ...refusedHints(outcome.state, refused),
    ...closingHints(outcome, job),
  ]
  const value = { received, stored, unchanged, failed, left_out_columns: leftOut, ...endOf(outcome, refused) }
  return resultOf(outcome, { value, summary })
}

/** The fields of an event with the column names of suppression lists, in order of precedence. */
const names = {
  channel: ['channel'],
  address: ['address', 'email', 'emailaddress', 'recipient', 'phone', 'phonenumber', 'mobile'],
  external_id: ['externalid'],
  type: ['type', 'event', 'reason', 'suppressionreason'],
  at: ['at', 'date', 'time', 'timestamp', 'createdat', 'suppressedat', 'lastupdatetime'],
  provider: ['provider'],
  reference: ['reference', 'messageid'],
  consent_type_id: ['consenttypeid'],
} as const

/** Providers write names as one word, as in `EmailAddress`, or with spaces or underscores. */
const inOne = (name: string) => normalize(name).replaceAll(' ', '')

const typeOf = (key: string) => (key === 'at' ? 'datetime' : key === 'consent_type_id' ? 'number' : 'text')
const targets = new Map(
  Object.keys(names).map((key): [string, Target] => [key, { to: 'field', name: key, key, type: typeOf(key) }]),
)

/**
 * Finds the columns of a list of addresses, by their names or by the options. It ignores the other columns. Throws an
 * Error if it finds no column or option for the addresses, the types of the events or their times.
 */
function eventColumnsOf(
  header: string[],
  { map, ignore, prefix, set }: FileCommandOptions,
): Columns & { leftOut: string[] } {
  const columns = header.map(name => name.trim())
  const all = new Map(map)
  for (const [key, known] of Object.entries(names)) {
    if (set.has(key) || [...map.values()].includes(key)) continue
    const free = columns.filter(name => !map.has(name) && !ignore.includes(name))
    const name = known.map(each => free.find(name => inOne(name) === each)).find(Boolean)
    if (name !== undefined) all.set(name, key)
  }
  const has = (key: string) => set.has(key) || [...all.values()].includes(key)
  if (!has('address') && !has('external_id'))
    throw new Error(`No column has the addresses. Name it with --map "<column>=address". ${listOf(columns)}`)
  if (!has('type'))
    throw new Error(
      `No column has the types of the events. Name them all, as by --set type=hard_bounce. ${listOf(columns)}`,
    )
  if (!has('at'))
    throw new Error(
      'No column has the times of the events. Name the time of the export, as by --set at=2026-01-31T09:00:00Z: the events count from then. ' +
        listOf(columns),
    )
  const leftOut = columns.filter(name => !all.has(name) && !ignore.includes(name))
  const options = { map: all, ignore: [...ignore, ...leftOut], prefixes: prefix, constants: set }
  return {
    ...columnsOf(header, targets, { ...options, unknownAsAttributes: false }),
    leftOut: leftOut.filter(name => name !== ''),
  }
}

const listOf = (columns: string[]) => `The columns are ${columns.join(', ')}.`

/** The names that providers use for the types, in the form of `inOne`. */
const typeNames = {
  hard_bounce: ['hardbounce', 'bounce', 'bounced', 'cleaned', 'invalidemail'],
  soft_bounce: ['softbounce'],
  complaint: ['complaint', 'spamcomplaint', 'spamreport', 'spam'],
  unsubscribe: ['unsubscribe', 'unsubscribed'],
  delivered: ['delivered'],
}
const typeByName = new Map(
  Object.entries(typeNames).flatMap(([type, all]) => all.map((name): [string, string] => [name, type])),
)

/**
 * An event in the form of the API. The service refuses an unknown type. The default channel follows from the address.
 */
function eventOf(record: { type?: string; channel?: string; address?: string }): object {
  const { type, channel, address } = record
  return {
    ...record,
    ...(type !== undefined && { type: typeByName.get(inOne(type)) ?? type }),
    ...(channel === undefined && address !== undefined && { channel: address.includes('@') ? 'email' : 'sms' }),
  }
}
