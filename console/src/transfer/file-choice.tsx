import type { Definitions } from '@kith/client'
import { type DragEvent, useState } from 'react'
import { useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { Select } from '../ui/select.tsx'
import { messages } from './messages.ts'
import styles from './transfer.module.css'

/** Asks for the file, and for what it has. A file can be dropped or chosen. */
export function FileChoice({
  definitions,
  onChoose,
}: {
  definitions: Definitions
  onChoose: (file: File, owner: string) => void
}) {
  const texts = useMessages(messages)
  const mayWriteRecords = useScope('records:write')
  const [owner, setOwner] = useState('people')
  const [isOver, setOver] = useState(false)
  const stacks = mayWriteRecords ? definitions.stacks : []
  const drop = (event: DragEvent) => {
    event.preventDefault()
    setOver(false)
    const file = event.dataTransfer.files[0]
    if (file) onChoose(file, owner)
  }
  return (
    <div className={styles.choice!}>
      <Select
        label={texts.target}
        options={[
          { value: 'people', label: texts.people },
          ...stacks.map(({ key, name }) => ({ value: key, label: name || key })),
        ]}
        value={owner}
        onChange={setOwner}
      />
      <label
        className={isOver ? `${styles.drop} ${styles.over}` : styles.drop!}
        onDragOver={event => {
          event.preventDefault()
          setOver(true)
        }}
        onDragLeave={() => setOver(false)}
        onDrop={drop}
      >
        <strong>{texts.dropFile}</strong>
        <span className={styles.muted!}>{texts.fileHelp}</span>
        <input
          type="file"
          accept=".csv,.tsv,.txt,.ndjson,.jsonl,.gz"
          onChange={event => {
            const file = event.target.files?.[0]
            if (file) onChoose(file, owner)
          }}
        />
      </label>
    </div>
  )
}
