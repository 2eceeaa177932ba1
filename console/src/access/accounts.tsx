import type { Account, AccountBody, AccountPatch, InvitedAccount } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { client, useWrite } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope, useSession } from '../app/session.tsx'
import { Button } from '../ui/button.tsx'
import { ConfirmDialog } from '../ui/dialog.tsx'
import { type FieldProps, TextField, useDraft } from '../ui/field.tsx'
import { FormDialog } from '../ui/form.tsx'
import { Menu } from '../ui/menu.tsx'
import { Badge, EmptyState, Loading, Notice, Problem, Section } from '../ui/page.tsx'
import { SecretDialog } from '../ui/secret-dialog.tsx'
import { Select } from '../ui/select.tsx'
import { Table } from '../ui/table.tsx'
import { messages } from './account-messages.ts'
import { messages as accessMessages } from './messages.ts'
import { accountsQuery, rolesQuery } from './queries.ts'

type Open = { action: AccountAction; account: Account }

/** The accounts of the organization. The link of an invitation is shown once. */
export function AccountList() {
  const texts = useMessages(messages)
  const session = useSession()
  const mayWrite = useScope('access:write')
  const [invitedName, setInvitedName] = useState<string | null>(null)
  const [invited, setInvited] = useState<InvitedAccount | null>(null)
  const [open, setOpen] = useState<Open | null>(null)
  const accounts = useQuery(accountsQuery)
  const rows = accounts.data ?? []
  // The name of a link has a suffix once an account has it.
  const isOwn = ({ name, maker }: Account) =>
    [name, maker].includes(session.name) || session.name.startsWith(`${name} (`)
  const mayMakeOwn = mayWrite && session.method === 'code' && accounts.data && !rows.some(isOwn)
  const showInvitation = (made: InvitedAccount) => {
    setInvitedName(null)
    setOpen(null)
    // The person itself opens the link at once.
    if (made.maker === session.name && invitedName === session.name) location.assign(made.invitation_path)
    else setInvited(made)
  }
  return (
    <Section
      title={texts.accounts}
      actions={
        mayWrite && (
          <Button look="primary" onPress={() => setInvitedName('')}>
            {texts.newAccount}
          </Button>
        )
      }
    >
      <p className="muted">{texts.advice}</p>
      {mayMakeOwn && (
        <Notice>
          <p>{texts.own}</p>
          <div>
            <Button onPress={() => setInvitedName(session.name)}>{texts.makeOwn}</Button>
          </div>
        </Notice>
      )}
      {accounts.isPending && <Loading />}
      {accounts.error && <Problem error={accounts.error} onRetry={() => accounts.refetch()} />}
      {accounts.data && rows.length === 0 && <EmptyState title={texts.noAccounts} />}
      {rows.length > 0 && <AccountTable rows={rows} onOpen={mayWrite ? setOpen : null} />}
      {invitedName !== null && (
        <NewAccount name={invitedName} onClose={() => setInvitedName(null)} onInvited={showInvitation} />
      )}
      {open && <AccountDialog {...open} onClose={() => setOpen(null)} onInvited={showInvitation} />}
      {invited && (
        <SecretDialog
          title={texts.invitation(invited.name)}
          advice={texts.invitationAdvice}
          values={[[texts.link, `${location.origin}${invited.invitation_path}`]]}
          onClose={() => setInvited(null)}
        />
      )}
    </Section>
  )
}

function AccountTable({ rows, onOpen }: { rows: readonly Account[]; onOpen: ((open: Open) => void) | null }) {
  const texts = useMessages(messages)
  const { name, maker, created, state } = useMessages(accessMessages)
  const formats = useFormats()
  const headers = [name, texts.role, texts.lastSignIn, maker, created, state, ...(onOpen ? [texts.more] : [])]
  return (
    <Table label={texts.accounts} headers={headers}>
      {rows.map(row => (
        <tr key={row.id}>
          <th scope="row">{row.name}</th>
          <td>{row.role ?? '—'}</td>
          <td>{row.last_sign_in_at ? formats.dateTime(row.last_sign_in_at) : texts.never}</td>
          <td>{row.maker}</td>
          <td>{formats.date(row.created_at)}</td>
          <td>
            <AccountState account={row} />
          </td>
          {onOpen && (
            <td>
              <Menu
                label={texts.actions(row.name)}
                actions={actionsOf(row).map(action => ({
                  id: action,
                  label: texts[action],
                  action: () => onOpen({ action, account: row }),
                }))}
              >
                {texts.more}
              </Menu>
            </td>
          )}
        </tr>
      ))}
    </Table>
  )
}

function AccountState({ account: { state, invitation_expires_at: end } }: { account: Account }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  if (state === 'disabled') return <Badge kind="negative">{texts.isDisabled}</Badge>
  if (state === 'active') return <Badge kind="positive">{texts.works}</Badge>
  if (end === null || Date.parse(end) <= Date.now()) return <Badge kind="caution">{texts.isExpired}</Badge>
  return <Badge kind="accent">{texts.invitedUntil(formats.date(end))}</Badge>
}

