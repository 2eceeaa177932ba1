import type { Command } from 'commander'
import type { Client } from '../client/index.ts'
import { type JsonOption, newCommand, newPlainCommand, printResult, wholeNumber } from './command.ts'
import { exportEventsCommand } from './deliverability/export.ts'
import { importEventsCommand } from './deliverability/import.ts'
import { addFormatOption, type FormatOption, printRows } from './print-rows.ts'
import { atService } from './service-commands.ts'

export function deliverabilityCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Lists the suppressed addresses of an organization, lifts suppressions, and imports and exports the events of addresses.'
  return newPlainCommand('deliverability', description, [
    'deliverability list --reason complaint',
    'deliverability lift email ada@example.com',
    'deliverability import suppressed.csv',
    'deliverability export --output deliverability.ndjson',
  ]).addSubcommands(environment, [listCommand, liftCommand, importEventsCommand, exportEventsCommand])
}

const columns = ['channel', 'address', 'reason', 'from', 'until', 'provider']
const pageSize = 500

function listCommand(environment: NodeJS.ProcessEnv): Command {
  type Filter = { channel?: 'email' | 'sms'; reason?: 'hard_bounce' | 'soft_bounce' | 'complaint'; search?: string }
  type Options = FormatOption & Filter & { limit: number }
  const command = newPlainCommand('list', 'Lists the suppressed addresses, the latest first.', [
    'deliverability list --search example.com',
  ])
    .option('--channel <channel>', 'Only this channel.')
    .option('--reason <reason>', 'Only this reason: hard_bounce, soft_bounce or complaint.')
    .option('--search <text>', 'Only addresses with this part.')
    .option('--limit <count>', 'The most addresses to list.', wholeNumber(), 1_000)
  return atService(environment, addFormatOption(command), 'people:read', async (client, options: Options) => {
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
    await printRows(options, columns, rows())
  })
}

function liftCommand(environment: NodeJS.ProcessEnv): Command {
  const command = newCommand('lift', 'Lifts the suppression of an address: the events until now no longer count.', [
    'deliverability lift email ada@example.com',
  ])
    .argument('<channel>', 'The channel: email or sms.')
    .argument('<address>', 'The address.')
  const lift = async (client: Client, channel: string, address: string, options: JsonOption) => {
    await client.deliverability.lift(channel, address)
    printResult(options, { value: { channel, address }, lines: [`The address ${address} is no longer suppressed.`] })
  }
  return atService(environment, command, 'people:write', lift)
}
