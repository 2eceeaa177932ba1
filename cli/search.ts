import { newPlainCommand } from './kith-command.ts'
import { formatOf, isJson, printRows, type Row } from './print-rows.ts'
import { entityColumns } from './questions/columns.ts'
import { defaultLimit, LimitedRows, limitOption } from './questions/list-options.ts'
import { printStderr } from './terminal.ts'

/** The maximum number of hits on a page. */
const maxHits = 100

export const searchCommand = (environment: NodeJS.ProcessEnv) =>
  newPlainCommand(
    environment,
    'search',
    'Finds people, and records of stacks, in one list, and says where it looked. The best match comes first. Words may be misspelt, and four ' +
      'digits are the last ones of a phone. Records are found by their external identifier, and by the attributes that are declared searchable.',
  )
    .examples('search "ada lovlace"', 'search order-17 --owner orders')
    .argument('<text>', 'The words to find.')
    .option(
      '--owner <key...>',
      'people or the key of a stack (repeatable). Default: all that the token may search, at most 10.',
    )
    .option(...limitOption)
    .format()
    .atService('people:read records:read', async (client, text, options) => {
      const { owner: owners = ['*'], limit = defaultLimit } = options
      const format = formatOf(options)
      const shown = new LimitedRows(limit)
      let searched: string[] = []
      const listing = client.search(text, { size: Math.min(limit, maxHits), owners })
      const rows = shown.read(listing.pages(), isJson(format) ? hit => hit : rowOf, ({ owners }) => {
        searched = owners
      })
      await printRows(options, entityColumns(columns, [], format), rows)
      if (!options.owner || format === 'table') printStderr(`Searched: ${searched.join(', ')}.`)
      shown.report({ one: 'hit', many: 'hits' }, options)
    })

const columns = ['owner', 'external_id', 'first_name', 'last_name', 'email', 'attribute_values', 'created_at']

/** A hit as a row. The names and the email identify a person. */
function rowOf({ owner, entity }: Row): Row {
  const { attribute_values, ...members } = entity as Row
  return { owner, ...members, ...(owner !== 'people' && { attribute_values }) }
}
