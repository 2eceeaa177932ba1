import { type ReactNode, useState, useSyncExternalStore } from 'react'
import { useFormats, useMessages } from '../app/language.tsx'
import { Button } from '../ui/button.tsx'
import { Actions } from '../ui/dialog.tsx'
import { Checkbox } from '../ui/field.tsx'
import { Notice, Problem } from '../ui/page.tsx'
import { saveBlob } from '../ui/save-blob.ts'
import type { ExportRun } from './export-run.ts'
import { messages } from './messages.ts'
import styles from './transfer.module.css'

/** An export of a page. Its file is saved at the end. `create` makes its run. */
export function useExport(create: () => ExportRun) {
  const [run, setRun] = useState<ExportRun | null>(null)
  useSyncExternalStore(run?.subscribe ?? subscribeToNothing, () => run?.getState() ?? null)
  const start = async () => {
    const next = create()
    setRun(next)
    const file = await next.start()
    if (file) saveBlob(file, next.fileName)
  }
  return { run, isActive: run?.isActive ?? false, start }
}

const subscribeToNothing = () => () => {}

type ExportPanelProps = ReturnType<typeof useExport> & { children?: ReactNode }

/**
 * The progress of an export, and the buttons that start and cancel it. `children` are further buttons beside the start.
 */
export function ExportPanel({ run, isActive, start, children }: ExportPanelProps) {
  const texts = useMessages(messages)
  return (
    <>
      {run && <ExportProgress key={run.fileName} run={run} />}
      <Actions>
        {isActive && <Button onPress={() => run?.cancel()}>{texts.cancel}</Button>}
        {!isActive && children}
        {!isActive && (
          <Button look="primary" onPress={start}>
            {texts.startExport}
          </Button>
        )}
      </Actions>
    </>
  )
}

/** Whether texts that a spreadsheet would run as formulas are escaped in a CSV file. */
export function SpreadsheetChoice({ isSafe, onChange }: { isSafe: boolean; onChange: (isSafe: boolean) => void }) {
  const texts = useMessages(messages)
  return (
    <div>
      <Checkbox isSelected={isSafe} onChange={onChange}>
        {texts.safeFormulas}
      </Checkbox>
      <p className="muted">{texts.safeFormulasHelp}</p>
    </div>
  )
}

function ExportProgress({ run }: { run: ExportRun }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const { phase, pause, total, count, bytes, error } = useSyncExternalStore(run.subscribe, run.getState)
  const { fileName } = run
  const shown = formats.number(count)
  return (
    <>
      {run.isActive && (
        <div className={styles.progress}>
          <p className={styles.fileName}>
            <strong>{texts.exporting}</strong> · {fileName}
          </p>
          <progress aria-label={texts.exporting} {...(total !== null && { value: total === 0 ? 1 : count / total })} />
          <p className="muted">
            {total === null ? shown : texts.exportedOf(shown, formats.number(total))} · {formats.bytes(bytes)}
          </p>
        </div>
      )}
      {pause && (
        <Notice kind="caution" title={texts.exportPaused}>
          <p>{(pause.error as Error).message}</p>
          <p>{texts.exportPausedAdvice}</p>
          <Button onPress={() => run.goOn()}>{texts.goOn}</Button>
        </Notice>
      )}
      {phase === 'done' && (
        <Notice kind="success" title={texts.exported(shown)}>
          <p>
            {fileName} · {formats.bytes(bytes)}
          </p>
          <Button onPress={() => saveBlob(run.file(), fileName)}>{texts.saveFile}</Button>
        </Notice>
      )}
      {phase === 'cancelled' && <Notice kind="caution" title={texts.exportCancelled} />}
      {phase === 'failed' && <Problem error={error} />}
    </>
  )
}
