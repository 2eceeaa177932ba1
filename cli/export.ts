import { setTimeout as pause } from 'node:timers/promises'
import { type Command, Option } from 'commander'
import type { Client, Person, StackRecord } from '../client/index.ts'
import { newCommand, printResult, UsageError } from './command.ts'
import { addConnectionOptions, type ConnectionOptions, connect } from './connection.ts'
import { errorMessage } from './error-message.ts'
import { csvShape } from './export/csv.ts'
import { type Output, openOutput } from './export/output.ts'
import { pathOf } from './files.ts'
import type { Format } from './import/input.ts'
import { formatCount, formatDuration, type ProgressLine, startProgress } from './progress.ts'
import { RetryPolicy } from './retry-policy.ts'
import { handleInterrupt, type Interrupt } from './signal-handling.ts'

type ExportOptions = ConnectionOptions & {
  format?: Format
  output?: string
  afterId?: string
  gzip?: true
  resume?: true
  force?: true
  listSeparator: string
  quiet?: true
  json?: true
}

type Entity = Person | StackRecord

export function exportCommand(environment: NodeJS.ProcessEnv): Command {
  const command = newCommand(
    'export',
    'Writes all people or all records of a stack, in order of their internal identifiers.',
    [
      'export people --output people.ndjson.gz',
      'export orders --output orders.csv --resume',
      'export people | jq .email',
    ],
  )
    .argument('<people|stack_key>', 'Either people or the key of a stack.')
    .option('--output <file>', 'The file to write. Default: standard output.')
  return addConnectionOptions(command)
    .addOption(
      new Option(
        '--format <format>',
        'The format. Default: as the file name says, else ndjson. csv quotes cells by RFC 4180, and escapes nothing else: a text that begins with =, +, - or @ ' +
          'is a formula for a spreadsheet. The export of the console can escape it.',
      ).choices(['ndjson', 'csv']),
    )
    .option('--gzip', 'Compress the output. Default for a file name that ends in .gz.')
    .option('--resume', 'Continue the file of an interrupted export. Without such a file, start from the beginning.')
    .option('--force', 'Overwrite an existing file.')
    .option('--after-id <id>', 'Start after the entity with this internal identifier.')
    .option('--list-separator <text>', 'CSV: The separator of the values of an attribute with many values.', '|')
    .option('--quiet', 'Show no progress.')
    .action((owner: string, options: ExportOptions) => run(environment, owner, options))
}

async function run(environment: NodeJS.ProcessEnv, owner: string, options: ExportOptions) {
  if (options.output === undefined && (options.resume || options.json))
    throw new UsageError(`${options.resume ? '--resume' : '--json'} needs a file. Name it with --output.`)
  const name = options.output
  const format = options.format ?? (/\.csv(?:\.gz)?$/i.test(name ?? '') ? 'csv' : 'ndjson')
  const compressed = options.gzip ?? /\.gz$/i.test(name ?? '')
  const identifier = owner === 'people' ? 'id' : 'record_id'
  const scope = `${owner === 'people' ? 'people:read' : 'records:read'}${format === 'csv' ? ' schema:read' : ''}`
  const { client } = await connect(environment, options, { scope })
  const shape = await shapeOf(client, owner, format, options.listSeparator)
  const target = { name, path: pathOf(environment, name ?? ''), format, compressed, identifier }
  const output = await openOutput({ ...target, resume: options.resume ?? false, force: options.force ?? false })
  const startedMs = performance.now()
  const state = { count: 0, after_id: output.resumePoint.after_id ?? options.afterId }
  const job = { client, owner, identifier, shape, output, state, name, options }
  const failure = await transfer(job)
  report(job, failure, (performance.now() - startedMs) / 1_000)
}

type Shape = { header: string; rowsOf: (entities: Entity[]) => string }

async function shapeOf(client: Client, owner: string, format: Format, listSeparator: string): Promise<Shape> {
  if (format === 'csv') return csvShape(owner, await client.schema.get(), listSeparator)
  return { header: '', rowsOf: entities => entities.map(entity => `${JSON.stringify(entity)}\n`).join('') }
}

