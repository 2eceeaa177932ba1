import type { Command } from 'commander'
import type { DeliveryEvent } from '../../client/index.ts'
import { type CsvHead, csvItems } from '../../transfer/csv.ts'
import { recordLines } from '../../transfer/delivery-events.ts'
import type { ImportItem } from '../../transfer/item.ts'
import { ndjsonItems } from '../../transfer/ndjson.ts'
import { newCommand, UsageError } from '../command.ts'
import { addConnectionOptions, type ConnectionOptions, connect } from '../connection.ts'
import { pathOf } from '../files.ts'
import { addFileOptions, checkFileOptions, type FileCommandOptions, readSettings } from '../import/file-options.ts'
import { formatOf, type Input, openInput } from '../import/input.ts'
import { openRejectsFile, type RejectsFile } from '../import/rejects-file.ts'
import {
  closingHints,
  countsText,
  endOf,
  headerOf,
  type Outcome,
  printOutcome,
  refusedHints,
  sendFile,
} from '../import/send-file.ts'
import { eventColumnsOf, eventOf } from './event-columns.ts'

type Options = ConnectionOptions & FileCommandOptions

export function importEventsCommand(environment: NodeJS.ProcessEnv): Command {
  const command = newCommand(
    'import',
    'Records events of addresses from a file, such as the list of suppressed addresses of another tool, also of addresses that no person ' +
      'has. A line has an address or an external_id, a type and a time. The order does not matter, and the same file twice changes nothing.',
    [
      'deliverability import suppressed.csv --set provider=postmark',
      'deliverability import bounces.csv --set type=hard_bounce --set at=2026-01-31T09:00:00Z',
      'deliverability import deliverability.ndjson',
    ],
  ).argument('<file>', 'A file in NDJSON (.ndjson, .jsonl) or CSV (.csv, .tsv), plain or .gz; - for standard input.')
  return addConnectionOptions(addFileOptions(command)).action((file: string, options: Options) =>
    run(environment, file, options),
  )
}

async function run(environment: NodeJS.ProcessEnv, file: string, options: Options) {
  const format = formatOf(file, options.format)
  checkFileOptions(format, options)
  if (file === '-' && options.tokenFile === '-') throw new UsageError('File and token cannot both be standard input.')
  const { client } = await connect(environment, options, { scope: 'people:write' })
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
    report({ file, input, refused, options, leftOut }, outcome, (performance.now() - startedMs) / 1_000)
  } finally {
    input.close()
  }
}

type Job = { file: string; input: Input; refused: RejectsFile; options: Options; leftOut: string[] }

function report(job: Job, outcome: Outcome, seconds: number) {
  const { refused, options, leftOut } = job
  const { received, updated: stored, unchanged, failed } = outcome.state
  const summary = [
    countsText(received, seconds, { stored, unchanged, refused: failed }),
    ...(leftOut.length > 0 ? [`Left out these columns: ${leftOut.join(', ')}.`] : []),
    ...refusedHints(outcome.state, refused),
    ...closingHints(outcome, job),
  ]
  const value = { received, stored, unchanged, failed, left_out_columns: leftOut, ...endOf(outcome, refused) }
  printOutcome(options, outcome, { value, summary })
}
