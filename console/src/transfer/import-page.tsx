import type { Definitions } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { type DragEvent, lazy, Suspense, useState } from 'react'
import { formatOfName } from '../../../transfer/file.ts'
import { useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { schemaQuery } from '../entity/schema.ts'
import { Loading, Page, Problem } from '../ui/page.tsx'
import { Select } from '../ui/select.tsx'
import { showRun, useCurrentRun } from './current-run.ts'
import type { ImportSetup } from './import-setup.ts'
import { messages } from './messages.ts'
import styles from './transfer.module.css'

// The parsers come when a file is chosen.
const loadReader = () => import('./file-reader.ts')
const RunPanel = lazy(async () => ({ default: (await import('./run-panel.tsx')).RunPanel }))
const SetupForm = lazy(async () => ({ default: (await import('./setup-form.tsx')).SetupForm }))

/** The page that imports a file: choose it, map its columns, check it, import it, and mend what was refused. */
export function ImportPage() {
  const texts = useMessages(messages)
  const run = useCurrentRun()
  const definitions = useQuery(schemaQuery)
  const [setup, setSetup] = useState<ImportSetup | null>(null)
  const chooseFile = async (file: File, owner: string) => {
    showRun(null)
    const { defaultReadOptions } = await loadReader()
    const format = formatOfName(file.name) ?? 'csv'
    setSetup({
      file,
      owner,
      options: { ...defaultReadOptions, format },
      mapping: [],
      match: ['external_id'],
      isCreateOnly: false,
      takesShared: false,
      areAnswersOfNow: false,
      addsToLists: false,
      origin: { method: null, source: '', day: '' },
      phoneCountry: null,
    })
  }
  const startAnew = () => {
    showRun(null)
    setSetup(null)
  }
  const content = () => {
    if (run) return <RunPanel run={run} onBack={setup && (() => showRun(null))} onAnotherFile={startAnew} />
    if (definitions.error) return <Problem error={definitions.error} onRetry={() => definitions.refetch()} />
    if (!definitions.data) return <Loading />
    if (!setup) return <FileChoice definitions={definitions.data} onChoose={chooseFile} />
    return <SetupForm setup={setup} definitions={definitions.data} onChange={setSetup} onAnotherFile={startAnew} />
  }
  return (
    <Page title={texts.importTitle} subtitle={texts.importSubtitle}>
      <Suspense fallback={<Loading />}>{content()}</Suspense>
    </Page>
  )
}

type FileChoiceProps = {
  definitions: Definitions
  onChoose: (file: File, owner: string) => void
}

/** Asks for the file, and for what it has. A file can be dropped or chosen. */
export function FileChoice({ definitions, onChoose }: FileChoiceProps) {
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
    <div className={styles.choice}>
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
        className={isOver ? `${styles.drop} ${styles.over}` : styles.drop}
        onDragOver={event => {
          event.preventDefault()
          setOver(true)
        }}
        onDragLeave={() => setOver(false)}
        onDrop={drop}
      >
        <strong>{texts.dropFile}</strong>
        <span className="muted">{texts.fileHelp}</span>
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
