import type { DossierLine, Person } from '@kith/client'
import { useEffect, useRef, useState } from 'react'
import { client } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { Button } from '../ui/button.tsx'
import { Actions, Dialog } from '../ui/dialog.tsx'
import { Notice, Problem } from '../ui/notice.tsx'
import { saveBlob } from '../ui/save-blob.ts'
import { fileNameOf } from './file-name.ts'
import { messages } from './messages.ts'
import { rightsMessages } from './rights-messages.ts'

type DossierDialogProps = { id: string; person: Person | undefined; onClose: () => void }

type Progress = { count: number; state: 'idle' | 'running' | 'done' | 'failed'; error?: unknown }

/** The page shows the progress every so many lines. */
const linesPerUpdate = 200

/** What a browser takes each kind of file for. */
const mediaTypes = { html: 'text/html', ndjson: 'application/x-ndjson' } as const

/** Prints a dossier: as a page to read, or as lines of JSON. */
async function* printDossier(lines: AsyncIterable<DossierLine>, format: keyof typeof mediaTypes) {
  if (format === 'html') {
    const { dossierPage } = await import('../../../cli/dossier/page.ts')
    yield* dossierPage(lines)
  } else for await (const line of lines) yield `${JSON.stringify(line)}\n`
}

/** Downloads everything that is held about a person. */
export function DossierDialog({ id, person, onClose }: DossierDialogProps) {
  const texts = useMessages(rightsMessages)
  const { cancel, close } = useMessages(messages)
  const formats = useFormats()
  const [{ count, state, error }, setProgress] = useState<Progress>({ count: 0, state: 'idle' })
  const controller = useRef<AbortController>(null)
  useEffect(() => () => controller.current?.abort(), [])
  const start = async (format: keyof typeof mediaTypes) => {
    controller.current = new AbortController()
    const { signal } = controller.current
    let count = 0
    async function* countedLines() {
      for await (const line of client.people.dossier({ id }, { signal })) {
        count += 1
        if (count % linesPerUpdate === 0) setProgress({ count, state: 'running' })
        yield line
      }
    }
    setProgress({ count, state: 'running' })
    try {
      const parts: string[] = []
      for await (const part of printDossier(countedLines(), format)) parts.push(part)
      const file = new Blob(parts, { type: mediaTypes[format] })
      saveBlob(file, `dossier-${fileNameOf(person?.external_id ?? id)}.${format}`)
      setProgress({ count, state: 'done' })
    } catch (error) {
      if (!signal.aborted) setProgress({ count, state: 'failed', error })
    }
  }
  return (
    <Dialog title={texts.dossierTitle} isOpen onClose={onClose}>
      <p>{texts.dossierAdvice}</p>
      {state === 'running' && <p role="status">{texts.dossierLines(count, formats.number(count))}</p>}
      {state === 'done' && <Notice kind="success" title={texts.dossierDone(formats.number(count))} />}
      {state === 'failed' && <Problem error={error} />}
      <Actions>
        <Button onPress={onClose}>{state === 'done' ? close : cancel}</Button>
        <Button onPress={() => start('ndjson')} isDisabled={state === 'running'}>
          {texts.dossierAsData}
        </Button>
        <Button look="primary" onPress={() => start('html')} isPending={state === 'running'} autoFocus>
          {texts.dossierAsPage}
        </Button>
      </Actions>
    </Dialog>
  )
}
