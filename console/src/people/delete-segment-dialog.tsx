import type { Segment } from '@kith/client'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { client } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { Button } from '../ui/button.tsx'
import { Actions, Dialog } from '../ui/dialog.tsx'
import { Problem } from '../ui/notice.tsx'
import { messages } from './messages.ts'

type DeleteSegmentDialogProps = { segment: Segment; onClose(): void; onDeleted(): void }

/** Asks before a segment is deleted. */
export default function DeleteSegmentDialog({ segment, onClose, onDeleted }: DeleteSegmentDialogProps) {
  const texts = useMessages(messages)
  const queryClient = useQueryClient()
  const { mutate, isPending, error } = useMutation({
    mutationFn: () => client.segments.delete(segment.key),
    onSuccess: async () => {
      onDeleted()
      await queryClient.invalidateQueries({ queryKey: ['segments'] })
    },
  })
  return (
    <Dialog title={texts.deleteSegmentTitle(segment.name)} isOpen isAlert onClose={onClose}>
      <p>{texts.deleteSegmentText}</p>
      {error && <Problem error={error} />}
      <Actions>
        <Button onPress={onClose} autoFocus>
          {texts.cancel}
        </Button>
        <Button look="danger" isPending={isPending} onPress={() => mutate()}>
          {texts.delete}
        </Button>
      </Actions>
    </Dialog>
  )
}
