import { readFile } from 'node:fs/promises'
import type { Command } from 'commander'
import type { RoleBody } from '../client/index.ts'
import { scopes, splitScopes } from '../src/route/scopes.ts'
import { type JsonOption, newCommand, newPlainCommand, printResult, UsageError } from './command.ts'
import { addConnectionOptions, type ConnectionOptions, connect } from './connection.ts'
import { wordsColumn } from './print-rows.ts'
import { atService, listAtService } from './service-commands.ts'

type RoleOptions = ConnectionOptions &
  JsonOption & { scope?: string; fields?: string; name?: string; archive?: true; activate?: true }

export function roleCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Manages roles: what clients, tokens and sessions may do, and which fields they may read and write.'
  return newPlainCommand('role', description, [
    'role create desk --scope "people:read people:write" --fields desk.json',
    'role list',
    'role patch desk --archive',
  ]).addSubcommands(environment, [listCommand, showCommand, createCommand, patchCommand])
}

function listCommand(environment: NodeJS.ProcessEnv): Command {
  const command = newPlainCommand('list', 'Lists the roles.', ['role list', 'role list --format csv'])
  return listAtService(environment, command, 'access:read', columns, client => client.access.roles.list())
}

const columns = [
  ...['key', 'name', 'state'],
  wordsColumn('scopes'),
  { name: 'fields', textOf: (fields: unknown) => (fields ? Object.keys(fields).join(' ') : 'all') },
]

function showCommand(environment: NodeJS.ProcessEnv): Command {
  const command = newCommand('show', 'Shows a role with its fields.', ['role show desk']).argument('<key>', 'The role.')
  return atService(environment, command, 'access:read', async (client, key: string, options: JsonOption) => {
    const value = await client.access.roles.get(key)
    printResult(options, { value, lines: JSON.stringify(value, null, 2).split('\n') })
  })
}

const addRoleOptions = (command: Command) =>
  command
    .argument('<key>', 'The key of the role.')
    .option('--scope <scopes>', `The scopes, separated by spaces: ${scopes.join(' ')}.`)
    .option(
      '--fields <file>',
      'A file of JSON: {"people": {"read": ["first_name"], "write": []}}. null opens all fields.',
    )
    .option('--name <name>', 'A name for people to read.')

type Fields = NonNullable<RoleBody['fields']> | null

async function settingsOf({ scope, fields, name }: RoleOptions) {
  return {
    ...(scope !== undefined && { scopes: splitScopes(scope) as RoleBody['scopes'] }),
    ...(fields !== undefined && { fields: await readFields(fields) }),
    ...(name !== undefined && { name }),
  }
}

async function readFields(path: string): Promise<Fields> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`The file ${path} cannot be read (${error.code}).`)
  })
  try {
    return JSON.parse(text) as Fields
  } catch {
    throw new UsageError(`The file ${path} is not JSON.`)
  }
}

function createCommand(environment: NodeJS.ProcessEnv): Command {
  const command = newCommand('create', 'Creates a role.', ['role create desk --scope people:read --fields desk.json'])
  return addConnectionOptions(addRoleOptions(command)).action(async (key: string, options: RoleOptions) => {
    const { scopes, ...settings } = await settingsOf(options)
    if (!scopes) throw new UsageError('--scope is missing.')
    const { client } = await connect(environment, options, { scope: `access:write ${scopes.join(' ')}` })
    const value = await client.access.roles.create({ key, scopes, ...settings })
    printResult(options, { value, messages: [`Created the role ${key}. Give it with kith token --role ${key}.`] })
  })
}

function patchCommand(environment: NodeJS.ProcessEnv): Command {
  const command = addRoleOptions(newCommand('patch', 'Changes a role.', ['role patch desk --archive']))
    .option('--archive', 'Archives the role: whoever has it is refused.')
    .option('--activate', 'Makes an archived role active again.')
  return addConnectionOptions(command).action(async (key: string, options: RoleOptions) => {
    const state = options.archive ? 'archived' : options.activate ? 'active' : undefined
    const body = { ...(await settingsOf(options)), ...(state && ({ state } as const)) }
    const { client } = await connect(environment, options, {
      scope: ['access:write', ...(body.scopes ?? [])].join(' '),
    })
    const value = await client.access.roles.patch(key, body)
    printResult(options, { value, messages: [`Changed the role ${key}. It counts for the next request.`] })
  })
}
