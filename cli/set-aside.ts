import type { Command } from 'commander'
import { type JsonOption, newCommand, newPlainCommand, printResult } from './command.ts'
import { type FormatOption, formatOf, isJson, withNames } from './print-rows.ts'
import { atService, listAtService } from './service-commands.ts'

export function setAsideCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Sets people aside who look like one and are not: kith duplicates and the API leave their pairs out. It can be taken back.'
  return newPlainCommand('set-aside', description, [
    'set-aside add ada newsletter-17',
    'set-aside list',
  ]).addSubcommands(environment, [addCommand, listCommand, endCommand])
}

function addCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'Says that no two of these people are the same.'
  const command = newCommand('add', description, ['set-aside add ada newsletter-17'])
    .argument('<person...>', 'The external identifiers.')
    .option('--ids', 'They are internal identifiers.')
  type Options = JsonOption & { ids?: true }
  return atService(environment, command, 'people:write', async (client, people: string[], options: Options) => {
    const value = await client.people.setAside(options.ids ? { ids: people } : { external_ids: people })
    printResult(options, { value, messages: [`${people.join(', ')} are set aside (${value.id}).`] })
  })
}

function listCommand(environment: NodeJS.ProcessEnv): Command {
  const command = newPlainCommand('list', 'Lists who was set aside, the newest first.', ['set-aside list'])
  const columns = ['id', 'people', 'actor', 'at']
  return listAtService(environment, command, 'people:read', columns, async ({ people }, options: FormatOption) => {
    const listed = await people.setAsides({ size: 100 }).all()
    return isJson(formatOf(options)) ? listed : listed.map(withNames)
  })
}

function endCommand(environment: NodeJS.ProcessEnv): Command {
  const command = newCommand('end', 'Takes a set-aside back: its people may be found as duplicates again.', [
    'set-aside end 01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e60',
  ]).argument('<id>', 'The id of the set-aside, as set-aside list shows it.')
  return atService(environment, command, 'people:write', async (client, id: string, options: JsonOption) => {
    await client.people.takeBackSetAside(id)
    printResult(options, { value: { id }, messages: [`The set-aside ${id} is taken back.`] })
  })
}
