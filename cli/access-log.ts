import { givenOf, wholeNumber } from './command.ts'
import { newListCommand } from './kith-command.ts'
import { firstOf } from './print-rows.ts'

export const accessLogCommand = (environment: NodeJS.ProcessEnv) =>
  newListCommand(
    environment,
    columns,
    'access-log',
    'Prints the access log, newest first: who read or wrote which people and records, and security events.',
  )
    .examples(
      'access-log --entity 01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f',
      'access-log --kind security --from 2026-01-01T00:00:00Z --format csv',
    )
    .option('--entity <id>', 'Only entries that list this person (id) or record (record_id).')
    .option('--of <subject>', 'Only entries of this subject.')
    .option('--kind <kind>', 'Only entries of this kind.', { choices: ['access', 'security'] })
    .option('--from <time>', 'Only entries at or after this time, RFC 3339.')
    .option('--to <time>', 'Only entries at or before this time, RFC 3339.')
    .option('--limit <entries>', 'At most so many entries.', { parse: wholeNumber(1) })
    .atService('access:read', ({ access }, options) => {
      const { of: subject, limit = Number.POSITIVE_INFINITY } = options
      const filter = { ...givenOf(options, 'entity', 'kind', 'from', 'to'), ...(subject !== undefined && { subject }) }
      return firstOf(limit, maxPage, size => access.log({ ...filter, size }))
    })

const maxPage = 500

const columns = [
  ...['at', 'kind', 'event', 'subject', 'role', 'method', 'route', 'status', 'owner', 'count'],
  { name: 'ids', textOf: (ids: unknown) => (ids as string[]).slice(0, 3).join(' ') },
  ...['target', 'ip', 'request_id'],
]