type Job = {
  client: Client
  owner: string
  identifier: string
  shape: Shape
  output: Output
  state: { count: number; after_id: string | undefined }
  name: string | undefined
  options: ExportOptions
}

/** Copies all entities. Returns the error that ended the export early, or null if it is complete. */
async function transfer(job: Job): Promise<Error | null> {
  const { output, shape, state, options } = job
  const total = createTotal(job)
  const progressLine = startProgress('entities', () => ({ count: state.count, fraction: total.fraction() }), options)
  const interrupt = handleInterrupt(() => {})
  try {
    if (output.resumePoint.bytes === 0) await output.write(shape.header)
    else
      progressLine.print(
        `Resuming after ${formatCount(output.resumePoint.lines)} entities; later entities have the state of a later moment.`,
      )
    await copyAll(job, interrupt, progressLine)
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
 * The fraction of an export that is done. The number of all entities is asked for when progress is first shown, because most exports end
 * before. The fraction is unknown until then, after a refusal, and with `--after-id`.
 */
function createTotal({ client, owner, output, state, options }: Job) {
  const counting = new AbortController()
  let total: number | null | undefined = options.afterId === undefined ? undefined : null
  return {
    fraction() {
      if (total === undefined) {
        total = null
        const entities = owner === 'people' ? client.people : client.stack(owner)
        const counted = entities.count({}, { signal: counting.signal })
        counted.then(({ count }) => (total = count)).catch(() => {})
      }
      return total === null ? null : Math.min(1, state.count / Math.max(1, total - output.resumePoint.lines))
    },
    end: () => counting.abort(),
  }
}

/** Exports to the end. After a broken connection it continues after the last entity that was written. */
async function copyAll(job: Job, interrupt: Interrupt, progressLine: ProgressLine): Promise<void> {
  const { client, owner, state } = job
  const entities = owner === 'people' ? client.people : client.stack(owner)
  const retryPolicy = new RetryPolicy()
  while (!interrupt.isRequested) {
    const countBefore = state.count
    try {
      const { after_id } = state
      const stream = entities.export({ ...(after_id !== undefined && { after_id }), signal: interrupt.signal })
      return await copyOnce(job, stream as AsyncIterable<Entity>, interrupt)
    } catch (error) {
      if (state.count > countBefore) retryPolicy.reset()
      const pauseMs = interrupt.signal.aborted ? null : retryPolicy.delayAfter(error, state.count > 0)
      if (pauseMs === null) throw error
      const retry = `Resuming after ${formatCount(state.count)} entities in ${(pauseMs / 1_000).toFixed(1)} s`
      progressLine.print(`${errorMessage(error)} ${retry}; later entities have the state of a later moment.`)
      await Promise.race([pause(pauseMs), interrupt.whenRequested])
    }
  }
}

async function copyOnce(job: Job, entities: AsyncIterable<Entity>, interrupt: Interrupt): Promise<void> {
  const { output, shape, state, identifier } = job
  let batch: Entity[] = []
  const flush = async () => {
    const last = batch.at(-1) as Record<string, unknown> | undefined
    if (!last) return
    await output.write(shape.rowsOf(batch))
    state.count += batch.length
    state.after_id = String(last[identifier])
    batch = []
  }
  try {
    for await (const entity of entities) {
      if (batch.push(entity) >= batchSize) await flush()
      if (interrupt.isRequested) break
    }
  } finally {
    await flush()
  }
}

/** The number of entities that are written together. */
const batchSize = 500

function report({ name, output, state, options }: Job, error: Error | null, seconds: number) {
  const count = output.resumePoint.lines + state.count
  const summary = `${formatCount(state.count)} entities in ${formatDuration(seconds)}${name === undefined ? '' : `, ${error ? output.partName : name}`}`
  const option = name === undefined ? `--after-id ${state.after_id}` : '--resume'
  const message = error && errorMessage(error)
  const canResume = state.count > 0 || output.resumePoint.lines > 0
  const messages = error
    ? [errorMessage(error), ...(canResume ? [`${summary}. To continue, run the command again with ${option}.`] : [])]
    : [summary]
  const file = error ? null : name
  printResult(options, { value: { count, file, after_id: state.after_id ?? null, error: message }, messages })
  if (error) process.exitCode = 1
}
