import { Dialog } from './dialog.tsx'
import { Form, type FormProps } from './form.tsx'

/** A dialog that is a form: sending it or cancelling it closes it. */
export function FormDialog({ title, onClose, ...form }: FormProps & { title: string; onClose: () => void }) {
  return (
    <Dialog title={title} isOpen onClose={onClose}>
      <Form {...form} onCancel={onClose} />
    </Dialog>
  )
}
