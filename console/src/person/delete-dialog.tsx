import { isKithError, type Person } from '@kith/client'
import { useNavigate } from '@tanstack/react-router'
import { client } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { useWrite } from '../app/write.ts'
import { ConfirmDialog } from '../ui/confirm-dialog.tsx'
import { messages } from './messages.ts'
import { nameOf } from './person-address.ts'

type DeleteDialogProps = { person: Person; onClose: () => void; onRefresh: (() => void) | undefined }

/** Asks before the person is deleted. Then the page shows the deleted person, who can be restored. */
export function DeleteDialog({ person, onClose, onRefresh }: DeleteDialogProps) {
  const texts = useMessages(messages)
  const navigate = useNavigate()
  const remove = useWrite(() => client.people.deleteById(person.id, { ifMatch: person.version }), {
    onSuccess: () => {
      onClose()
      return navigate({
        to: '/people/$externalId',
        params: { externalId: person.id },
        search: { by: 'id' },
        replace: true,
      })
    },
    refresh: [['people']],
    onError: error => isKithError(error) && error.status === 412 && onRefresh?.(),
  })
  return (
    <ConfirmDialog
      title={texts.deleteTitle(nameOf(person))}
      action={remove.isPending ? `${texts.deleting}…` : texts.deleteNow}
      write={remove}
      onClose={onClose}
    >
      <p>{texts.deleteAdvice}</p>
    </ConfirmDialog>
  )
}
