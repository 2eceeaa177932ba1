import { isKithError, type Person } from '@kith/client'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { client } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { Button } from '../ui/button.tsx'
import { Actions, Dialog } from '../ui/dialog.tsx'
import { Notice, Problem } from '../ui/notice.tsx'
import { messages } from './messages.ts'
import { nameOf } from './person-address.ts'

type DeleteDialogProps = { person: Person; onClose: () => void; onRefresh: (() => void) | undefined }

/** Asks before the person is deleted. Then the page shows the deleted person, who can be restored. */
export function DeleteDialog({ person, onClose, onRefresh }: DeleteDialogProps) {
  const texts = useMessages(messages)
  const navigate = useNavigate()
  const queryClient = useQueryClient()
  const remove = useMutation({
    mutationFn: () => client.people.delete({ id: person.id }, { ifMatch: person.version }),
    onSuccess: async () => {
      onClose()
      await navigate({
        to: '/people/$externalId',
        params: { externalId: person.id },
        search: { by: 'id' },
        replace: true,
      })
      await queryClient.invalidateQueries({ queryKey: ['people'] })
    },
    onError: error => isKithError(error) && error.status === 412 && onRefresh?.(),
  })
  const hasChanged = isKithError(remove.error) && remove.error.status === 412
  return (
    <Dialog title={texts.deleteTitle(nameOf(person))} isOpen onClose={onClose} isAlert>
      <p>{texts.deleteAdvice}</p>
      {hasChanged ? (
        <Notice kind="caution" title={texts.changedMeanwhile} />
      ) : (
        remove.error && <Problem error={remove.error} />
      )}
      <Actions>
        <Button onPress={onClose} autoFocus>
          {texts.cancel}
        </Button>
        <Button look="danger" onPress={() => remove.mutate()} isPending={remove.isPending}>
          {remove.isPending ? `${texts.deleting}…` : texts.deleteNow}
        </Button>
      </Actions>
    </Dialog>
  )
}
