import type { Account, InvitedAccount } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope, useSession } from '../app/session.tsx'
import { Button } from '../ui/button.tsx'
import { Menu } from '../ui/menu.tsx'
import { Notice, Problem } from '../ui/notice.tsx'
import { Badge, EmptyState, Loading, Section } from '../ui/page.tsx'
import { SecretDialog } from '../ui/secret-dialog.tsx'
import { Table } from '../ui/table.tsx'
import styles from './access.module.css'
import { type AccountAction, AccountDialog, actionsOf, NewAccount } from './account-dialogs.tsx'
import { messages } from './account-messages.ts'
import { messages as accessMessages } from './messages.ts'
import { accountsQuery } from './queries.ts'

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
      <p className={styles.muted}>{texts.advice}</p>
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
