import { type Client, idOf, type Person, type StackRecord } from '../client/index.ts'
import { type ExportState, exportAll } from '../transfer/export.ts'
import { csvShape, type ExportShape, ndjsonShape } from '../transfer/export-shape.ts'
import type { Format } from '../transfer/file.ts'
import { Retries } from '../transfer/retry.ts'
import { type JsonOption, type Result, UsageError } from './command.ts'
import { connect } from './connection.ts'
import { errorMessage } from './error-message.ts'
import { type Output, openOutput } from './export/output.ts'
import { pathOf } from './files.ts'
import { newCommand, type OptionsOf, type PlainCommand } from './kith-command.ts'
import { formatCount, formatDuration, startProgress } from './progress.ts'
import { linksOption } from './questions/list-options.ts'
import { handleInterrupt } from './signal-handling.ts'

type Entity = Person | StackRecord

export const exportCommand = (environment: NodeJS.ProcessEnv) =>
  newCommand(
    environment,
    'export',
    'Writes all people or all records of a stack, in order of their internal identifiers.',
  )
    .examples(
      'export people --output people.ndjson.gz',
      'export orders --output orders.csv --resume',
      'export people | jq .email',
    )
    .argument('<people|stack_key>', 'Either people or the key of a stack.')
    .with(exportOptions)
    .action((owner, options) => run(environment, owner, options))

const exportOptions = (command: PlainCommand) =>
  command
    .option('--output <file>', 'The file to write. Default: standard output.')
    .connection()
    .option(
      '--format <format>',
      'The format. Default: as the file name says, else ndjson. csv quotes cells by RFC 4180, and escapes nothing else: a text that begins with =, +, - or @ ' +
        'is a formula for a spreadsheet. The export of the console can escape it.',
      { choices: ['ndjson', 'csv'] },
    )
    .option('--byte-order-mark', 'CSV: Begin with the mark by which a spreadsheet reads UTF-8. An import skips it.')
    .option('--gzip', 'Compress the output. Default for a file name that ends in .gz.')
    .option('--resume', 'Continue the file of an interrupted export. Without such a file, start from the beginning.')
    .option('--force', 'Overwrite an existing file.')
    .option('--after-id <id>', 'Start after the entity with this internal identifier.')
    .option(...linksOption)
    .option('--list-separator <text>', 'CSV: The separator of the values of an attribute with many values.', {
      default: '|',
    })
    .option('--quiet', 'Show no progress.')

type ExportOptions = JsonOption & OptionsOf<typeof exportOptions>

async function run(environment: NodeJS.ProcessEnv, owner: string, options: ExportOptions): Promise<Result> {
  if (options.output === undefined && (options.resume || options.json))
    throw new UsageError(`${options.resume ? '--resume' : '--json'} needs a file. Name it with --output.`)
  const name = options.output
  const format = options.format ?? (/\.csv(?:\.gz)?$/i.test(name ?? '') ? 'csv' : 'ndjson')
  if (options.byteOrderMark && format !== 'csv') throw new UsageError('--byte-order-mark applies only to CSV.')
  const compressed = options.gzip ?? /\.gz$/i.test(name ?? '')
  const identifier = owner === 'people' ? 'id' : 'record_id'
  const scope = `exports:read ${owner === 'people' ? 'people:read' : 'records:read'}${format === 'csv' ? ' schema:read' : ''}`
  const client = await connect(environment, options, { scope })
  const shape = format === 'csv' ? csvShape(owner, await client.schema.get(), options.listSeparator) : ndjsonShape
  const form = { words: formWords(owner, format, options), columns: shape.header }
  const target = { name, path: pathOf(environment, name ?? ''), format, compressed, identifier, form }
  const output = await openOutput({ ...target, resume: options.resume ?? false, force: options.force ?? false })
  const startedMs = performance.now()
  const state = { count: 0, after: output.resumePoint.after_id ?? options.afterId }
  const job = { client, owner, shape, output, state, name, options }
  const failure = await transfer(job)
  return report(job, failure, (performance.now() - startedMs) / 1_000)
}

