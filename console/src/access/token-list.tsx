import type { ListedToken } from '@kith/client'
import { useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { client } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { Button } from '../ui/button.tsx'
import { Badge, EmptyState, Section } from '../ui/page.tsx'
import { PagedList } from '../ui/paged-list.tsx'
import { Table } from '../ui/table.tsx'
import { messages } from './messages.ts'
import { tokensQuery } from './queries.ts'
import { RevokeDialog } from './revoke-dialog.tsx'
import { ScopeList } from './scope-choice.tsx'

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
