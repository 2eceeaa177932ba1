import type { AccessClient, AccessClientBody, AccessClientWithSecret, Scope } from '@kith/client'
import { useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { client, useWrite } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { DialogButton } from '../ui/dialog.tsx'
import { TextField, useDraft } from '../ui/field.tsx'
import { FormDialog } from '../ui/form.tsx'
import { Badge, EmptyState, Section } from '../ui/page.tsx'
import { PagedList } from '../ui/paged-list.tsx'
import { SecretDialog } from '../ui/secret-dialog.tsx'
import { ColumnTable } from '../ui/table.tsx'
import { messages } from './messages.ts'
import { clientsQuery } from './queries.ts'
import { RevokeButton } from './revoke-button.tsx'
import { RoleChoice, ScopeChoice, ScopeList } from './scope-choice.tsx'

/** The clients of the organization. A new client shows its secret once. */
export function ClientList() {
  const texts = useMessages(messages)
  const mayWrite = useScope('access:write')
  const [created, setCreated] = useState<AccessClientWithSecret | null>(null)
  const clients = useInfiniteQuery(clientsQuery)
  const createButton = mayWrite && (
    <DialogButton look="primary" dialog={close => <NewClient onClose={close} onCreated={setCreated} />}>
      {texts.newClient}
    </DialogButton>
  )
  return (
    <Section title={texts.clients} actions={createButton}>
      <p className="muted">{texts.clientsAdvice}</p>
      <PagedList query={clients} none={<EmptyState title={texts.noClients} />} more={texts.more}>
        {rows => <ClientTable rows={rows} />}
      </PagedList>
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
    </Section>
  )
}

function ClientTable({ rows }: { rows: AccessClient[] }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const mayWrite = useScope('access:write')
  return (
    <ColumnTable
      label={texts.clients}
      rows={rows}
      rowKey={({ client_id }) => client_id}
      columns={[
        [texts.name, ({ name }) => name, 'name'],
        [texts.clientId, ({ client_id }) => <code>{client_id}</code>],
        [texts.scopes, ({ scopes }) => <ScopeList scopes={scopes} />],
        [texts.created, ({ created_at }) => formats.date(created_at)],
        [
          texts.state,
          ({ revoked_at }) =>
            revoked_at ? (
              <Badge kind="negative">{texts.revoked(formats.date(revoked_at))}</Badge>
            ) : (
              <Badge kind="positive">{texts.works}</Badge>
            ),
        ],
        mayWrite && [
          texts.revoke,
          ({ client_id, name, revoked_at }) =>
            !revoked_at && (
              <RevokeButton
                name={name}
                title={texts.revokeClient(name)}
                advice={texts.revokeClientAdvice}
                revoke={() => client.access.clients.revoke(client_id)}
                refresh={clientsQuery.queryKey}
              />
            ),
        ],
      ]}
    />
  )
}

type NewClientProps = { onClose: () => void; onCreated: (created: AccessClientWithSecret) => void }

function NewClient({ onClose, onCreated }: NewClientProps) {
  const texts = useMessages(messages)
  const { draft, field } = useDraft({ name: '', scopes: [] as Scope[], role: '' })
  const { name, scopes, role } = draft
  const create = useWrite((body: AccessClientBody) => client.access.clients.create(body), {
    refresh: [clientsQuery.queryKey],
    onSuccess: created => {
      onClose()
      onCreated(created)
    },
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
