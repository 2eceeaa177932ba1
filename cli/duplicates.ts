import { InvalidArgumentError } from 'commander'
import type { DuplicateGroup, DuplicatesBody } from '../client/index.ts'
import { givenOf, wholeNumber } from './command.ts'
import { newPlainCommand } from './kith-command.ts'
import { firstOf, formatOf, isJson, printRows } from './print-rows.ts'
import { printStderr } from './terminal.ts'

type SharedKey = NonNullable<DuplicatesBody['by']>[number]

const sharedKeys: readonly string[] = ['email', 'mobile', 'name'] satisfies SharedKey[]
/** The maximum number of groups on a page. */
const maxGroups = 100

export const duplicatesCommand = (environment: NodeJS.ProcessEnv) =>
  newPlainCommand(
    environment,
    'duplicates',
    'Lists groups of people who share an email, a phone number, or name and date of birth, and so may be one person. A table and CSV have ' +
      'a row for each person, JSON has one for each group. Nothing is changed.',
  )
    .examples('duplicates', 'duplicates --by email,mobile --limit 50', 'duplicates --format ndjson > duplicates.ndjson')
    .option('--by <keys>', 'The keys that they share: email, mobile or name, separated by commas. Default: all.', {
      parse: parseKeys,
    })
    .option('--limit <count>', 'The most groups to list. Default: all.', { parse: wholeNumber() })
    .format()
    .atService('people:read', async (client, options) => {
      const { limit = Number.POSITIVE_INFINITY } = options
      const format = formatOf(options)
      let count = 0
      async function* readRows() {
        const list = (size: number) => client.people.duplicates({ size, ...givenOf(options, 'by') })
        for await (const group of firstOf(limit, maxGroups, list)) {
          count += 1
          yield* isJson(format) ? [group] : personRows(group, count)
        }
      }
      await printRows(options, columns, readRows())
      if (format === 'table') printStderr(count === 1 ? '1 group' : `${count} groups`)
    })

function parseKeys(text: string): SharedKey[] {
  const keys = text.split(',').map(key => key.trim())
  if (!keys.every(key => sharedKeys.includes(key))) throw new InvalidArgumentError('Give email, mobile or name.')
  return keys as SharedKey[]
}

const columns = 'group score size shared external_id name email mobile date_of_birth created_at'.split(' ')

/** One row for each person of a group that the service returns. `size` counts all people of the group. */
const personRows = ({ people, size, score, why }: DuplicateGroup, group: number) =>
  people.map(person => ({
    ...person,
    ...{ group, score, size, shared: why.map(({ by, value }) => `${by} ${value}`).join(', ') },
    external_id: person.external_id ?? person.id,
    name: [person.first_name, person.last_name].filter(Boolean).join(' '),
    mobile: [person.mobile_prefix, person.mobile_number].filter(Boolean).join(' '),
  }))
