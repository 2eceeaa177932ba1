import { randomUUID } from 'node:crypto'
import type { Account, AccountBody, AccountPatch, InvitedAccount } from '../client/index.ts'
import { createAccount, inviteAccount, listAccounts, removeAccount, updateAccount } from '../src/auth/accounts.ts'
import { contextOf } from '../src/db/context.ts'
import { confirm } from './confirm.ts'
import { atServiceOrDatabase, type ConnectionOptions, localAddress } from './connection.ts'
import { newPlainCommand } from './kith-command.ts'
import { requireOrganization } from './session.ts'

const columns = ['id', 'name', 'role', 'state', 'maker', 'created_at', 'last_sign_in_at', 'invitation_expires_at']
const nameArgument = ['<name>', 'The name of the account, or its id, as shown by user list.'] as const

export function userCommand(environment: NodeJS.ProcessEnv) {
  const users = newPlainCommand(
    environment,
    'user',
    'Invites, lists, disables and removes the accounts of people who sign in to the console. Works on the database of this machine, or at ' +
      'a service.',
  ).examples('user add "Ada Lovelace" --role support', 'user list')
  users
    .add(
      'add',
      'Makes an account, and prints the link of its invitation, once. The person who opens it sets a password. It works once, for three days.',
    )
    .examples('user add "Ada Lovelace"', 'user add "Ada Lovelace" --role support')
    .argument('<name>', 'The name for the sign-in, and the actor in the change log.')
    .option('--role <key>', 'The key of a role. Default: no role, which is all scopes of the console.')
    .connection()
    .action(async (name, { role = null, ...options }) => {
      const invited = await withAccounts(environment, options, ({ create }) => create({ name, role }))
      return { value: invited, lines: [invited.invitation_url] }
    })
  users
    .addList(columns, 'list', 'Lists the accounts, newest first, with their last sign-in.')
    .examples('user list', 'user list --profile acme --format csv')
    .connection()
    .action(options => withAccounts(environment, options, ({ list }) => list(), 'access:read'))
  users
    .add(
      'invite',
      'Makes a new invitation and prints its link, for one that was lost or has expired, and for a forgotten password.',
    )
    .examples('user invite "Ada Lovelace"')
    .argument(...nameArgument)
    .connection()
    .action(async (name, options) => {
      const invited = await withAccounts(environment, options, async ({ invite, idOf }) => invite(await idOf(name)))
      return { value: invited, lines: [invited.invitation_url] }
    })
  const change = async (name: string, options: ConnectionOptions, change: AccountPatch, done: string) => {
    const update = async ({ update, idOf }: Accounts) => update(await idOf(name), change)
    const value = await withAccounts(environment, options, update)
    return { value, messages: [`${done} the account ${name}.`] }
  }
  users
    .add('role', 'Gives an account a role, or without a key all scopes of the console. Its sessions end.')
    .examples('user role "Ada Lovelace" support', 'user role "Ada Lovelace"')
    .argument(...nameArgument)
    .argument('[key]', 'The key of the role.')
    .connection()
    .action((name, role, options) => change(name, options, { role: role ?? null }, 'Changed the role of'))
  users
    .add('disable', 'Disables an account. Its sessions end.')
    .examples('user disable "Ada Lovelace"')
    .argument(...nameArgument)
    .connection()
    .action((name, options) => change(name, options, { state: 'disabled' }, 'Disabled'))
  users
    .add('enable', 'Enables an account that was disabled.')
    .examples('user enable "Ada Lovelace"')
    .argument(...nameArgument)
    .connection()
    .action((name, options) => change(name, options, { state: 'active' }, 'Enabled'))
  users
    .add('remove', 'Removes an account. Its sessions end, and its name is free for somebody else.')
    .examples('user remove "Ada Lovelace" --yes')
    .argument(...nameArgument)
    .yes()
    .connection()
    .action(async (name, options) => {
      await confirm(options, `Remove the account ${name}?`)
      await withAccounts<unknown>(environment, options, async ({ remove, idOf }) => remove(await idOf(name)))
      return { value: { name }, messages: [`Removed the account ${name}.`] }
    })
  return users
}

type Invited = { id: string; invitation_path: string }
type Linked<Made extends Invited> = Omit<Made, 'invitation_path'> & { invitation_url: string }

/** The account operations of the commands, through a service or on the database. */
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
