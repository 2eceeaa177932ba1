import type { ReactNode } from 'react'
import { useWrite } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { isEqual } from '../entity/equal.ts'
import { useDefinitionWrite } from '../entity/schema.ts'
import { Button } from '../ui/button.tsx'
import { Form } from '../ui/form.tsx'
import { messages } from './messages.ts'

type PreviewedFormProps<Body, Preview> = {
  /** The body of both requests. */
  body: Body
  preview: (body: Body) => Promise<Preview>
  /** Shows the result of a preview. */
  result: (preview: Preview) => ReactNode
  save: (body: Body, idempotencyKey: string) => Promise<unknown>
  onSaved: () => void
  /** The text of the button that saves. */
  action: string
  isDisabled?: boolean
  isUnsaved?: boolean
  onCancel?: () => void
  back?: ReactNode
  children: ReactNode
}

/** A form of a definition. Each change is previewed on the stored values before it can be saved. */
export function PreviewedForm<Body, Preview>({
  body,
  preview: previewBody,
  result,
  save: saveBody,
  onSaved,
  action,
  children,
  ...props
}: PreviewedFormProps<Body, Preview>) {
  const texts = useMessages(messages)
  const preview = useWrite(previewBody)
  const save = useDefinitionWrite(saveBody, onSaved)
  // A preview is valid only for its own body.
  const isPreviewed = preview.isSuccess && isEqual(preview.variables, body)
  const error = [save, preview].find(write => write.error && isEqual(write.variables, body))?.error
  return (
    <Form
      {...props}
      onSubmit={() => preview.mutate(body)}
      write={{ error, isPending: preview.isPending }}
      submit={texts.preview}
      look={isPreviewed ? 'plain' : 'primary'}
      actions={
        isPreviewed && (
          <Button look="primary" isPending={save.isPending} onPress={() => save.mutate(body)}>
            {action}
          </Button>
        )
      }
    >
      {children}
      {isPreviewed && result(preview.data)}
    </Form>
  )
}
