import type { Definitions } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useState } from 'react'
import { formatOfName } from '../../../transfer/file.ts'
import { useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { schemaQuery } from '../entity/schema.ts'
import { FileDrop } from '../ui/file-drop.tsx'
import { Loading, Page, Problem } from '../ui/page.tsx'
import { Select } from '../ui/select.tsx'
import { useUnsaved } from '../ui/use-unsaved.ts'
import { showRun, useCurrentRun } from './current-run.ts'
import type { ImportSetup } from './import-run.ts'
import { messages } from './messages.ts'
import styles from './transfer.module.css'

// The parsers load when a file is chosen.
const loadReader = () => import('./file-reader.ts')
const RunPanel = lazy(async () => ({ default: (await import('./run-panel.tsx')).RunPanel }))
const SetupForm = lazy(async () => ({ default: (await import('./setup-form.tsx')).SetupForm }))

/** The page that imports a file: choose it, map its columns, check it, import it, and correct the refused lines. */
export function ImportPage() {
  const texts = useMessages(messages)
  const run = useCurrentRun()
  const definitions = useQuery(schemaQuery)
  const [setup, setSetup] = useState<ImportSetup | null>(null)
  // The chosen columns are lost with the page, because it does not store the file.
  useUnsaved(() => run === null && setup !== null && setup.mapping.length > 0)
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

type FileChoiceProps = { definitions: Definitions; onChoose: (file: File, owner: string) => void }

/** Asks for the file, and for its content. A file can be dropped or chosen. */
function FileChoice({ definitions, onChoose }: FileChoiceProps) {
  const texts = useMessages(messages)
  const mayWriteRecords = useScope('records:write')
  const [owner, setOwner] = useState('people')
  const stacks = mayWriteRecords ? definitions.stacks : []
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
      <FileDrop accept=".csv,.tsv,.txt,.ndjson,.jsonl,.gz" onChoose={file => onChoose(file, owner)}>
        <strong>{texts.dropFile}</strong>
        <span className="muted">{texts.fileHelp}</span>
      </FileDrop>
    </div>
  )
}
