import type { AccessClient, AccessClientBody, AccessClientWithSecret, Scope } from '@kith/client'
import { useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { client, useWrite } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { Button } from '../ui/button.tsx'
import { TextField, useDraft } from '../ui/field.tsx'
import { FormDialog } from '../ui/form.tsx'
import { Badge, EmptyState, Section } from '../ui/page.tsx'
import { PagedList } from '../ui/paged-list.tsx'
import { SecretDialog } from '../ui/secret-dialog.tsx'
import { Table } from '../ui/table.tsx'
import { messages } from './messages.ts'
import { clientsQuery } from './queries.ts'
import { RevokeDialog } from './revoke-dialog.tsx'
import { RoleChoice, ScopeChoice, ScopeList } from './scope-choice.tsx'

/** The clients of the organization. A new one shows its secret once. */
export function ClientList() {
  const texts = useMessages(messages)
  const mayWrite = useScope('access:write')
  const [isCreating, setCreating] = useState(false)
  const [created, setCreated] = useState<AccessClientWithSecret | null>(null)
  const [revoking, setRevoking] = useState<AccessClient | null>(null)
  const clients = useInfiniteQuery(clientsQuery)
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
      <p className="muted">{texts.clientsAdvice}</p>
      <PagedList query={clients} none={<EmptyState title={texts.noClients} />} more={texts.more}>
        {rows => <ClientTable rows={rows} onRevoke={mayWrite ? setRevoking : null} />}
      </PagedList>
      {isCreating && (
        <NewClient
          onClose={() => setCreating(false)}
          onCreated={made => {
            setCreating(false)
            setCreated(made)
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
      {revoking && (
        <RevokeDialog
          title={texts.revokeClient(revoking.name)}
          advice={texts.revokeClientAdvice}
          revoke={() => client.access.clients.revoke(revoking.client_id)}
          refresh={clientsQuery.queryKey}
          onClose={() => setRevoking(null)}
        />
      )}
    </Section>
  )
}

function ClientTable({ rows, onRevoke }: { rows: AccessClient[]; onRevoke: ((client: AccessClient) => void) | null }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  return (
    <Table
      label={texts.clients}
      headers={[
        texts.name,
        texts.clientId,
        texts.scopes,
        texts.created,
        texts.state,
        ...(onRevoke ? [texts.revoke] : []),
      ]}
    >
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
            ) : (
              <Badge kind="positive">{texts.works}</Badge>
            )}
          </td>
          {onRevoke && (
            <td>
              {!row.revoked_at && (
                <Button look="danger" aria-label={`${texts.revoke}: ${row.name}`} onPress={() => onRevoke(row)}>
                  {texts.revoke}
                </Button>
              )}
            </td>
          )}
        </tr>
      ))}
    </Table>
  )
}

type NewClientProps = { onClose: () => void; onCreated: (created: AccessClientWithSecret) => void }

function NewClient({ onClose, onCreated }: NewClientProps) {
  const texts = useMessages(messages)
  const { draft, field } = useDraft({ name: '', scopes: [] as Scope[], role: '' })
  const { name, scopes, role } = draft
  const create = useWrite((body: AccessClientBody) => client.access.clients.create(body), {
    refresh: [clientsQuery.queryKey],
    onSuccess: onCreated,
  })
  return (
    <FormDialog
      title={texts.newClient}
      onSubmit={() => create.mutate({ name: name.trim(), scopes, ...(role && { role }) })}
      write={create}
      submit={texts.create}
      isDisabled={scopes.length === 0}
      onClose={onClose}
    >
      <TextField label={texts.name} help={texts.clientNameHelp} isRequired autoFocus {...field('name')} />
      <RoleChoice {...field('role')} />
      <ScopeChoice {...field('scopes')} />
    </FormDialog>
  )
}
