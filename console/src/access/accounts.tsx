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
import { Loaded } from '../ui/loaded.tsx'
import { Menu } from '../ui/menu.tsx'
import { Badge, EmptyState, Notice, Section } from '../ui/page.tsx'
import { SecretDialog } from '../ui/secret-dialog.tsx'
import { Select } from '../ui/select.tsx'
import { ColumnTable } from '../ui/table.tsx'
import { messages } from './messages.ts'
import { accountsQuery, rolesQuery } from './queries.ts'

/** The accounts of the organization. The link of an invitation is shown once. */
export function AccountList() {
  const texts = useMessages(messages)
  const session = useSession()
  const mayWrite = useScope('access:write')
  const [invitedName, setInvitedName] = useState<string | null>(null)
  const [invited, setInvited] = useState<InvitedAccount | null>(null)
  const accounts = useQuery(accountsQuery)
  // A session from a one-time link gets a suffix if an account has its name.
  const isOwn = ({ name, maker }: Account) =>
    [name, maker].includes(session.name) || session.name.startsWith(`${name} (`)
  const mayMakeOwn = mayWrite && session.method === 'code' && accounts.data && !accounts.data.some(isOwn)
  const showInvitation = (made: InvitedAccount) => {
    setInvitedName(null)
    // An invitation for the person of this session opens at once.
    if (made.maker === session.name && invitedName === session.name) location.assign(made.invitation_path)
    else setInvited(made)
  }
  const inviteButton = mayWrite && (
    <Button look="primary" onPress={() => setInvitedName('')}>
      {texts.newAccount}
    </Button>
  )
  return (
    <Section title={texts.accounts} actions={inviteButton}>
      <p className="muted">{texts.accountsAdvice}</p>
      {mayMakeOwn && (
        <Notice>
          <p>{texts.ownAdvice}</p>
          <Button onPress={() => setInvitedName(session.name)}>{texts.makeOwn}</Button>
        </Notice>
      )}
      <Loaded query={accounts} none={<EmptyState title={texts.noAccounts} />}>
        {rows => <AccountTable rows={rows} />}
      </Loaded>
      {invitedName !== null && (
        <NewAccount name={invitedName} onClose={() => setInvitedName(null)} onInvited={showInvitation} />
      )}
      {invited && <InvitationLink invited={invited} onClose={() => setInvited(null)} />}
    </Section>
  )
}

/** The link of an invitation, which is shown once. */
function InvitationLink({ invited, onClose }: { invited: InvitedAccount; onClose: () => void }) {
  const texts = useMessages(messages)
  return (
    <SecretDialog
      title={texts.invitation(invited.name)}
      advice={texts.invitationAdvice}
      values={[[texts.link, `${location.origin}${invited.invitation_path}`]]}
      onClose={onClose}
    />
  )
}

function AccountTable({ rows }: { rows: readonly Account[] }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const mayWrite = useScope('access:write')
  return (
    <ColumnTable
      label={texts.accounts}
      rows={rows}
      rowKey={({ id }) => id}
      columns={[
        [texts.name, account => account.name, 'name'],
        [texts.role, ({ role }) => role ?? '—'],
        [texts.lastSignIn, ({ last_sign_in_at: at }) => (at ? formats.dateTime(at) : texts.never)],
        [texts.maker, account => account.maker],
        [texts.created, ({ created_at }) => formats.date(created_at)],
        [texts.state, account => <AccountState account={account} />],
        mayWrite && [texts.actions, account => <AccountMenu account={account} />],
      ]}
    />
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

/** The value for no role. No key looks like it. */
const noRole = '-'
/** The chosen role. Null before a choice. */
type RoleDraft = { role: string | null }
const roleOf = (choice: string) => (choice === noRole ? null : choice)

type NewAccountProps = { name: string; onClose: () => void; onInvited: (invited: InvitedAccount) => void }

/** Invites a person. For the person's own account, `given` is the name of the session. */
function NewAccount({ name: given, onClose, onInvited }: NewAccountProps) {
  const texts = useMessages(messages)
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
      <TextField label={texts.name} help={texts.nameHelp} isRequired autoFocus {...field('name')} />
      <GrantableRole {...field('role')} />
    </FormDialog>
  )
}

/** The roles that the session may grant: roles without a right that the session lacks. */
function GrantableRole(field: FieldProps<RoleDraft['role']>) {
  const texts = useMessages(messages)
  const session = useSession()
  const roles = useQuery(rolesQuery)
  const hasAll = (scopes: readonly string[]) => scopes.every(scope => session.scopes.includes(scope))
  const given = (roles.data ?? []).filter(
    ({ key, scopes, state }) => state === 'active' && hasAll(scopes) && (session.role ?? key) === key,
  )
  const options = [
    ...(session.role === null && hasAll(Object.keys(texts.scopeTexts))
      ? [{ value: noRole, label: texts.wholeAccess }]
      : []),
    ...given.map(({ key, name }) => ({ value: key, label: name })),
  ]
  return (
    <Select
      label={texts.role}
      help={roles.data && options.length === 0 ? texts.noGrantableRole : texts.roleHelp}
      options={options}
      {...field}
    />
  )
}

const actionsOf = ({ state }: Account) =>
  state === 'disabled'
    ? (['enable', 'changeRole', 'remove'] as const)
    : (['reinvite', 'changeRole', 'disable', 'remove'] as const)

/** The actions on an account. Each action asks first. */
function AccountMenu({ account }: { account: Account }) {
  const texts = useMessages(messages)
  const [action, setAction] = useState<ReturnType<typeof actionsOf>[number]>()
  const { accounts } = client.access
  const close = () => setAction(undefined)
  const options = { refresh: [accountsQuery.queryKey], onSuccess: close }
  const reinvite = useWrite(() => accounts.invite(account.id), options)
  const disable = useWrite(() => accounts.update(account.id, { state: 'disabled' }), options)
  const enable = useWrite(() => accounts.update(account.id, { state: 'active' }), options)
  const remove = useWrite(() => accounts.remove(account.id), options)
  const writes = { reinvite, disable, enable, remove }
  return (
    <>
      <Menu
        label={texts.actionsOn(account.name)}
        actions={actionsOf(account).map(id => ({ id, label: texts[id], action: () => setAction(id) }))}
      >
        {texts.actions}
      </Menu>
      {action === 'changeRole' && <ChangeRole account={account} onClose={close} />}
      {action && action !== 'changeRole' && (
        <ConfirmDialog
          title={texts[`${action}Title`](account.name)}
          action={texts[action]}
          write={writes[action]}
          onClose={close}
        >
          <p>{texts[`${action}Advice`]}</p>
        </ConfirmDialog>
      )}
      {reinvite.data && <InvitationLink invited={reinvite.data} onClose={reinvite.reset} />}
    </>
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