export type AccountAction = 'reinvite' | 'changeRole' | 'disable' | 'enable' | 'remove'

export const actionsOf = ({ state }: Account): AccountAction[] =>
  state === 'disabled' ? ['enable', 'changeRole', 'remove'] : ['reinvite', 'changeRole', 'disable', 'remove']

/** The value of a choice without a role, which is no key. */
const noRole = '-'
/** The choice of a role. Null until there is one. */
type RoleDraft = { role: string | null }
const roleOf = (choice: string) => (choice === noRole ? null : choice)

type NewAccountProps = { name: string; onClose: () => void; onInvited: (invited: InvitedAccount) => void }

/** Invites a person. The name of the session is given for the own account. */
export function NewAccount({ name: given, onClose, onInvited }: NewAccountProps) {
  const texts = useMessages(messages)
  const { name: nameLabel } = useMessages(accessMessages)
  const { draft, field } = useDraft<RoleDraft & { name: string }>({ name: given, role: null })
  const create = useWrite((body: AccountBody) => client.access.accounts.create(body), {
    refresh: [accountsQuery.queryKey],
    onSuccess: onInvited,
  })
  return (
    <FormDialog
      title={given === '' ? texts.newAccount : texts.makeOwn}
      onSubmit={() => create.mutate({ name: draft.name.trim(), role: roleOf(draft.role!) })}
      write={create}
      submit={texts.invite}
      isDisabled={draft.role === null}
      onClose={onClose}
    >
      <TextField label={nameLabel} help={texts.nameHelp} isRequired autoFocus {...field('name')} />
      <GrantableRole {...field('role')} />
    </FormDialog>
  )
}

/** The roles that the session may give: those that have no more than it has. */
function GrantableRole(field: FieldProps<RoleDraft['role']>) {
  const texts = useMessages(messages)
  const { scopeTexts } = useMessages(accessMessages)
  const session = useSession()
  const roles = useQuery(rolesQuery)
  const hasAll = (scopes: readonly string[]) => scopes.every(scope => session.scopes.includes(scope))
  const given = (roles.data ?? []).filter(
    ({ key, scopes, state }) => state === 'active' && hasAll(scopes) && (session.role ?? key) === key,
  )
  const options = [
    ...(session.role === null && hasAll(Object.keys(scopeTexts)) ? [{ value: noRole, label: texts.noRole }] : []),
    ...given.map(({ key, name }) => ({ value: key, label: name })),
  ]
  return (
    <Select
      label={texts.role}
      help={roles.data && options.length === 0 ? texts.noRoles : texts.roleHelp}
      options={options}
      {...field}
    />
  )
}

type AccountDialogProps = {
  action: AccountAction
  account: Account
  onClose: () => void
  onInvited: (invited: InvitedAccount) => void
}

/** Asks before an action on an account, and does it. */
export function AccountDialog({ action, account, onClose, onInvited }: AccountDialogProps) {
  const texts = useMessages(messages)
  const { accounts } = client.access
  const refresh = [accountsQuery.queryKey]
  const reinvite = useWrite(() => accounts.invite(account.id), { refresh, onSuccess: onInvited })
  const disable = useWrite(() => accounts.update(account.id, { state: 'disabled' }), { refresh, onSuccess: onClose })
  const enable = useWrite(() => accounts.update(account.id, { state: 'active' }), { refresh, onSuccess: onClose })
  const remove = useWrite(() => accounts.remove(account.id), { refresh, onSuccess: onClose })
  if (action === 'changeRole') return <ChangeRole account={account} onClose={onClose} />
  const write = { reinvite, disable, enable, remove }[action]
  return (
    <ConfirmDialog title={texts[`${action}Title`](account.name)} action={texts[action]} write={write} onClose={onClose}>
      <p>{texts[`${action}Advice`]}</p>
    </ConfirmDialog>
  )
}

function ChangeRole({ account, onClose }: { account: Account; onClose: () => void }) {
  const texts = useMessages(messages)
  const { draft, field } = useDraft<RoleDraft>({ role: account.role ?? noRole })
  const change = useWrite((body: AccountPatch) => client.access.accounts.update(account.id, body), {
    refresh: [accountsQuery.queryKey],
    onSuccess: onClose,
  })
  return (
    <FormDialog
      title={texts.changeRoleTitle(account.name)}
      onSubmit={() => change.mutate({ role: roleOf(draft.role!) })}
      write={change}
      submit={texts.save}
      isDisabled={draft.role === null}
      onClose={onClose}
    >
      <p>{texts.changeRoleAdvice}</p>
      <GrantableRole {...field('role')} />
    </FormDialog>
  )
}
