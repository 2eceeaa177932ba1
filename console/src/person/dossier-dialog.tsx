import type { Person } from '@kith/client'
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

/** Downloads everything that is held about a person. */
export function DossierDialog({ id, person, onClose }: DossierDialogProps) {
  const texts = useMessages(rightsMessages)
  const { cancel, close } = useMessages(messages)
  const formats = useFormats()
  const [{ count, state, error }, setProgress] = useState<Progress>({ count: 0, state: 'idle' })
  const controller = useRef<AbortController>(null)
  useEffect(() => () => controller.current?.abort(), [])
  const start = async () => {
    controller.current = new AbortController()
    const { signal } = controller.current
    const lines: string[] = []
    setProgress({ count: 0, state: 'running' })
    try {
      for await (const line of client.people.dossierById(id, { signal })) {
        lines.push(`${JSON.stringify(line)}\n`)
        if (lines.length % linesPerUpdate === 0) setProgress({ count: lines.length, state: 'running' })
      }
      saveBlob(
        new Blob(lines, { type: 'application/x-ndjson' }),
        `dossier-${fileNameOf(person?.external_id ?? id)}.ndjson`,
      )
      setProgress({ count: lines.length, state: 'done' })
    } catch (error) {
      if (!signal.aborted) setProgress({ count: lines.length, state: 'failed', error })
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
        <Button look="primary" onPress={start} isPending={state === 'running'} autoFocus>
          {state === 'done' ? texts.dossierAgain : texts.dossierStart}
        </Button>
      </Actions>
    </Dialog>
  )
}
