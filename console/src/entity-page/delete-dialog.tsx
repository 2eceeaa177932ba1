import { isKithError } from '@kith/client'
import { useNavigate } from '@tanstack/react-router'
import { useMessages } from '../app/language.tsx'
import { useWrite } from '../app/write.ts'
import { entityAddress, nameOf } from '../entity/address.ts'
import { type Entity, entitiesOf, idOf } from '../entity/entities.ts'
import { ConfirmDialog } from '../ui/confirm-dialog.tsx'
import { kindOf, messages } from './messages.ts'

type DeleteDialogProps = { owner: string; entity: Entity; onClose: () => void; onRefresh: () => void }

/** Asks before a person or record is deleted. Then the page shows the deleted one, which can be restored. */
export function DeleteDialog({ owner, entity, onClose, onRefresh }: DeleteDialogProps) {
  const texts = useMessages(messages)
  const kind = texts[kindOf(owner)]
  const navigate = useNavigate()
  const id = idOf(entity)
  const remove = useWrite(() => entitiesOf(owner).delete({ id }, { ifMatch: entity.version }), {
    onSuccess: () => {
      onClose()
      return navigate({ ...entityAddress(owner, { id, externalId: null }), replace: true })
    },
    refresh: [['entities', owner]],
    onError: error => isKithError(error) && error.status === 412 && onRefresh(),
  })
  return (
    <ConfirmDialog
      title={texts.deleteTitle(nameOf(entity))}
      action={remove.isPending ? `${texts.deleting}…` : kind.deleteNow}
      write={remove}
      onClose={onClose}
    >
      <p>{kind.deleteAdvice}</p>
    </ConfirmDialog>
  )
}
