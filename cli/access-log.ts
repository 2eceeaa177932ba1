import { type Command, Option } from 'commander'
import type { AccessLogOptions } from '../client/index.ts'
import { newPlainCommand, wholeNumber } from './command.ts'
import { addConnectionOptions, type ConnectionOptions, connect } from './connection.ts'
import { addFormatOption, type FormatOption, formatOf, printRows } from './print-rows.ts'

type Options = ConnectionOptions &
  FormatOption &
  Pick<AccessLogOptions, 'entity' | 'kind' | 'from' | 'to'> & { of?: string; limit?: number }

export function accessLogCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Prints the access log, newest first: who read or wrote which people and records, and security events.'
  const command = newPlainCommand('access-log', description, [
    'access-log --entity 01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f',
    'access-log --kind security --from 2026-01-01T00:00:00Z --format csv',
  ])
    .option('--entity <id>', 'Only entries that list this person (id) or record (record_id).')
    .option('--of <subject>', 'Only entries of this subject.')
    .addOption(new Option('--kind <kind>', 'Only entries of this kind.').choices(['access', 'security']))
    .option('--from <time>', 'Only entries at or after this time, RFC 3339.')
    .option('--to <time>', 'Only entries at or before this time, RFC 3339.')
    .option('--limit <entries>', 'At most so many entries.', wholeNumber(1))
  return addConnectionOptions(addFormatOption(command)).action(async (options: Options) => {
    const { entity, of: subject, kind, from, to, limit } = options
    const { client } = await connect(environment, options, { scope: 'access:read' })
    const given = Object.entries({ entity, subject, kind, from, to }).filter(([, value]) => value !== undefined)
    const entries = client.access.log({ ...Object.fromEntries(given), size: Math.min(limit ?? maxPage, maxPage) })
    await printRows(formatOf(options), columns, limit === undefined ? entries : firstOf(entries, limit))
  })
}

const maxPage = 500

const columns = [
  ...['at', 'kind', 'event', 'subject', 'role', 'method', 'route', 'status', 'owner', 'count'],
  { name: 'ids', textOf: (ids: unknown) => (ids as string[]).slice(0, 3).join(' ') },
  ...['target', 'ip', 'request_id'],
]

async function* firstOf<T>(items: AsyncIterable<T>, limit: number): AsyncGenerator<T> {
  let left = limit
  for await (const item of items) {
    yield item
    left -= 1
    if (left === 0) return
  }
}
