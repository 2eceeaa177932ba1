import { randomUUID } from 'node:crypto'
import type { Command } from 'commander'
import type { Account, Client } from '../client/index.ts'
import { createAccount, inviteAccount, listAccounts, removeAccount, updateAccount } from '../src/auth/accounts.ts'
import type { AccountPatch } from '../src/auth/schema.ts'
import { type Context, contextOf } from '../src/db/context.ts'
import { newCommand, newPlainCommand, printResult } from './command.ts'
import { addYesOption, confirm, type YesOption } from './confirm.ts'
import { addConnectionOptions, atServiceOrDatabase, type ConnectionOptions, localAddress } from './connection.ts'
import { addFormatOption, type FormatOption, printRows } from './print-rows.ts'
import { requireOrganization, type Session } from './session.ts'

type Options = ConnectionOptions & { json?: boolean }

export function userCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Invites, lists, disables and removes the accounts of people who sign in to the console. Works on the database of this machine, or at ' +
    'a service.'
  const command = newPlainCommand('user', description, ['user add "Ada Lovelace" --role support', 'user list'])
  const parts = [addCommand, listCommand, inviteCommand, roleCommand, ...stateCommands, removeCommand]
  for (const part of parts) command.addCommand(part(environment))
  return command
}

function addCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Makes an account, and prints the link of its invitation, once. The person who opens it sets a password. It works once, for three days.'
  const command = newCommand('add', description, ['user add "Ada Lovelace"', 'user add "Ada Lovelace" --role support'])
    .argument('<name>', 'The name for the sign-in, and the actor in the change log.')
    .option('--role <key>', 'The key of a role. Default: no role, which is all scopes of the console.')
  return addConnectionOptions(command).action(
    async (name: string, { role, ...options }: Options & { role?: string }) => {
      const body = { name, role: role ?? null }
      const { json, ...connection } = options
      const invited = await atServiceOrDatabase(environment, connection, 'access:write', {
        service: async (client, url) => withLink(await client.access.accounts.create(body), url),
        database: onDatabase(environment, async ({ context, author, organizationKey, address }) =>
          withLink(await createAccount(context, author, { organizationKey, ...body }), address),
        ),
      })
      printResult({ json }, { value: invited, lines: [invited.invitation_url] })
    },
  )
}

function listCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'Lists the accounts, newest first, with their last sign-in.'
  const command = newPlainCommand('list', description, ['user list', 'user list --profile acme --format csv'])
  return addConnectionOptions(addFormatOption(command)).action(async (options: ConnectionOptions & FormatOption) => {
    const accounts = await atServiceOrDatabase(environment, options, 'access:read', {
      service: listOfService,
      database: onDatabase(environment, ({ context }) => listAccounts(context)),
    })
    await printRows(options, columns, accounts)
  })
}

const columns = ['id', 'name', 'role', 'state', 'maker', 'created_at', 'last_sign_in_at', 'invitation_expires_at']

function inviteCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Makes a new invitation and prints its link, for one that was lost or has expired, and for a forgotten password.'
  const command = newCommand('invite', description, ['user invite "Ada Lovelace"']).argument('<name>', nameHelp)
  return addConnectionOptions(command).action(async (name: string, { json, ...options }: Options) => {
    const invited = await atServiceOrDatabase(environment, options, 'access:write', {
      service: async (client, url) =>
        withLink(await client.access.accounts.invite(await idOf(name, listOfService(client))), url),
      database: onDatabase(environment, async ({ context, organizationKey, address }) => {
        const id = await idOf(name, listAccounts(context))
        return withLink(await inviteAccount(context, { organizationKey, id }), address)
      }),
    })
    printResult({ json }, { value: invited, lines: [invited.invitation_url] })
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
    await atServiceOrDatabase<unknown>(environment, options, 'access:write', {
      service: async client => client.access.accounts.remove(await idOf(name, listOfService(client))),
      database: onDatabase(environment, async ({ context, author }) =>
        removeAccount(context, author, await idOf(name, listAccounts(context))),
      ),
    })
    printResult(options, { value: { name }, messages: [`Removed the account ${name}.`] })
  })
}

const nameHelp = 'The name of the account, or its id, as shown by user list.'

type Change = { name: string; options: Options; change: AccountPatch; done: string }

async function change(environment: NodeJS.ProcessEnv, { name, options, change, done }: Change): Promise<void> {
  const account = await atServiceOrDatabase(environment, options, 'access:write', {
    service: async client => client.access.accounts.update(await idOf(name, listOfService(client)), change),
    database: onDatabase(environment, async ({ context, author }) => {
      const id = await idOf(name, listAccounts(context))
      return updateAccount(context, author, { id, change })
    }),
  })
  printResult(options, { value: account, messages: [`${done} the account ${name}.`] })
}

const listOfService = ({ access }: Client): Promise<Account[]> => access.accounts.list().all()

/** The id of the account with this name or id. Throws if there is none. */
async function idOf(name: string, listing: Promise<{ id: string; name: string }[]>): Promise<string> {
  const accounts = await listing
  const account = accounts.find(each => each.name === name) ?? accounts.find(each => each.id === name)
  if (!account) throw new Error(`There is no account ${JSON.stringify(name)}. See kith user list.`)
  return account.id
}

/** An account with its invitation as a URL. */
const withLink = <Invited extends { invitation_path: string }>(
  { invitation_path, ...account }: Invited,
  base: string,
) => ({
  ...account,
  invitation_url: `${base.replace(/\/$/, '')}${invitation_path}`,
})

type Work = {
  context: Context
  organizationKey: string
  author: { actor: string; request_id: string }
  /** The address of the service of this machine. */
  address: string
}

/** Runs work on an organization of the database. */
const onDatabase =
  <Result>(environment: NodeJS.ProcessEnv, work: (work: Work) => Promise<Result>) =>
  async ({ db, config }: Session, key = 'default'): Promise<Result> => {
    const { id } = await requireOrganization(db, key)
    const author = { actor: 'cli', request_id: randomUUID() }
    const address = config.publicUrl ?? localAddress(environment)
    return work({ context: contextOf(db, id), organizationKey: key, author, address })
  }
