import type { ReactNode } from 'react'
import type { Write } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { Button } from '../ui/button.tsx'
import { Form } from '../ui/form.tsx'
import { messages } from './messages.ts'

type PreviewedFormProps<Body> = {
  /** What both requests send. */
  body: Body
  preview: Write<Body> & { isSuccess: boolean }
  save: Write<Body>
  /** The text of the button that saves. */
  action: string
  isDisabled?: boolean
  onCancel?: () => void
  back?: ReactNode
  children: ReactNode
}

/** A form of a definition. It is previewed on the stored values before it can be saved. */
export function PreviewedForm<Body>({ body, preview, save, action, children, ...props }: PreviewedFormProps<Body>) {
  const texts = useMessages(messages)
  return (
    <Form
      {...props}
      onSubmit={() => preview.mutate(body)}
      write={{ error: save.error ?? preview.error, isPending: preview.isPending }}
      submit={texts.preview}
      look={preview.isSuccess ? 'plain' : 'primary'}
      actions={
        preview.isSuccess && (
          <Button look="primary" isPending={save.isPending} onPress={() => save.mutate(body)}>
            {action}
          </Button>
        )
      }
    >
      {children}
    </Form>
  )
}
