import type { Command } from 'commander'
import { newCommand, newPlainCommand, printResult } from './command.ts'
import { addConnectionOptions, type ConnectionOptions, connect } from './connection.ts'
import { addFormatOption, type FormatOption, formatOf, printRows } from './print-rows.ts'

type Options = ConnectionOptions & { json?: true }

export function setAsideCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Sets people aside who look like one and are not: kith duplicates and the API leave their pairs out. It can be taken back.'
  return newPlainCommand('set-aside', description, ['set-aside add ada newsletter-17', 'set-aside list'])
    .addCommand(addCommand(environment))
    .addCommand(listCommand(environment))
    .addCommand(endCommand(environment))
}

function addCommand(environment: NodeJS.ProcessEnv): Command {
  const command = newCommand('add', 'Says that no two of these people are the same.', [
    'set-aside add ada newsletter-17',
  ])
    .argument('<person...>', 'The external identifiers.')
    .option('--ids', 'They are internal identifiers.')
  return addConnectionOptions(command).action(async (people: string[], options: Options & { ids?: true }) => {
    const { client } = await connect(environment, options, { scope: 'people:write' })
    const value = await client.people.setAside(options.ids ? { ids: people } : { external_ids: people })
    printResult(options, { value, messages: [`${people.join(', ')} are set aside (${value.id}).`] })
  })
}

function listCommand(environment: NodeJS.ProcessEnv): Command {
  const command = newPlainCommand('list', 'Lists who was set aside, the newest first.', ['set-aside list'])
  return addConnectionOptions(addFormatOption(command)).action(async (options: ConnectionOptions & FormatOption) => {
    const { client } = await connect(environment, options, { scope: 'people:read' })
    const format = formatOf(options)
    const listed = await client.people.setAsides({ size: 100 }).all()
    const rows = listed.map(({ people, ...rest }) => ({
      ...rest,
      people: people.map(({ id, external_id }) => external_id ?? id).join(' '),
    }))
    await printRows(format, ['id', 'people', 'actor', 'at'], format === 'json' || format === 'ndjson' ? listed : rows)
  })
}

function endCommand(environment: NodeJS.ProcessEnv): Command {
  const command = newCommand('end', 'Takes a set-aside back: its people may be found as duplicates again.', [
    'set-aside end 01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e60',
  ]).argument('<id>', 'The id of the set-aside, as set-aside list shows it.')
  return addConnectionOptions(command).action(async (id: string, options: Options) => {
    const { client } = await connect(environment, options, { scope: 'people:write' })
    await client.people.takeBackSetAside(id)
    printResult(options, { value: { id }, messages: [`The set-aside ${id} is taken back.`] })
  })
}
