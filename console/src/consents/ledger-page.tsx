import { useQuery } from '@tanstack/react-query'
import { useFormats, useMessages } from '../app/language.tsx'
import { Button } from '../ui/button.tsx'
import { Problem } from '../ui/notice.tsx'
import { Badge, Facts, Loading, Page, Section } from '../ui/page.tsx'
import { saveBlob } from '../ui/save-blob.ts'
import { Table } from '../ui/table.tsx'
import styles from './consents.module.css'
import { messages } from './messages.ts'
import { checkpointQuery, ledgerKeysQuery } from './queries.ts'
import { VerifyReceipt } from './verify-receipt.tsx'

/** The page of the ledger: what is sealed, by which keys, and whether a receipt is true. */
export function LedgerPage() {
  const texts = useMessages(messages)
  return (
    <Page title={texts.ledgerTitle} subtitle={texts.ledgerSubtitle}>
      <NewestCheckpoint />
      <VerifyReceipt />
      <LedgerKeys />
    </Page>
  )
}

function NewestCheckpoint() {
  const texts = useMessages(messages)
  const formats = useFormats()
  const checkpoint = useQuery({ ...checkpointQuery, refetchInterval: 10_000 })
  if (checkpoint.isPending) return <Loading />
  if (!checkpoint.data) return <Problem error={checkpoint.error} onRetry={() => checkpoint.refetch()} />
  const { origin, size, root_hash, note } = checkpoint.data
  return (
    <Section
      title={texts.checkpoint}
      actions={<Button onPress={() => saveBlob(new Blob([note]), `checkpoint-${size}.txt`)}>{texts.save}</Button>}
    >
      <Facts
        facts={[
          [texts.entries, formats.number(size)],
          [texts.root, <code key="root">{root_hash}</code>],
          [texts.origin, origin],
        ]}
      />
      <p className={styles.muted}>{texts.noteAdvice}</p>
    </Section>
  )
}

function LedgerKeys() {
  const texts = useMessages(messages)
  const formats = useFormats()
  const keys = useQuery(ledgerKeysQuery)
  if (keys.isPending) return <Loading />
  if (!keys.data) return <Problem error={keys.error} onRetry={() => keys.refetch()} />
  return (
    <Section title={texts.keys}>
      <Table label={texts.keys} headers={[texts.key, texts.created, texts.retired]}>
        {keys.data.map(({ key, created_at, retired_at }) => (
          <tr key={key}>
            <td>
              <code>{key}</code>
            </td>
            <td>{formats.date(created_at)}</td>
            <td>{retired_at === null ? <Badge kind="positive">{texts.inUse}</Badge> : formats.date(retired_at)}</td>
          </tr>
        ))}
      </Table>
    </Section>
  )
}