/** The options that determine the format of the rows. A resumed export must have the same ones. */
const formWords = (owner: string, format: Format, { links, listSeparator }: ExportOptions) =>
  [
    owner,
    `--format ${format}`,
    ...(links ? [`--links ${links}`] : []),
    ...(format === 'csv' ? [`--list-separator ${JSON.stringify(listSeparator)}`] : []),
  ].join(' ')

type Job = {
  client: Client
  owner: string
  shape: ExportShape
  output: Output
  state: ExportState
  name: string | undefined
  options: ExportOptions
}

/** Exports all entities. Returns the error that ended the export early, or null if it is complete. */
async function transfer(job: Job): Promise<Error | null> {
  const { client, owner, output, shape, state, options } = job
  const total = createTotal(job)
  const progressLine = startProgress('entities', () => ({ count: state.count, fraction: total.fraction() }), options)
  const interrupt = handleInterrupt(() => {})
  const retries = new Retries()
  try {
    if (output.resumePoint.bytes === 0) await output.write(`${options.byteOrderMark ? '\ufeff' : ''}${shape.header}`)
    else
      progressLine.print(
        `Resuming after ${countEntities(output.resumePoint.lines)}; later entities have the state of a later moment.`,
      )
    const { signal } = interrupt
    await exportAll<Entity>({
      open: after =>
        client
          .entities(owner)
          .export({ after, signal, ...(options.links && { links: options.links }) }) as AsyncIterable<Entity>,
      identify: idOf,
      write: batch => output.write(shape.rowsOf(batch)),
      stop: interrupt,
      state,
      failed: error =>
        retries.wait(error, state.count, interrupt, pauseMs => {
          const retry = `Resuming after ${countEntities(state.count)} in ${(pauseMs / 1_000).toFixed(1)} s`
          progressLine.print(`${errorMessage(error)} ${retry}; later entities have the state of a later moment.`)
        }),
    })
    if (interrupt.isRequested) throw new Error('Stopped.')
    await output.complete()
    return null
  } catch (error) {
    await output.leave().catch(() => {})
    return error as Error
  } finally {
    progressLine.end()
    total.end()
    interrupt.end()
  }
}

/**
 * The completed fraction of an export. It reads the total when it first shows the progress, because most exports end
 * before. The fraction is unknown until then, after a refusal, and with `--after-id`.
 */
function createTotal({ client, owner, output, state, options }: Job) {
  const counting = new AbortController()
  let total: number | null | undefined = options.afterId === undefined ? undefined : null
  return {
    fraction() {
      if (total === undefined) {
        total = null
        const counted = client.entities(owner).count({}, { signal: counting.signal })
        counted.then(({ count }) => (total = count)).catch(() => {})
      }
      return total === null ? null : Math.min(1, state.count / Math.max(1, total - output.resumePoint.lines))
    },
    end: () => counting.abort(),
  }
}

const countEntities = (count: number) => `${formatCount(count)} ${count === 1 ? 'entity' : 'entities'}`

function report({ name, output, state }: Job, error: Error | null, seconds: number): Result {
  const count = output.resumePoint.lines + state.count
  const summary = `${countEntities(state.count)} in ${formatDuration(seconds)}${name === undefined ? '' : `, ${error ? output.partName : name}`}`
  const option = name === undefined ? `--after-id ${state.after}` : '--resume'
  const message = error && errorMessage(error)
  const canResume = state.count > 0 || output.resumePoint.lines > 0
  const messages = error
    ? [errorMessage(error), ...(canResume ? [`${summary}. To continue, run the command again with ${option}.`] : [])]
    : [summary]
  const file = error ? null : name
  if (error) process.exitCode = 1
  return { value: { count, file, after_id: state.after ?? null, error: message }, messages }
}
