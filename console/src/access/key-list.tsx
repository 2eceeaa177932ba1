import { useQuery } from '@tanstack/react-query'
import { useFormats, useMessages } from '../app/language.tsx'
import { Problem } from '../ui/notice.tsx'
import { Badge, Loading, Section } from '../ui/page.tsx'
import { Table } from '../ui/table.tsx'
import styles from './access.module.css'
import { messages } from './messages.ts'
import { keysQuery } from './queries.ts'

const kinds = { signs: 'positive', verifies: 'neutral', expired: 'caution' } as const

/** The public part of the keys that sign tokens. */
export function KeyList() {
  const texts = useMessages(messages)
  const formats = useFormats()
  const keys = useQuery(keysQuery)
  if (keys.isPending) return <Loading />
  if (!keys.data) return <Problem error={keys.error} onRetry={() => keys.refetch()} />
  return (
    <Section title={texts.keys}>
      <p className={styles.muted}>{texts.keysAdvice}</p>
      <Table
        label={texts.keys}
        headers={[texts.keyId, texts.algorithm, texts.created, texts.state, texts.verifiesUntil]}
      >
        {keys.data.map(({ kid, algorithm, created_at, state, verifies_until }) => (
          <tr key={kid}>
            <td>
              <code>{kid}</code>
            </td>
            <td>{algorithm}</td>
            <td>{formats.dateTime(created_at)}</td>
            <td>
              <Badge kind={kinds[state]}>{texts.keyStates[state]}</Badge>
            </td>
            <td>{verifies_until ? formats.dateTime(verifies_until) : '—'}</td>
          </tr>
        ))}
      </Table>
    </Section>
  )
}
