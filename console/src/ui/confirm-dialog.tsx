import type { ReactNode } from 'react'
import { useMessages } from '../app/language.tsx'
import type { Write } from '../app/write.ts'
import { Button } from './button.tsx'
import { Actions, Dialog } from './dialog.tsx'
import { messages } from './messages.ts'
import { Problem } from './notice.tsx'

type ConfirmDialogProps = {
  title: string
  /** The text of the button that does it. */
  action: string
  write: Write
  /** Whether something is to be confirmed first. */
  isDisabled?: boolean
  onClose(): void
  /** What the action means. */
  children: ReactNode
}

/** Asks before something is destroyed. */
export function ConfirmDialog({
  title,
  action,
  write: { mutate, isPending, error },
  isDisabled = false,
  onClose,
  children,
}: ConfirmDialogProps) {
  const texts = useMessages(messages)
  return (
    <Dialog title={title} isOpen isAlert onClose={onClose}>
      {children}
      {error !== null && error !== undefined && <Problem error={error} />}
      <Actions>
        <Button onPress={onClose} autoFocus>
          {texts.cancel}
        </Button>
        <Button look="danger" isPending={isPending} isDisabled={isDisabled} onPress={() => mutate()}>
          {action}
        </Button>
      </Actions>
    </Dialog>
  )
}
