import type { StackRecord } from '@kith/client'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { client } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { Button } from '../ui/button.tsx'
import { Actions, Dialog } from '../ui/dialog.tsx'
import { Problem } from '../ui/notice.tsx'
import { messages } from './messages.ts'

/** Asks before it deletes a record. The page then shows the deleted record, which can be restored. */
export function DeleteDialog({ record, onClose }: { record: StackRecord; onClose: () => void }) {
  const texts = useMessages(messages)
  const queryClient = useQueryClient()
  const { stack_key: stackKey, record_id: recordId, external_id, version } = record
  const remove = useMutation({
    mutationFn: () => client.stack(stackKey).delete({ id: recordId }, { ifMatch: version }),
    onSuccess: () => {
      queryClient.removeQueries({ queryKey: ['records', stackKey, 'last-change', recordId] })
      return queryClient.resetQueries({ queryKey: ['records', stackKey] })
    },
  })
  return (
    <Dialog title={texts.deleteTitle(external_id ?? recordId)} isOpen isAlert onClose={onClose}>
      <p>{texts.deleteMeaning}</p>
      {remove.error && <Problem error={remove.error} />}
      <Actions>
        <Button onPress={onClose} autoFocus>
          {texts.cancel}
        </Button>
        <Button look="danger" onPress={() => remove.mutate()} isPending={remove.isPending}>
          {texts.delete}
        </Button>
      </Actions>
    </Dialog>
  )
}
