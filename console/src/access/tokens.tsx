import type { ApiTokenBody, ListedToken, Scope } from '@kith/client'
import { useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { client, useWrite } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope, useSession } from '../app/session.tsx'
import { Button } from '../ui/button.tsx'
import { TextField, useDraft } from '../ui/field.tsx'
import { Form } from '../ui/form.tsx'
import { Badge, EmptyState, Section } from '../ui/page.tsx'
import { PagedList } from '../ui/paged-list.tsx'
import { SecretDialog } from '../ui/secret-dialog.tsx'
import { Select } from '../ui/select.tsx'
import { Table } from '../ui/table.tsx'
import { messages } from './messages.ts'
import { tokensQuery } from './queries.ts'
import { RevokeDialog } from './revoke-dialog.tsx'
import { RoleChoice, ScopeChoice, ScopeList } from './scope-choice.tsx'

/** The tokens that were made, newest first, with their last use. */
export function TokenList() {
  const texts = useMessages(messages)
  const formats = useFormats()
  const mayWrite = useScope('access:write')
  const [revoking, setRevoking] = useState<ListedToken | null>(null)
  const tokens = useInfiniteQuery(tokensQuery)
  return (
    <Section title={texts.madeTokens}>
      <PagedList query={tokens} none={<EmptyState title={texts.noTokens} />} more={texts.moreTokens}>
        {rows => (
          <Table
            label={texts.madeTokens}
            headers={[texts.name, texts.maker, texts.scopes, texts.lastUsed, texts.expires, texts.state]}
          >
            {rows.map(row => (
              <tr key={row.jti}>
                <th scope="row">{row.name}</th>
                <td>{row.maker}</td>
                <td>
                  <ScopeList scopes={row.scopes} />
                </td>
                <td>{row.last_used_at ? formats.dateTime(row.last_used_at) : texts.never}</td>
                <td>{formats.dateTime(row.expires_at)}</td>
                <td>
                  <TokenState token={row} onRevoke={mayWrite ? setRevoking : null} />
                </td>
              </tr>
            ))}
          </Table>
        )}
      </PagedList>
      {revoking && (
        <RevokeDialog
          title={texts.revokeToken(revoking.name)}
          advice={texts.revokeTokenAdvice}
          revoke={() => client.access.tokens.revoke(revoking.jti)}
          refresh={tokensQuery.queryKey}
          onClose={() => setRevoking(null)}
        />
      )}
    </Section>
  )
}

type StateProps = { token: ListedToken; onRevoke: ((token: ListedToken) => void) | null }

function TokenState({ token, onRevoke }: StateProps) {
  const texts = useMessages(messages)
  const formats = useFormats()
  if (token.revoked_at) return <Badge kind="negative">{texts.revoked(formats.date(token.revoked_at))}</Badge>
  if (Date.parse(token.expires_at) <= Date.now()) return <Badge>{texts.keyStates.expired}</Badge>
  if (!onRevoke) return <Badge kind="positive">{texts.works}</Badge>
  return (
    <Button look="danger" aria-label={`${texts.revoke}: ${token.name}`} onPress={() => onRevoke(token)}>
      {texts.revoke}
    </Button>
  )
}

/** Makes a token, which is shown once. */
export function TokenForm() {
  const texts = useMessages(messages)
  const session = useSession()
  const { draft, field } = useDraft({ name: session.name, scopes: [] as Scope[], role: '' })
  const { name, scopes, role } = draft
  const [seconds, setSeconds] = useState('3600')
  const create = useWrite((body: ApiTokenBody) => client.access.createToken(body), { refresh: [tokensQuery.queryKey] })
  return (
    <Section title={texts.newToken}>
      <p className="muted">{texts.tokensAdvice}</p>
      <Form
        onSubmit={() =>
          create.mutate({ name: name.trim(), scopes, expires_in: Number(seconds), ...(role && { role }) })
        }
        write={create}
        submit={texts.create}
        isDisabled={scopes.length === 0}
      >
        <TextField label={texts.name} help={texts.tokenNameHelp} isRequired {...field('name')} />
        <Select
          label={texts.lifetime}
          options={[
            { value: '3600', label: texts.hour },
            { value: '14400', label: texts.fourHours },
          ]}
          value={seconds}
          onChange={setSeconds}
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
