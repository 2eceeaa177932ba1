import type { StackRecord } from '@kith/client'
import { useQueryClient } from '@tanstack/react-query'
import { client } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { useWrite } from '../app/write.ts'
import { ConfirmDialog } from '../ui/confirm-dialog.tsx'
import { messages } from './messages.ts'

/** Asks before it deletes a record. The page then shows the deleted record, which can be restored. */
export function DeleteDialog({ record, onClose }: { record: StackRecord; onClose: () => void }) {
  const texts = useMessages(messages)
  const queryClient = useQueryClient()
  const { stack_key: stackKey, record_id: recordId, external_id, version } = record
  const remove = useWrite(() => client.stack(stackKey).deleteById(recordId, { ifMatch: version }), {
    onSuccess: () => {
      queryClient.removeQueries({ queryKey: ['records', stackKey, 'last-change', recordId] })
      return queryClient.resetQueries({ queryKey: ['records', stackKey] })
    },
  })
  return (
    <ConfirmDialog
      title={texts.deleteTitle(external_id ?? recordId)}
      action={texts.delete}
      write={remove}
      onClose={onClose}
    >
      <p>{texts.deleteMeaning}</p>
    </ConfirmDialog>
  )
}
