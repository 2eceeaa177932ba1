import type { Command } from 'commander'
import type { DeliveryEventPage } from '../../client/index.ts'
import { newCommand, printResult, UsageError } from '../command.ts'
import { addConnectionOptions, type ConnectionOptions, connect } from '../connection.ts'
import { openOutput } from '../export/output.ts'
import { pathOf } from '../files.ts'
import { formatCount } from '../progress.ts'

type Options = ConnectionOptions & { output?: string; force?: true; json?: true }

export function exportEventsCommand(environment: NodeJS.ProcessEnv): Command {
  const command = newCommand(
    'export',
    'Writes the events of all addresses as JSON lines, which kith deliverability import reads in another installation: beside an export ' +
      'of people, it decides about each address in the same way.',
    ['deliverability export --output deliverability.ndjson'],
  )
    .option('--output <file>', 'The file to write; .gz compresses it. Default: standard output.')
    .option('--force', 'Overwrite an existing file.')
  return addConnectionOptions(command).action((options: Options) => run(environment, options))
}

async function run(environment: NodeJS.ProcessEnv, options: Options) {
  const { output: name, force = false } = options
  if (name === undefined && options.json) throw new UsageError('--json needs a file. Name it with --output.')
  const { client } = await connect(environment, options, { scope: 'people:read' })
  const output = await openOutput({
    ...{ name, path: pathOf(environment, name ?? ''), format: 'ndjson', compressed: /\.gz$/i.test(name ?? '') },
    ...{ identifier: 'address', form: { words: 'deliverability', columns: '' }, resume: false, force },
  })
  let count = 0
  try {
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page: DeliveryEventPage = await client.deliverability.events(cursor === '' ? {} : { cursor })
      await output.write(page.items.map(event => `${JSON.stringify(event)}\n`).join(''))
      count += page.items.length
      cursor = page.next_cursor
    }
    await output.complete()
  } catch (error) {
    await output.leave().catch(() => {})
    throw error
  }
  const file = name ?? null
  printResult(options, { value: { count, file }, messages: [`${formatCount(count)} events${file ? `, ${file}` : ''}`] })
}
