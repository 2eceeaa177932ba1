import { useMemo, useState } from 'react'
import { useFormats, useMessages } from '../app/language.tsx'
import { Button } from '../ui/button.tsx'
import { TextField } from '../ui/field.tsx'
import type { ImportRun } from './import-run.ts'
import { messages } from './messages.ts'
import type { RefusedLine } from './refused-lines.ts'
import { type RepeatedFault, repeatedFaults } from './repeated-faults.ts'
import styles from './transfer.module.css'

/** The cells that many lines were refused for, each with another value for all of them. */
export function RepeatedFaultList({ run, lines }: { run: ImportRun; lines: readonly RefusedLine[] }) {
  const { fields } = run.job
  const faults = useMemo(() => repeatedFaults(lines, fields), [lines, fields])
  return faults.map(fault => <Replacement key={`${fault.column} ${fault.cell}`} run={run} fault={fault} />)
}

function Replacement({ run, fault: { column, cell, count } }: { run: ImportRun; fault: RepeatedFault }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const [other, setOther] = useState('')
  const name = run.job.head?.names[column] ?? ''
  return (
    <form
      className={styles.replacement!}
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
