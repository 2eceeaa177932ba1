import { useSyncExternalStore } from 'react'
import { useFormats, useMessages } from '../app/language.tsx'
import { Button } from '../ui/button.tsx'
import { Actions } from '../ui/dialog.tsx'
import { Notice, Problem } from '../ui/page.tsx'
import type { ImportRun, ImportRunState } from './import-run.ts'
import { messages } from './messages.ts'
import { RefusedSection } from './refused-section.tsx'
import { isSignedOut } from './run.ts'
import { startImport } from './start-import.ts'
import styles from './transfer.module.css'

type RunPanelProps = {
  run: ImportRun
  /** Returns to the columns, if the page still has them. */
  onBack: (() => void) | null
  onAnotherFile: () => void
}

/** A running or finished import: its progress, its results, and its refusals. */
export function RunPanel({ run, onBack, onAnotherFile }: RunPanelProps) {
  const texts = useMessages(messages)
  const state = useSyncExternalStore(run.subscribe, run.getState)
  const { isDryRun } = run.plan
  return (
    <>
      <Outcome run={run} state={state} />
      {state.pause && <PauseNotice run={run} pause={state.pause} />}
      <CountList state={state} isDryRun={isDryRun} />
      <Actions>
        {run.isActive ? (
          <Button onPress={() => run.cancel()}>{texts.cancel}</Button>
        ) : (
          <>
            <Button onPress={onAnotherFile}>{texts.anotherFile}</Button>
            {onBack && <Button onPress={onBack}>{texts.changeMapping}</Button>}
            {isDryRun && (
              <Button look="primary" onPress={() => startImport(run.planAfterCheck())}>
                {texts.importNow}
              </Button>
            )}
          </>
        )}
      </Actions>
      {state.failed > 0 && <RefusedSection run={run} state={state} />}
    </>
  )
}

function Outcome({ run, state }: { run: ImportRun; state: ImportRunState }) {
  const texts = useMessages(messages)
  const { isDryRun, setup } = run.plan
  const done = isDryRun ? texts.checked : `${texts.imported}: ${setup.file.name}`
  if (state.phase === 'done') return <Notice kind="success" title={done} />
  const cancelled = isDryRun ? texts.cancelledCheck : texts.cancelled
  if (state.phase === 'cancelled') return <Notice kind="caution" title={cancelled} />
  if (state.phase === 'failed')
    return (
      <>
        <Problem error={state.error} />
        <Notice kind="caution" title={texts.failed}>
          {!isDryRun && <p>{texts.failedAdvice}</p>}
        </Notice>
      </>
    )
  return <Progress run={run} state={state} />
}

function Progress({ run, state }: { run: ImportRun; state: ImportRunState }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const { isDryRun, setup } = run.plan
  const { name, size } = setup.file
  const fraction = size === 0 ? 1 : Math.min(1, state.doneBytes / size)
  const seconds = state.workMs / 1_000
  const rate = seconds > 0 ? Math.round(state.received / seconds) : 0
  const secondsLeft = Math.ceil((seconds * (1 - fraction)) / fraction)
  const left = secondsLeft < 90 ? texts.seconds(secondsLeft) : texts.minutes(Math.round(secondsLeft / 60))
  return (
    <div className={styles.progress}>
      <p className={styles.fileName}>
        <strong>{isDryRun ? texts.checking : texts.importing}</strong> · {name}
      </p>
      <progress aria-label={texts.progress} value={fraction} />
      <p className="muted">
        {formats.percent(fraction)}
        {rate > 0 && ` · ${texts.rate(formats.number(rate))}`}
        {fraction > 0 && rate > 0 && ` · ${texts.left(left)}`}
      </p>
    </div>
  )
}

function PauseNotice({ run, pause }: { run: ImportRun; pause: NonNullable<ImportRunState['pause']> }) {
  const texts = useMessages(messages)
  const { error, isDoubling } = pause
  const advice = isSignedOut(error) ? texts.pausedSignedOut : isDoubling ? texts.pausedDoubling : texts.pausedAdvice
  return (
    <Notice kind="caution" title={texts.paused}>
      <p>{(error as Error).message}</p>
      <p>{advice}</p>
      <div className="row">
        <Button onPress={() => run.goOn()}>{isDoubling ? texts.sendAgainAnyway : texts.goOn}</Button>
        {isDoubling && <Button onPress={() => run.goOn('leave out')}>{texts.leaveOut}</Button>}
      </div>
    </Notice>
  )
}

function CountList({ state, isDryRun }: { state: ImportRunState; isDryRun: boolean }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const counts: [string, number][] = [
    [texts.received, state.received],
    [isDryRun ? texts.wouldCreate : texts.created, state.created],
    [isDryRun ? texts.wouldChange : texts.updated, state.updated],
    [isDryRun ? texts.wouldStay : texts.unchanged, state.unchanged],
    [texts.refused, state.failed],
  ]
  const rare: [string, number][] = [
    [texts.overwriting, state.overwriting],
    [texts.sharing, state.sharing],
    [texts.noPhone, state.warnings],
    [texts.skipped, state.leftOut],
  ]
  return (
    <dl className={styles.counts}>
      {[...counts, ...rare.filter(([, count]) => count > 0)].map(([name, count]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{formats.number(count)}</dd>
        </div>
      ))}
    </dl>
  )
}
