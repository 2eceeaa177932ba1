import type { Account, AccountBody, AccountPatch, InvitedAccount } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { client } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { useSession } from '../app/session.tsx'
import { useWrite } from '../app/write.ts'
import { ConfirmDialog } from '../ui/confirm-dialog.tsx'
import { TextField } from '../ui/field.tsx'
import { FormDialog } from '../ui/form-dialog.tsx'
import { Select } from '../ui/select.tsx'
import { messages } from './account-messages.ts'
import { messages as accessMessages } from './messages.ts'
import { accountsQuery, rolesQuery } from './queries.ts'

export type AccountAction = 'reinvite' | 'changeRole' | 'disable' | 'enable' | 'remove'

export const actionsOf = ({ state }: Account): AccountAction[] =>
  state === 'disabled' ? ['enable', 'changeRole', 'remove'] : ['reinvite', 'changeRole', 'disable', 'remove']

/** The value of a choice without a role, which is no key. */
const noRole = '-'
const roleOf = (choice: string) => (choice === noRole ? null : choice)

type NewAccountProps = { name: string; onClose: () => void; onInvited: (invited: InvitedAccount) => void }

/** Invites a person. The name of the session is given for the own account. */
export function NewAccount({ name: given, onClose, onInvited }: NewAccountProps) {
  const texts = useMessages(messages)
  const { name: nameLabel } = useMessages(accessMessages)
  const [name, setName] = useState(given)
  const [role, setRole] = useState<string | null>(null)
  const create = useWrite((body: AccountBody) => client.access.accounts.create(body), {
    refresh: [accountsQuery.queryKey],
    onSuccess: onInvited,
  })
  return (
    <FormDialog
      title={given === '' ? texts.newAccount : texts.makeOwn}
      onSubmit={() => create.mutate({ name: name.trim(), role: roleOf(role!) })}
      write={create}
      submit={texts.invite}
      isDisabled={role === null}
      onClose={onClose}
    >
      <TextField
        label={nameLabel}
        help={texts.nameHelp}
        name="/name"
        isRequired
        autoFocus
        value={name}
        onChange={setName}
      />
      <GrantableRole role={role} onChange={setRole} />
    </FormDialog>
  )
}

/** The roles that the session may give: those that have no more than it has. */
function GrantableRole({ role, onChange }: { role: string | null; onChange: (role: string) => void }) {
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
      name="/role"
      options={options}
      value={role}
      onChange={onChange}
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
  const [role, setRole] = useState<string | null>(account.role ?? noRole)
  const change = useWrite((body: AccountPatch) => client.access.accounts.update(account.id, body), {
    refresh: [accountsQuery.queryKey],
    onSuccess: onClose,
  })
  return (
    <FormDialog
      title={texts.changeRoleTitle(account.name)}
      onSubmit={() => change.mutate({ role: roleOf(role!) })}
      write={change}
      submit={texts.save}
      isDisabled={role === null}
      onClose={onClose}
    >
      <p>{texts.changeRoleAdvice}</p>
      <GrantableRole role={role} onChange={setRole} />
    </FormDialog>
  )
}
