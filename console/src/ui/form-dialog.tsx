import { Dialog } from './dialog.tsx'
import { Form, type FormProps } from './form.tsx'

/** A dialog that is a form: sending it or cancelling it closes it. */
export function FormDialog({
  title,
  size,
  onClose,
  ...form
}: FormProps & { title: string; size?: 'wide'; onClose: () => void }) {
  return (
    <Dialog title={title} isOpen onClose={onClose} {...(size && { size })}>
      <Form {...form} onCancel={onClose} />
    </Dialog>
  )
}
