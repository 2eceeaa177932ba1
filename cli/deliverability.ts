import type { Command } from 'commander'
import type { DeliveryEvent } from '../client/index.ts'
import { newCommand, newPlainCommand, printResult, UsageError, wholeNumber } from './command.ts'
import { addConnectionOptions, type ConnectionOptions, connect } from './connection.ts'
import { readInput } from './files.ts'
import { addFormatOption, type FormatOption, formatOf, printRows } from './print-rows.ts'
import { formatCount } from './progress.ts'

export function deliverabilityCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Lists the suppressed addresses of an organization, lifts suppressions, and records events of addresses.'
  return newPlainCommand('deliverability', description, [
    'deliverability list --reason complaint',
    'deliverability lift email ada@example.com',
    'deliverability record events.ndjson',
  ])
    .addCommand(listCommand(environment))
    .addCommand(liftCommand(environment))
    .addCommand(recordCommand(environment))
}

const columns = ['channel', 'address', 'reason', 'from', 'until', 'provider']
const pageSize = 500

function listCommand(environment: NodeJS.ProcessEnv): Command {
  type Filter = { channel?: 'email' | 'sms'; reason?: 'hard_bounce' | 'soft_bounce' | 'complaint'; search?: string }
  type Options = ConnectionOptions & FormatOption & Filter & { limit: number }
  const command = newPlainCommand('list', 'Lists the suppressed addresses, the latest first.', [
    'deliverability list --search example.com',
  ])
    .option('--channel <channel>', 'Only this channel.')
    .option('--reason <reason>', 'Only this reason: hard_bounce, soft_bounce or complaint.')
    .option('--search <text>', 'Only addresses with this part.')
    .option('--limit <count>', 'The most addresses to list.', wholeNumber(), 1_000)
  return addConnectionOptions(addFormatOption(command)).action(async (options: Options) => {
    const { client } = await connect(environment, options, { scope: 'people:read' })
    const { channel, reason, search } = options
    async function* rows() {
      let cursor: string | null | undefined
      for (let left = options.limit; left > 0 && cursor !== null; ) {
        const filter = { ...(channel && { channel }), ...(reason && { reason }), ...(search && { search }) }
        const page = { limit: Math.min(left, pageSize), ...(cursor && { cursor }) }
        const { items, next_cursor } = await client.deliverability.suppressed({ ...filter, ...page })
        for (const { channel, address, suppression } of items) yield { channel, address, ...suppression }
        left -= items.length
        cursor = next_cursor
      }
    }
    await printRows(formatOf(options), columns, rows())
  })
}

function liftCommand(environment: NodeJS.ProcessEnv): Command {
  type Options = ConnectionOptions & { json?: boolean }
  const command = newCommand('lift', 'Lifts the suppression of an address: the events until now no longer count.', [
    'deliverability lift email ada@example.com',
  ])
    .argument('<channel>', 'The channel: email or sms.')
    .argument('<address>', 'The address.')
  return addConnectionOptions(command).action(async (channel: string, address: string, options: Options) => {
    const { client } = await connect(environment, options, { scope: 'people:write' })
    await client.deliverability.lift(channel, address)
    printResult(options, { value: { channel, address }, lines: [`The address ${address} is no longer suppressed.`] })
  })
}

const eventsPerRequest = 1_000

function recordCommand(environment: NodeJS.ProcessEnv): Command {
  type Options = ConnectionOptions & { json?: boolean }
  const description =
    'Records events from a file of JSON lines, each with channel, address or external_id, type, and best at. Also of addresses that no person has, such as ' +
    'the suppression list of another tool.'
  const command = newCommand('record', description, ['deliverability record events.ndjson']).argument(
    '<file>',
    'The file, or - for standard input.',
  )
  return addConnectionOptions(command).action(async (file: string, options: Options) => {
    const { client } = await connect(environment, options, { scope: 'people:write' })
    const events = (await readInput(environment, file))
      .toString()
      .split('\n')
      .flatMap((line, index) => (line.trim() === '' ? [] : [parse(line, index + 1)]))
    const counts: Record<string, number> = {}
    for (let first = 0; first < events.length; first += eventsPerRequest) {
      const { items } = await client.deliverability.record(events.slice(first, first + eventsPerRequest))
      for (const { status } of items) counts[status] = (counts[status] ?? 0) + 1
    }
    const lines = Object.entries(counts).map(
      ([status, count]) => `${formatCount(count)} ${status.replaceAll('_', ' ')}`,
    )
    printResult(options, { value: counts, lines })
  })
}

function parse(line: string, number: number): DeliveryEvent {
  try {
    return JSON.parse(line) as DeliveryEvent
  } catch {
    throw new UsageError(`Line ${number} is not JSON.`)
  }
}
