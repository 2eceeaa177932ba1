import type { Command } from 'commander'
import { newCommand, newPlainCommand, printResult, wholeNumber } from './command.ts'
import { addConnectionOptions, type ConnectionOptions, connect } from './connection.ts'
import { exportEventsCommand } from './deliverability/export.ts'
import { importEventsCommand } from './deliverability/import.ts'
import { addFormatOption, type FormatOption, formatOf, printRows } from './print-rows.ts'

export function deliverabilityCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Lists the suppressed addresses of an organization, lifts suppressions, and imports and exports the events of addresses.'
  return newPlainCommand('deliverability', description, [
    'deliverability list --reason complaint',
    'deliverability lift email ada@example.com',
    'deliverability import suppressed.csv',
    'deliverability export --output deliverability.ndjson',
  ])
    .addCommand(listCommand(environment))
    .addCommand(liftCommand(environment))
    .addCommand(importEventsCommand(environment))
    .addCommand(exportEventsCommand(environment))
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
