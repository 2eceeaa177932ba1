import type { Segment } from '@kith/client'
import { client, useWrite } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { ConfirmDialog } from '../ui/dialog.tsx'
import { messages } from './messages.ts'

type DeleteSegmentDialogProps = { segment: Segment; onClose(): void; onDeleted(): void }

/** Asks before a segment is deleted. */
export default function DeleteSegmentDialog({ segment, onClose, onDeleted }: DeleteSegmentDialogProps) {
  const texts = useMessages(messages)
  const remove = useWrite(() => client.segments.delete(segment.key), { refresh: [['segments']], onSuccess: onDeleted })
  return (
    <ConfirmDialog
      title={texts.deleteSegmentTitle(segment.name)}
      action={texts.delete}
      write={remove}
      onClose={onClose}
    >
      <p>{texts.deleteSegmentText}</p>
    </ConfirmDialog>
  )
}
