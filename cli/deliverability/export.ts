import type { DeliveryEventPage } from '../../client/index.ts'
import { UsageError } from '../command.ts'
import { connect } from '../connection.ts'
import { openOutput } from '../export/output.ts'
import { pathOf } from '../files.ts'
import type { PlainCommand } from '../kith-command.ts'
import { formatCount } from '../progress.ts'

/** Adds the command that exports the events of all addresses. */
export function addExport(deliverability: PlainCommand): void {
  const { environment } = deliverability
  deliverability
    .add(
      'export',
      'Writes the events of all addresses as JSON lines, which kith deliverability import reads in another installation: beside an export ' +
        'of people, it decides about each address in the same way.',
    )
    .examples('deliverability export --output deliverability.ndjson')
    .option('--output <file>', 'The file to write; .gz compresses it. Default: standard output.')
    .option('--force', 'Overwrite an existing file.')
    .connection()
    .action(async options => {
      const { output: name, force = false } = options
      if (name === undefined && options.json) throw new UsageError('--json needs a file. Name it with --output.')
      const client = await connect(environment, options, { scope: 'people:read' })
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
      return { value: { count, file }, messages: [`${formatCount(count)} events${file ? `, ${file}` : ''}`] }
    })
}
