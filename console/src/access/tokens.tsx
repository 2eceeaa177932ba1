import type { ApiTokenBody, ListedToken, Scope } from '@kith/client'
import { useInfiniteQuery } from '@tanstack/react-query'
import { client, useWrite } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope, useSession } from '../app/session.tsx'
import { TextField, useDraft } from '../ui/field.tsx'
import { Form } from '../ui/form.tsx'
import { Badge, EmptyState, Section } from '../ui/page.tsx'
import { PagedList } from '../ui/paged-list.tsx'
import { SecretDialog } from '../ui/secret-dialog.tsx'
import { Select } from '../ui/select.tsx'
import { ColumnTable } from '../ui/table.tsx'
import { messages } from './messages.ts'
import { tokensQuery } from './queries.ts'
import { RevokeButton } from './revoke-button.tsx'
import { RoleChoice, ScopeChoice, ScopeList } from './scope-choice.tsx'

/** The tokens of the organization, newest first, with their last use. */
export function TokenList() {
  const texts = useMessages(messages)
  const formats = useFormats()
  const tokens = useInfiniteQuery(tokensQuery)
  return (
    <Section title={texts.madeTokens}>
      <PagedList query={tokens} none={<EmptyState title={texts.noTokens} />} more={texts.moreTokens}>
        {rows => (
          <ColumnTable
            label={texts.madeTokens}
            rows={rows}
            rowKey={({ jti }) => jti}
            columns={[
              [texts.name, ({ name }) => name, 'name'],
              [texts.maker, ({ maker }) => maker],
              [texts.scopes, ({ scopes }) => <ScopeList scopes={scopes} />],
              [texts.lastUsed, ({ last_used_at: at }) => (at ? formats.dateTime(at) : texts.never)],
              [texts.expires, ({ expires_at }) => formats.dateTime(expires_at)],
              [texts.state, token => <TokenState token={token} />],
            ]}
          />
        )}
      </PagedList>
    </Section>
  )
}

function TokenState({ token: { jti, name, revoked_at, expires_at } }: { token: ListedToken }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const mayWrite = useScope('access:write')
  if (revoked_at) return <Badge kind="negative">{texts.revoked(formats.date(revoked_at))}</Badge>
  if (Date.parse(expires_at) <= Date.now()) return <Badge>{texts.keyStates.expired}</Badge>
  if (!mayWrite) return <Badge kind="positive">{texts.works}</Badge>
  return (
    <RevokeButton
      name={name}
      title={texts.revokeToken(name)}
      advice={texts.revokeTokenAdvice}
      revoke={() => client.access.tokens.revoke(jti)}
      refresh={tokensQuery.queryKey}
    />
  )
}

/** Makes a token, which is shown once. */
export function TokenForm() {
  const texts = useMessages(messages)
  const session = useSession()
  const { draft, field } = useDraft({ name: session.name, scopes: [] as Scope[], role: '', expires_in: '3600' })
  const { name, scopes, role, expires_in } = draft
  const create = useWrite((body: ApiTokenBody) => client.access.createToken(body), { refresh: [tokensQuery.queryKey] })
  return (
    <Section title={texts.newToken}>
      <p className="muted">{texts.tokensAdvice}</p>
      <Form
        onSubmit={() =>
          create.mutate({ name: name.trim(), scopes, expires_in: Number(expires_in), ...(role && { role }) })
        }
        write={create}
        submit={texts.create}
        isDisabled={scopes.length === 0}
      >
        <TextField label={texts.name} help={texts.tokenNameHelp} isRequired {...field('name')} />
        <Select
          label={texts.lifetime}
          options={{ 3600: texts.hour, 14400: texts.fourHours }}
          {...field('expires_in')}
        />
        <RoleChoice {...field('role')} />
        <ScopeChoice {...field('scopes')} />
      </Form>
      {create.data && (
        <SecretDialog
          title={texts.tokenTitle}
          advice={texts.tokenAdvice}
          values={[[texts.token, create.data.token]]}
          onClose={create.reset}
        />
      )}
    </Section>
  )
}
