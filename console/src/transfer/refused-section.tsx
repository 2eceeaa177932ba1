import { useState } from 'react'
import { refusedName } from '../../../transfer/refused.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { Button } from '../ui/button.tsx'
import { Badge, Section } from '../ui/page.tsx'
import { saveBlob } from '../ui/save-blob.ts'
import { type Column, VirtualTable } from '../ui/virtual-table.tsx'
import { columnNameOf, type ImportRun, type ImportRunState } from './import-run.ts'
import { MendDialog } from './mend-dialog.tsx'
import { messages } from './messages.ts'
import type { RefusedLine } from './refused-lines.ts'
import { RepeatedFaultList } from './repeated-fault-list.tsx'
import styles from './transfer.module.css'
import { useRefusalTexts } from './use-refusal-texts.ts'

/** The refused lines with their reasons. They can be mended and sent again, or downloaded. */
export function RefusedSection({ run, state }: { run: ImportRun; state: ImportRunState }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const [mending, setMending] = useState<RefusedLine | null>(null)
  const { refusedLines, furtherRefused } = state
  const { refusalTexts } = useRefusalTexts()
  const reasonOf = (refusal: RefusedLine['refusal']) =>
    refusalTexts(refusal)
      .map(({ path, text }) => `${columnNameOf(run.job, path)} ${text}`.trim())
      .join('; ')
  const columns: Column<RefusedLine>[] = [
    {
      key: 'line',
      header: texts.line,
      minWidth: 110,
      grow: 0.2,
      align: 'end',
      render: ({ line }) => formats.number(line),
    },
    {
      key: 'reason',
      header: texts.reason,
      minWidth: 240,
      grow: 2,
      render: ({ refusal, isMended }) => (
        <>
          {isMended && <Badge kind="positive">{texts.mended}</Badge>}{' '}
          <span title={reasonOf(refusal)}>{reasonOf(refusal)}</span>
        </>
      ),
    },
    { key: 'content', header: texts.content, minWidth: 200, grow: 2, render: ({ content }) => summary(content) },
    {
      key: 'mend',
      header: texts.mend,
      minWidth: 130,
      grow: 0.3,
      render: line => (
        <button
          type="button"
          className={styles.linkButton!}
          aria-label={texts.mendLine(formats.number(line.line))}
          onClick={() => setMending(line)}
          disabled={run.isActive}
        >
          {texts.mend}
        </button>
      ),
    },
  ]
  const { isDryRun, fileName, head } = run.job
  const again = isDryRun ? texts.checkAgain : texts.sendAgain
  const download = () => saveBlob(run.refusedFile(), refusedName(fileName, head === null ? 'ndjson' : 'csv'))
  return (
    <Section
      title={texts.refusedLines}
      actions={
        <>
          <Button onPress={download}>{texts.download}</Button>
          <Button look="primary" isDisabled={run.isActive || refusedLines.length === 0} onPress={() => run.resend()}>
            {again(formats.number(refusedLines.length))}
          </Button>
        </>
      }
    >
      <p className={styles.muted!}>{texts.refusedAdvice}</p>
      <RepeatedFaultList run={run} lines={refusedLines} />
      {furtherRefused > 0 && <p>{texts.further(formats.number(furtherRefused))}</p>}
      <div className={styles.refused!}>
        <VirtualTable
          label={`${texts.refusedLines}: ${formats.number(refusedLines.length)}`}
          columns={columns}
          rows={refusedLines}
          rowKey={({ line }) => String(line)}
          total={refusedLines.length}
        />
      </div>
      {mending && (
        <MendDialog
          line={mending}
          names={head?.names ?? []}
          nameOf={path => columnNameOf(run.job, path)}
          onClose={() => setMending(null)}
          onMend={content => {
            run.mend(mending.line, content)
            setMending(null)
          }}
        />
      )}
    </Section>
  )
}

const summary = (content: RefusedLine['content']) =>
  (typeof content === 'string'
    ? content
    : content
        .filter(cell => cell !== '')
        .map(cell => cell.slice(0, 100))
        .join(' · ')
  ).slice(0, 300)
