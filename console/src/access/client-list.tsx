import type { ApiClient, ApiClientWithSecret, Scope } from '@kith/client'
import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { client } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { Button } from '../ui/button.tsx'
import { Actions, Dialog } from '../ui/dialog.tsx'
import { TextField } from '../ui/field.tsx'
import { Problem } from '../ui/notice.tsx'
import { Badge, EmptyState, Loading, Section } from '../ui/page.tsx'
import { SecretDialog } from '../ui/secret-dialog.tsx'
import { Table } from '../ui/table.tsx'
import styles from './access.module.css'
import { messages } from './messages.ts'
import { ScopeChoice, ScopeList } from './scope-choice.tsx'

/** The clients of the organization. A new one shows its secret once. */
export function ClientList() {
  const texts = useMessages(messages)
  const mayWrite = useScope('access:write')
  const queryClient = useQueryClient()
  const [isCreating, setCreating] = useState(false)
  const [created, setCreated] = useState<ApiClientWithSecret | null>(null)
  const [revoking, setRevoking] = useState<ApiClient | null>(null)
  const clients = useInfiniteQuery({
    queryKey: ['clients'],
    queryFn: ({ pageParam, signal }) => client.access.clients.list({ signal, after: pageParam }).page(),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next,
  })
  const refresh = () => queryClient.invalidateQueries({ queryKey: ['clients'] })
  const rows = clients.data?.pages.flatMap(page => page.items) ?? []
  return (
    <Section
      title={texts.clients}
      actions={
        mayWrite && (
          <Button look="primary" onPress={() => setCreating(true)}>
            {texts.newClient}
          </Button>
        )
      }
    >
      <p className={styles.muted!}>{texts.clientsAdvice}</p>
      {clients.isPending && <Loading />}
      {clients.error && <Problem error={clients.error} onRetry={() => clients.refetch()} />}
      {clients.data && rows.length === 0 && <EmptyState title={texts.noClients} />}
      {rows.length > 0 && <ClientTable rows={rows} onRevoke={mayWrite ? setRevoking : null} />}
      {clients.hasNextPage && (
        <div>
          <Button onPress={() => clients.fetchNextPage()}>{texts.more}</Button>
        </div>
      )}
      {isCreating && (
        <NewClient
          onClose={() => setCreating(false)}
          onCreated={async made => {
            setCreating(false)
            setCreated(made)
            await refresh()
          }}
        />
      )}
      {created && (
        <SecretDialog
          title={texts.secretTitle}
          advice={texts.secretAdvice}
          values={[
            [texts.clientId, created.client_id],
            [texts.clientSecret, created.client_secret],
          ]}
          onClose={() => setCreated(null)}
        />
      )}
      {revoking && <RevokeClient revoked={revoking} onClose={() => setRevoking(null)} onRevoked={refresh} />}
    </Section>
  )
}

function ClientTable({ rows, onRevoke }: { rows: ApiClient[]; onRevoke: ((client: ApiClient) => void) | null }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  return (
    <Table label={texts.clients} headers={[texts.name, texts.clientId, texts.scopes, texts.created, texts.state]}>
      {rows.map(row => (
        <tr key={row.client_id}>
          <th scope="row">{row.name}</th>
          <td>
            <code>{row.client_id}</code>
          </td>
          <td>
            <ScopeList scopes={row.scopes} />
          </td>
          <td>{formats.date(row.created_at)}</td>
          <td>
            {row.revoked_at ? (
              <Badge kind="negative">{texts.revoked(formats.date(row.revoked_at))}</Badge>
            ) : onRevoke ? (
              <Button look="danger" aria-label={`${texts.revoke}: ${row.name}`} onPress={() => onRevoke(row)}>
                {texts.revoke}
              </Button>
            ) : (
              <Badge kind="positive">{texts.works}</Badge>
            )}
          </td>
        </tr>
      ))}
    </Table>
  )
}

function NewClient({
  onClose,
  onCreated,
}: {
  onClose: () => void
  onCreated: (created: ApiClientWithSecret) => Promise<void>
}) {
  const texts = useMessages(messages)
  const [name, setName] = useState('')
  const [scopes, setScopes] = useState<Scope[]>([])
  const [error, setError] = useState<unknown>()
  const [isPending, setPending] = useState(false)
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    if (isPending) return
    setPending(true)
    setError(undefined)
    await client.access.clients.create({ name: name.trim(), scopes }).then(onCreated).catch(setError)
    setPending(false)
  }
  return (
    <Dialog title={texts.newClient} isOpen onClose={onClose}>
      <form className={styles.form!} onSubmit={submit}>
        <TextField
          label={texts.name}
          help={texts.clientNameHelp}
          isRequired
          autoFocus
          value={name}
          onChange={setName}
        />
        <ScopeChoice scopes={scopes} onChange={setScopes} />
        {error !== undefined && <Problem error={error} />}
        {scopes.length === 0 && <p className={styles.muted!}>{texts.scopesMissing}</p>}
        <Actions>
          <Button onPress={onClose}>{texts.cancel}</Button>
          <Button type="submit" look="primary" isDisabled={scopes.length === 0}>
            {texts.create}
          </Button>
        </Actions>
      </form>
    </Dialog>
  )
}

function RevokeClient({
  revoked,
  onClose,
  onRevoked,
}: {
  revoked: ApiClient
  onClose: () => void
  onRevoked: () => Promise<void>
}) {
  const texts = useMessages(messages)
  const [error, setError] = useState<unknown>()
  const revoke = async () => {
    try {
      await client.access.clients.revoke(revoked.client_id)
      await onRevoked()
      onClose()
    } catch (error) {
      setError(error)
    }
  }
  return (
    <Dialog title={texts.revokeClient(revoked.name)} isOpen isAlert onClose={onClose}>
      <p>{texts.revokeClientAdvice}</p>
      {error !== undefined && <Problem error={error} />}
      <Actions>
        <Button onPress={onClose} autoFocus>
          {texts.cancel}
        </Button>
        <Button look="danger" onPress={revoke}>
          {texts.revoke}
        </Button>
      </Actions>
    </Dialog>
  )
}
