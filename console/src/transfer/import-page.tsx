import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { formatOfName } from '../../../transfer/file.ts'
import { useMessages } from '../app/language.tsx'
import { schemaQuery } from '../entity/schema.ts'
import { Problem } from '../ui/notice.tsx'
import { Loading, Page } from '../ui/page.tsx'
import { showRun, useCurrentRun } from './current-run.ts'
import { FileChoice } from './file-choice.tsx'
import { defaultReadOptions } from './file-reader.ts'
import type { ImportSetup } from './import-setup.ts'
import { messages } from './messages.ts'
import { RunPanel } from './run-panel.tsx'
import { SetupForm } from './setup-form.tsx'

/** The page that imports a file: choose it, map its columns, check it, import it, and mend what was refused. */
export function ImportPage() {
  const texts = useMessages(messages)
  const run = useCurrentRun()
  const definitions = useQuery(schemaQuery)
  const [setup, setSetup] = useState<ImportSetup | null>(null)
  const chooseFile = (file: File, owner: string) => {
    showRun(null)
    const format = formatOfName(file.name) ?? 'csv'
    setSetup({
      file,
      owner,
      options: { ...defaultReadOptions, format },
      mapping: [],
      match: ['external_id'],
      isCreateOnly: false,
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
      {content()}
    </Page>
  )
}
