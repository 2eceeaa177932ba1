import { ReceiptError, type VerifiedReceipt, verifyReceipt } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { useFormats, useLanguage, useMessages } from '../app/language.tsx'
import { Button } from '../ui/button.tsx'
import { TextField } from '../ui/field.tsx'
import { FileDrop } from '../ui/file-drop.tsx'
import { Loaded } from '../ui/loaded.tsx'
import { Badge, Facts, Notice, Page, Problem, Section } from '../ui/page.tsx'
import { saveBlob } from '../ui/save-blob.ts'
import { Table } from '../ui/table.tsx'
import styles from './consents.module.css'
import { entryLabels, messages } from './messages.ts'
import { checkpointQuery, ledgerKeysQuery } from './queries.ts'
import { translatedReceipt } from './receipt-sentences.ts'

/** The page of the ledger: its sealed size, its keys, and the verification of receipts. */
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
  return (
    <Loaded query={checkpoint}>
      {({ origin, size, root_hash, note }) => (
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
          <p className="muted">{texts.noteAdvice}</p>
        </Section>
      )}
    </Loaded>
  )
}

function LedgerKeys() {
  const texts = useMessages(messages)
  const formats = useFormats()
  const query = useQuery(ledgerKeysQuery)
  return (
    <Loaded query={query}>
      {keys => (
        <Section title={texts.keys}>
          <Table label={texts.keys} headers={[texts.key, texts.created, texts.retired]}>
            {keys.map(({ key, created_at, retired_at }) => (
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
      )}
    </Loaded>
  )
}

/** Verifies a receipt in the browser. No request is sent. */
function VerifyReceipt() {
  const texts = useMessages(messages)
  const [receipt, setReceipt] = useState<File | null>(null)
  const [text, setText] = useState<File | null>(null)
  const [key, setKey] = useState('')
  return (
    <Section title={texts.verify}>
      <div className={styles.verify}>
        <p className="muted">{texts.verifyAdvice}</p>
        <FileDrop onChoose={setReceipt}>
          <strong>{texts.dropReceipt}</strong>
        </FileDrop>
        <TextField label={texts.trustedKey} help={texts.trustedKeyHelp} value={key} onChange={setKey} />
        <label className={styles.file}>
          {texts.textFile}
          <input type="file" onChange={event => setText(event.target.files?.[0] ?? null)} />
        </label>
        {receipt && <Verdict receipt={receipt} text={text} trustedKey={key.trim()} />}
      </div>
    </Section>
  )
}

type Outcome = { verified: VerifiedReceipt } | { error: unknown }

function Verdict({ receipt, text, trustedKey }: { receipt: File; text: File | null; trustedKey: string }) {
  const texts = useMessages(messages)
  const { language } = useLanguage()
  const [outcome, setOutcome] = useState<Outcome | null>(null)
  useEffect(() => {
    let isCurrent = true
    verify(receipt, text, trustedKey)
      .then(verified => ({ verified }))
      .catch(error => ({ error }))
      .then(result => isCurrent && setOutcome(result))
    return () => {
      isCurrent = false
    }
  }, [receipt, text, trustedKey])
  if (!outcome) return null
  if ('verified' in outcome) return <Verified receipt={outcome.verified} isKeyGiven={trustedKey !== ''} />
  if (!(outcome.error instanceof ReceiptError)) return <Problem error={outcome.error} />
  const { part, message } = outcome.error
  return (
    <Notice kind="error" title={texts.invalid(part)}>
      <p>{translatedReceipt(language, message) ?? message}</p>
    </Notice>
  )
}

const bytesOf = async (file: File) => new Uint8Array(await file.arrayBuffer())

const verify = async (receipt: File, text: File | null, key: string): Promise<VerifiedReceipt> =>
  verifyReceipt(await bytesOf(receipt), { ...(key !== '' && { key }), ...(text && { text: await bytesOf(text) }) })

function Verified({ receipt, isKeyGiven }: { receipt: VerifiedReceipt; isKeyGiven: boolean }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const labels: Record<string, unknown> = useMessages(entryLabels)
  const { entry, key, index, size, text } = receipt
  return (
    <>
      <Notice kind="success" title={texts.valid} />
      <h3>{texts.entry}</h3>
      <Facts facts={Object.entries(entry).map(([name, value]) => [String(labels[name] ?? name), String(value)])} />
      <h3>{texts.proved}</h3>
      <ul className={styles.list}>
        <li>
          {texts.provedKey} <code>{key}</code>
        </li>
        <li>{texts.provedEntry(formats.number(index), formats.number(size))}</li>
        {text !== 'none' && <li>{texts.provedText}</li>}
      </ul>
      <h3>{texts.notProved}</h3>
      <ul className={styles.list}>
        {!isKeyGiven && <li>{texts.notProvedKey}</li>}
        <li>{texts.notProvedLog}</li>
        <li>{texts.notProvedPerson}</li>
        {text === 'none' && <li>{texts.notProvedText}</li>}
        <li>{texts.notProvedLater}</li>
      </ul>
    </>
  )
}
