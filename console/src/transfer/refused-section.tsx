import { useMemo, useState } from 'react'
import { refusedName } from '../../../transfer/refused.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { Button } from '../ui/button.tsx'
import { TextField } from '../ui/field.tsx'
import { FormDialog } from '../ui/form.tsx'
import { Badge, Notice, Section } from '../ui/page.tsx'
import { saveBlob } from '../ui/save-blob.ts'
import { type Column, VirtualTable } from '../ui/virtual-table.tsx'
import type { ImportRun, ImportRunState } from './import-run.ts'
import { messages } from './messages.ts'
import { nameOfPath, type RefusedLine } from './refused-lines.ts'
import styles from './transfer.module.css'
import { useRefusalTexts } from './use-refusal-texts.ts'

/** The refused lines with their reasons. They can be corrected and sent again, or downloaded. */
export function RefusedSection({ run, state }: { run: ImportRun; state: ImportRunState }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const [mending, setMending] = useState<RefusedLine | null>(null)
  const { refusedLines, furtherRefused } = state
  const { refusalTexts } = useRefusalTexts()
  const reasonOf = (refusal: RefusedLine['refusal']) =>
    refusalTexts(refusal)
      .map(({ path, text }) => `${run.columnNameOf(path)} ${text}`.trim())
      .join('; ')
  const columns: Column<RefusedLine>[] = [
    {
      ...{ key: 'line', header: texts.line, minWidth: 110, grow: 0.2, align: 'end' },
      render: ({ line }) => formats.number(line),
    },
    {
      ...{ key: 'reason', header: texts.reason, minWidth: 240, grow: 2 },
      render: ({ refusal, isMended }) => (
        <>
          {isMended && <Badge kind="positive">{texts.mended}</Badge>}{' '}
          <span title={reasonOf(refusal)}>{reasonOf(refusal)}</span>
        </>
      ),
    },
    { key: 'content', header: texts.content, minWidth: 200, grow: 2, render: ({ content }) => summary(content) },
    {
      ...{ key: 'mend', header: texts.mend, minWidth: 130, grow: 0.3 },
      render: line => (
        <button
          type="button"
          className={styles.linkButton}
          aria-label={texts.mendLine(formats.number(line.line))}
          onClick={() => setMending(line)}
          disabled={run.isActive}
        >
          {texts.mend}
        </button>
      ),
    },
  ]
  const { isDryRun, setup, start } = run.plan
  const again = isDryRun ? texts.checkAgain : texts.sendAgain
  const download = () => saveBlob(run.refusedFile(), refusedName(setup.file.name, start === null ? 'ndjson' : 'csv'))
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
      <p className="muted">{texts.refusedAdvice}</p>
      <RepeatedFaultList run={run} lines={refusedLines} />
      {furtherRefused > 0 && <p>{texts.further(formats.number(furtherRefused))}</p>}
      <div className={styles.refused}>
        <VirtualTable
          label={`${texts.refusedLines}: ${formats.number(refusedLines.length)}`}
          columns={columns}
          rows={refusedLines}
          rowKey={({ line }) => String(line)}
          total={refusedLines.length}
        />
      </div>
      {mending && <MendDialog run={run} line={mending} onClose={() => setMending(null)} />}
    </Section>
  )
}

function summary(content: RefusedLine['content']): string {
  if (typeof content === 'string') return content.slice(0, 300)
  const cells = content.filter(cell => cell !== '').map(cell => cell.slice(0, 100))
  return cells.join(' · ').slice(0, 300)
}

/** The cells that caused many refusals, each with a replacement for all of its lines. */
function RepeatedFaultList({ run, lines }: { run: ImportRun; lines: readonly RefusedLine[] }) {
  const { mapping } = run.plan.setup
  const faults = useMemo(() => repeatedFaults(lines, mapping), [lines, mapping])
  return faults.map(fault => <Replacement key={`${fault.column} ${fault.cell}`} run={run} fault={fault} />)
}

function Replacement({ run, fault: { column, cell, count } }: { run: ImportRun; fault: RepeatedFault }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const [other, setOther] = useState('')
  const name = run.plan.start?.names[column] ?? ''
  return (
    <form
      className={styles.replacement}
      onSubmit={event => {
        event.preventDefault()
        void run.replace(column, cell, other)
      }}
    >
      <TextField
        label={texts.sameValue(formats.number(count), name, cell.slice(0, 100))}
        help={texts.replaceHelp}
        value={other}
        onChange={setOther}
      />
      <Button type="submit" isDisabled={run.isActive}>
        {texts.replaceAll(formats.number(count))}
      </Button>
    </form>
  )
}

/** A cell that caused several refusals: the index of its column, and the message of one of them. */
type RepeatedFault = { column: number; cell: string; count: number; message: string }

/** The maximum number of shown faults, the most frequent first. */
const maxFaults = 5

/** Finds the cells that caused at least two refusals. `fields` are the fields of the columns. */
function repeatedFaults(lines: readonly RefusedLine[], fields: readonly (string | null)[]): RepeatedFault[] {
  const faults = new Map<string, RepeatedFault>()
  for (const { content, refusal, isMended } of lines) {
    if (typeof content === 'string' || isMended) continue
    for (const { path, message } of refusal.details) {
      const column = fields.indexOf(nameOfPath(path))
      const cell = content[column]
      if (!cell) continue
      const key = `${column} ${cell}`
      const fault = faults.get(key) ?? { column, cell, count: 0, message }
      faults.set(key, { ...fault, count: fault.count + 1 })
    }
  }
  const repeated = [...faults.values()].filter(({ count }) => count > 1)
  return repeated.sort((a, b) => b.count - a.count).slice(0, maxFaults)
}

/** Lets a person correct the cells of a refused record, or the text of a refused line. */
function MendDialog({ run, line, onClose }: { run: ImportRun; line: RefusedLine; onClose: () => void }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const names = run.plan.start?.names ?? []
  const [content, setContent] = useState(() => padded(line.content, names.length))
  const submit = () => {
    run.mend(line.line, content)
    onClose()
  }
  const faults = useRefusalTexts().refusalTexts(line.refusal)
  return (
    <FormDialog
      title={texts.mendLine(formats.number(line.line))}
      size="wide"
      onSubmit={submit}
      submit={texts.keepMended}
      onClose={onClose}
    >
      <Notice kind="caution">
        {faults.map(({ path, text }) => (
          <p key={`${path} ${text}`}>
            {path && <code>{run.columnNameOf(path)}</code>} {text}
          </p>
        ))}
      </Notice>
      {typeof content === 'string' ? (
        <TextField
          label={names.length > 0 ? texts.recordText : texts.jsonLine}
          rows={8}
          value={content}
          onChange={setContent}
          autoFocus
        />
      ) : (
        content.map((cell, index) => (
          <TextField
            // biome-ignore lint/suspicious/noArrayIndexKey: a cell has no other identity than its place
            key={index}
            label={names[index] || `${texts.column} ${index + 1}`}
            value={cell}
            autoFocus={index === 0}
            onChange={text => setContent(content.with(index, text))}
          />
        ))
      )}
    </FormDialog>
  )
}

/** A record with too few cells gets empty ones, so that each column can be filled. */
function padded(content: RefusedLine['content'], length: number): RefusedLine['content'] {
  if (typeof content === 'string') return content
  return Array.from({ length: Math.max(length, content.length) }, (_, index) => content[index] ?? '')
}
