import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useState } from 'react'
import { formatOfName } from '../../../transfer/file.ts'
import { useMessages } from '../app/language.tsx'
import { schemaQuery } from '../entity/schema.ts'
import { Problem } from '../ui/notice.tsx'
import { Loading, Page } from '../ui/page.tsx'
import { showRun, useCurrentRun } from './current-run.ts'
import { FileChoice } from './file-choice.tsx'
import type { ImportSetup } from './import-setup.ts'
import { messages } from './messages.ts'

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
