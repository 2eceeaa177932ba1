import { type ReactNode, useCallback, useRef, useState } from 'react'
import { Dialog as AriaDialog, Heading, Modal, ModalOverlay } from 'react-aria-components'
import type { Write } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { Button, type ButtonProps } from './button.tsx'
import styles from './dialog.module.css'
import { messages } from './messages.ts'
import { NoteChangeContext } from './note-change.ts'
import { Problem } from './page.tsx'
import { useUnsaved } from './use-unsaved.ts'

type DialogProps = {
  title: string
  onClose(): void
  /** `wide` has room for a comparison of two columns. */
  size?: 'wide'
  /** Whether the dialog asks before data is destroyed. */
  isAlert?: boolean
  /** Whether closing loses typed input. False if a choice takes effect at once, or for a search. True by default. */
  hasDraft?: boolean
  children: ReactNode
}

/** A modal dialog. Escape and a click beside it close it. If one of its fields was changed, they ask first. */
export function Dialog({ title, onClose, size, isAlert, hasDraft = true, children }: DialogProps) {
  const texts = useMessages(messages)
  const hasChanged = useRef(false)
  if (!hasDraft) hasChanged.current = false
  const noteChange = useCallback(() => {
    hasChanged.current = true
  }, [])
  useUnsaved(() => hasChanged.current, true)
  const close = () => {
    if (!hasChanged.current || window.confirm(texts.discard)) onClose()
  }
  return (
    <ModalOverlay className={styles.overlay} isOpen onOpenChange={open => !open && close()} isDismissable={!isAlert}>
      <Modal className={size === 'wide' ? `${styles.modal} ${styles.wide}` : styles.modal}>
        <AriaDialog className={styles.dialog} role={isAlert ? 'alertdialog' : 'dialog'}>
          <Heading slot="title" className={styles.title}>
            {title}
          </Heading>
          <NoteChangeContext value={noteChange}>{children}</NoteChangeContext>
        </AriaDialog>
      </Modal>
    </ModalOverlay>
  )
}

/** The buttons at the end of a dialog or a form. The main action comes last. */
export function Actions({ children }: { children: ReactNode }) {
  return <div className={styles.actions}>{children}</div>
}

/** The button that closes a read-only dialog. */
export function CloseAction({ onClose, children }: { onClose: () => void; children?: ReactNode }) {
  const texts = useMessages(messages)
  return (
    <Actions>
      {children}
      <Button onPress={onClose} autoFocus>
        {texts.close}
      </Button>
    </Actions>
  )
}

/** A button that opens a dialog. */
export function DialogButton({ dialog, ...button }: ButtonProps & { dialog: (close: () => void) => ReactNode }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <Button {...button} onPress={() => setOpen(true)} />
      {isOpen && dialog(() => setOpen(false))}
    </>
  )
}

type ConfirmDialogProps = {
  title: string
  /** The text of the button that confirms. */
  action: string
  write: Write
  /** Whether the button is disabled until a further confirmation. */
  isDisabled?: boolean
  onClose(): void
  /** The explanation of the action. */
  children: ReactNode
}

/** Asks before data is destroyed. */
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
    <Dialog title={title} isAlert onClose={onClose}>
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
