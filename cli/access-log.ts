import { type Command, Option } from 'commander'
import type { AccessLogOptions } from '../client/index.ts'
import { givenOf, newPlainCommand, wholeNumber } from './command.ts'
import { firstOf, listAtService } from './service-commands.ts'

type Options = Pick<AccessLogOptions, 'entity' | 'kind' | 'from' | 'to'> & { of?: string; limit?: number }

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
  return listAtService(environment, command, 'access:read', columns, ({ access }, options: Options) => {
    const { of: subject, limit = Number.POSITIVE_INFINITY } = options
    const filter = { ...givenOf(options, 'entity', 'kind', 'from', 'to'), ...(subject !== undefined && { subject }) }
    return firstOf(limit, maxPage, size => access.log({ ...filter, size }))
  })
}

const maxPage = 500

const columns = [
  ...['at', 'kind', 'event', 'subject', 'role', 'method', 'route', 'status', 'owner', 'count'],
  { name: 'ids', textOf: (ids: unknown) => (ids as string[]).slice(0, 3).join(' ') },
  ...['target', 'ip', 'request_id'],
]
