import type { Change } from '@kith/client'
import { useFormats, useMessages } from '../app/language.tsx'
import { CloseAction, Dialog } from '../ui/dialog.tsx'
import { Facts } from '../ui/page.tsx'
import { Table } from '../ui/table.tsx'
import { messages } from './messages.ts'

/** What a change did: who, when, and each field before and after. */
export function ChangeDialog({ change, onClose }: { change: Change; onClose: () => void }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const { sequence, subject, operation, external_id, id, stack_key, actor, at, request_id } = change
  return (
    <Dialog title={texts.change(formats.number(sequence))} isOpen onClose={onClose} size="wide">
      <Facts
        facts={[
          [texts.subject, `${stack_key ?? texts.subjects[subject]} ${external_id ?? id}`],
          [texts.operation, texts.operations[operation]],
          [texts.who, actor],
          [texts.at, formats.exactTime(at)],
          [texts.request, <code key="request">{request_id}</code>],
        ]}
      />
      <ChangedFields change={change} />
      <CloseAction onClose={onClose} />
    </Dialog>
  )
}

/** A row for each field that changed. */
export function ChangedFields({ change: { before, after } }: { change: Pick<Change, 'before' | 'after'> }) {
  const texts = useMessages(messages)
  const fields = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])]
  if (fields.length === 0) return null
  return (
    <Table label={texts.fields} headers={[texts.field, texts.before, texts.after]}>
      {fields.map(field => (
        <tr key={field}>
          <th scope="row">{field}</th>
          <td>{shown(before?.[field])}</td>
          <td>{shown(after?.[field])}</td>
        </tr>
      ))}
    </Table>
  )
}

function shown(value: unknown): string {
  if (value === undefined || value === null) return '—'
  return typeof value === 'string' ? value : JSON.stringify(value, undefined, 1)
}
