import type { ReactNode } from 'react'
import { Dialog as AriaDialog, Heading, Modal, ModalOverlay } from 'react-aria-components'
import styles from './dialog.module.css'

type DialogProps = {
  title: string
  isOpen: boolean
  onClose(): void
  /** `wide` has room for a comparison of two columns. */
  size?: 'wide'
  /** A dialog that asks before something is destroyed. */
  isAlert?: boolean
  children: ReactNode
}

/** A modal dialog. Escape and a click beside it close it. */
export function Dialog({ title, isOpen, onClose, size, isAlert, children }: DialogProps) {
  return (
    <ModalOverlay
      className={styles.overlay!}
      isOpen={isOpen}
      onOpenChange={open => !open && onClose()}
      isDismissable={!isAlert}
    >
      <Modal className={size === 'wide' ? `${styles.modal} ${styles.wide}` : styles.modal!}>
        <AriaDialog className={styles.dialog!} role={isAlert ? 'alertdialog' : 'dialog'}>
          <Heading slot="title" className={styles.title!}>
            {title}
          </Heading>
          {children}
        </AriaDialog>
      </Modal>
    </ModalOverlay>
  )
}

/** The buttons at the end of a dialog or a form. The main action comes last. */
export function Actions({ children }: { children: ReactNode }) {
  return <div className={styles.actions!}>{children}</div>
}
