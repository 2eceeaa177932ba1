import { randomUUID } from 'node:crypto'
import type { Command } from 'commander'
import type { Account, AccountBody, AccountPatch, InvitedAccount } from '../client/index.ts'
import { createAccount, inviteAccount, listAccounts, removeAccount, updateAccount } from '../src/auth/accounts.ts'
import { contextOf } from '../src/db/context.ts'
import { type JsonOption, newCommand, newPlainCommand, printResult } from './command.ts'
import { addYesOption, confirm, type YesOption } from './confirm.ts'
import { addConnectionOptions, atServiceOrDatabase, type ConnectionOptions, localAddress } from './connection.ts'
import { addFormatOption, type FormatOption, printRows } from './print-rows.ts'
import { requireOrganization } from './session.ts'

type Options = ConnectionOptions & JsonOption

export function userCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Invites, lists, disables and removes the accounts of people who sign in to the console. Works on the database of this machine, or at ' +
    'a service.'
  const examples = ['user add "Ada Lovelace" --role support', 'user list']
  const parts = [addCommand, listCommand, inviteCommand, roleCommand, ...stateCommands, removeCommand]
  return newPlainCommand('user', description, examples).addSubcommands(environment, parts)
}

function addCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Makes an account, and prints the link of its invitation, once. The person who opens it sets a password. It works once, for three days.'
  const command = newCommand('add', description, ['user add "Ada Lovelace"', 'user add "Ada Lovelace" --role support'])
    .argument('<name>', 'The name for the sign-in, and the actor in the change log.')
    .option('--role <key>', 'The key of a role. Default: no role, which is all scopes of the console.')
  type AddOptions = Options & { role?: string }
  return addConnectionOptions(command).action(async (name: string, { role, ...options }: AddOptions) => {
    const invited = await withAccounts(environment, options, ({ create }) => create({ name, role: role ?? null }))
    printResult(options, { value: invited, lines: [invited.invitation_url] })
  })
}

function listCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'Lists the accounts, newest first, with their last sign-in.'
  const command = newPlainCommand('list', description, ['user list', 'user list --profile acme --format csv'])
  return addConnectionOptions(addFormatOption(command)).action(async (options: ConnectionOptions & FormatOption) => {
    const accounts = await withAccounts(environment, options, ({ list }) => list(), 'access:read')
    await printRows(options, columns, accounts)
  })
}

const columns = ['id', 'name', 'role', 'state', 'maker', 'created_at', 'last_sign_in_at', 'invitation_expires_at']

function inviteCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Makes a new invitation and prints its link, for one that was lost or has expired, and for a forgotten password.'
  const command = newCommand('invite', description, ['user invite "Ada Lovelace"']).argument('<name>', nameHelp)
  return addConnectionOptions(command).action(async (name: string, options: Options) => {
    const invited = await withAccounts(environment, options, async ({ invite, idOf }) => invite(await idOf(name)))
    printResult(options, { value: invited, lines: [invited.invitation_url] })
  })
}

function roleCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'Gives an account a role, or without a key all scopes of the console. Its sessions end.'
  const command = newCommand('role', description, ['user role "Ada Lovelace" support', 'user role "Ada Lovelace"'])
    .argument('<name>', nameHelp)
    .argument('[key]', 'The key of the role.')
  return addConnectionOptions(command).action((name: string, key: string | undefined, options: Options) =>
    change(environment, { name, options, change: { role: key ?? null }, done: 'Changed the role of' }),
  )
}

const states = [
  { word: 'disable', state: 'disabled', done: 'Disabled', description: 'Disables an account. Its sessions end.' },
  { word: 'enable', state: 'active', done: 'Enabled', description: 'Enables an account that was disabled.' },
] as const

const stateCommands = states.map(({ word, state, done, description }) => (environment: NodeJS.ProcessEnv): Command => {
  const command = newCommand(word, description, [`user ${word} "Ada Lovelace"`]).argument('<name>', nameHelp)
  return addConnectionOptions(command).action((name: string, options: Options) =>
    change(environment, { name, options, change: { state }, done }),
  )
})

function removeCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'Removes an account. Its sessions end, and its name is free for somebody else.'
  const command = newCommand('remove', description, ['user remove "Ada Lovelace" --yes']).argument('<name>', nameHelp)
  return addConnectionOptions(addYesOption(command)).action(async (name: string, options: Options & YesOption) => {
    await confirm(options, `Remove the account ${name}?`)
    await withAccounts<unknown>(environment, options, async ({ remove, idOf }) => remove(await idOf(name)))
    printResult(options, { value: { name }, messages: [`Removed the account ${name}.`] })
  })
}

const nameHelp = 'The name of the account, or its id, as shown by user list.'

type Change = { name: string; options: Options; change: AccountPatch; done: string }

async function change(environment: NodeJS.ProcessEnv, { name, options, change, done }: Change): Promise<void> {
  const account = await withAccounts(environment, options, async ({ update, idOf }) => update(await idOf(name), change))
  printResult(options, { value: account, messages: [`${done} the account ${name}.`] })
}

type Invited = { id: string; invitation_path: string }
type Linked<Made extends Invited> = Omit<Made, 'invitation_path'> & { invitation_url: string }

/** What the commands do with accounts, at a service or on the database. */
type Accounts = {
  list(): Promise<Account[]>
  /** The id of the account with this name or id. Throws if there is none. */
  idOf(name: string): Promise<string>
  create(body: AccountBody): Promise<Linked<InvitedAccount>>
  invite(id: string): Promise<Linked<InvitedAccount>>
  update(id: string, change: AccountPatch): Promise<Account>
  remove(id: string): Promise<unknown>
}

function withAccounts<Result>(
  environment: NodeJS.ProcessEnv,
  options: ConnectionOptions,
  work: (accounts: Accounts) => Promise<Result>,
  scope = 'access:write',
): Promise<Result> {
  return atServiceOrDatabase(environment, options, scope, {
    service: (client, url) => {
      const { accounts } = client.access
      const list = () => accounts.list().all()
      return work({
        ...{ list, idOf: idIn(list) },
        create: async body => withLink(await accounts.create(body), url),
        invite: async id => withLink(await accounts.invite(id), url),
        update: (id, change) => accounts.update(id, change),
        remove: id => accounts.remove(id),
      })
    },
    database: async ({ db, config }, organizationKey = 'default') => {
      const context = contextOf(db, (await requireOrganization(db, organizationKey)).id)
      const author = { actor: 'cli', request_id: randomUUID() }
      const address = config.publicUrl ?? localAddress(environment)
      const list = () => listAccounts(context)
      return work({
        ...{ list, idOf: idIn(list) },
        create: async body => withLink(await createAccount(context, author, { organizationKey, ...body }), address),
        invite: async id => withLink(await inviteAccount(context, { organizationKey, id }), address),
        update: (id, change) => updateAccount(context, author, { id, change }),
        remove: id => removeAccount(context, author, id),
      })
    },
  })
}

const idIn = (list: () => Promise<Account[]>) => async (name: string) => {
  const accounts = await list()
  const account = accounts.find(each => each.name === name) ?? accounts.find(each => each.id === name)
  if (!account) throw new Error(`There is no account ${JSON.stringify(name)}. See kith user list.`)
  return account.id
}

/** An account with its invitation as a URL. */
const withLink = <Made extends Invited>({ invitation_path, ...account }: Made, base: string): Linked<Made> => ({
  ...account,
  invitation_url: `${base.replace(/\/$/, '')}${invitation_path}`,
})
