import type { SuppressionListOptions } from '../client/index.ts'
import { givenOf, wholeNumber } from './command.ts'
import { addExport } from './deliverability/export.ts'
import { addImport } from './deliverability/import.ts'
import { newPlainCommand } from './kith-command.ts'

const columns = ['channel', 'address', 'reason', 'from', 'until', 'provider']
const pageSize = 500

export function deliverabilityCommand(environment: NodeJS.ProcessEnv) {
  const deliverability = newPlainCommand(
    environment,
    'deliverability',
    'Lists the suppressed addresses of an organization, lifts suppressions, and imports and exports the events of addresses.',
  ).examples(
    'deliverability list --reason complaint',
    'deliverability lift email ada@example.com',
    'deliverability import suppressed.csv',
    'deliverability export --output deliverability.ndjson',
  )
  deliverability
    .addList(columns, 'list', 'Lists the suppressed addresses, the latest first.')
    .examples('deliverability list --search example.com')
    .option('--channel <channel>', 'Only this channel.')
    .option('--reason <reason>', 'Only this reason: hard_bounce, soft_bounce or complaint.')
    .option('--search <text>', 'Only addresses with this part.')
    .option('--limit <count>', 'The most addresses to list.', { parse: wholeNumber(), default: 1_000 })
    .atService('people:read', async function* (client, { limit, ...options }) {
      const filter = givenOf(options, 'channel', 'reason', 'search') as SuppressionListOptions
      let cursor: string | null | undefined
      for (let left = limit; left > 0 && cursor !== null; ) {
        const page = { limit: Math.min(left, pageSize), ...(cursor && { cursor }) }
        const { items, next_cursor } = await client.deliverability.suppressed({ ...filter, ...page })
        for (const { channel, address, suppression } of items) yield { channel, address, ...suppression }
        left -= items.length
        cursor = next_cursor
      }
    })
  deliverability
    .add('lift', 'Lifts the suppression of an address: the events until now no longer count.')
    .examples('deliverability lift email ada@example.com')
    .argument('<channel>', 'The channel: email or sms.')
    .argument('<address>', 'The address.')
    .atService('people:write', async (client, channel, address) => {
      await client.deliverability.lift(channel, address)
      return { value: { channel, address }, lines: [`The address ${address} is no longer suppressed.`] }
    })
  addImport(deliverability)
  addExport(deliverability)
  return deliverability
}
