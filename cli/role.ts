import type { RoleBody } from '../client/index.ts'
import { scopes, splitScopes } from '../src/route/scopes.ts'
import { UsageError } from './command.ts'
import { connect } from './connection.ts'
import { readInput } from './files.ts'
import { newPlainCommand, type OptionsOf, type PlainCommand } from './kith-command.ts'
import { wordsColumn } from './print-rows.ts'

export function roleCommand(environment: NodeJS.ProcessEnv) {
  const roles = newPlainCommand(
    environment,
    'role',
    'Manages roles: what clients, tokens and sessions may do, and which fields they may read and write.',
  ).examples(
    'role create desk --scope "people:read people:write" --fields desk.json',
    'role list',
    'role patch desk --archive',
  )
  roles
    .addList(columns, 'list', 'Lists the roles.')
    .examples('role list', 'role list --format csv')
    .atService('access:read', client => client.access.roles.list())
  roles
    .add('show', 'Shows a role with its fields.')
    .examples('role show desk')
    .argument('<key>', 'The role.')
    .atService('access:read', async (client, key) => {
      const value = await client.access.roles.get(key)
      return { value, lines: JSON.stringify(value, null, 2).split('\n') }
    })
  roles
    .add('create', 'Creates a role.')
    .examples('role create desk --scope people:read --fields desk.json')
    .argument(...keyArgument)
    .with(addRoleOptions)
    .connection()
    .action(async (key, options) => {
      const { scopes, ...settings } = await settingsOf(environment, options)
      if (!scopes) throw new UsageError('--scope is missing.')
      const client = await connect(environment, options, { scope: `access:write ${scopes.join(' ')}` })
      const value = await client.access.roles.create({ key, scopes, ...settings })
      return { value, messages: [`Created the role ${key}. Give it with kith token --role ${key}.`] }
    })
  roles
    .add('patch', 'Changes a role.')
    .examples('role patch desk --archive')
    .argument(...keyArgument)
    .with(addRoleOptions)
    .option('--archive', 'Archives the role: whoever has it is refused.')
    .option('--activate', 'Makes an archived role active again.')
    .connection()
    .action(async (key, options) => {
      const state = options.archive ? 'archived' : options.activate ? 'active' : undefined
      const body = { ...(await settingsOf(environment, options)), ...(state && ({ state } as const)) }
      const scope = ['access:write', ...(body.scopes ?? [])].join(' ')
      const client = await connect(environment, options, { scope })
      const value = await client.access.roles.patch(key, body)
      return { value, messages: [`Changed the role ${key}. It counts for the next request.`] }
    })
  return roles
}

const columns = [
  ...['key', 'name', 'state'],
  wordsColumn('scopes'),
  { name: 'fields', textOf: (fields: unknown) => (fields ? Object.keys(fields).join(' ') : 'all') },
]

const keyArgument = ['<key>', 'The key of the role.'] as const

const addRoleOptions = (command: PlainCommand) =>
  command
    .option('--scope <scopes>', `The scopes, separated by spaces: ${scopes.join(' ')}.`)
    .option(
      '--fields <file>',
      'A file of JSON: {"people": {"read": ["first_name"], "write": []}}. null opens all fields.',
    )
    .option('--name <name>', 'A name for people to read.')

async function settingsOf(environment: NodeJS.ProcessEnv, { scope, fields, name }: OptionsOf<typeof addRoleOptions>) {
  return {
    ...(scope !== undefined && { scopes: splitScopes(scope) as RoleBody['scopes'] }),
    ...(fields !== undefined && { fields: await readFields(environment, fields) }),
    ...(name !== undefined && { name }),
  }
}

async function readFields(
  environment: NodeJS.ProcessEnv,
  path: string,
): Promise<NonNullable<RoleBody['fields']> | null> {
  const text = await readInput(environment, path)
  try {
    return JSON.parse(text.toString())
  } catch {
    throw new UsageError(`The file ${path} is not JSON.`)
  }
}
