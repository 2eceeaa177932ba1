import { useMessages } from '../app/language.tsx'
import { Button } from '../ui/button.tsx'
import type { Field } from './fields.ts'
import { messages } from './messages.ts'
import type { Edit } from './use-edit.ts'

type EditButtonProps = {
  edit: Edit
  fields: readonly Field[]
  /** The name of what is edited, for screen readers. */
  name: string
}

/** The button that begins an edit, and has the focus again after it. */
export function EditButton({ edit, fields, name }: EditButtonProps) {
  const texts = useMessages(messages)
  const shortName = name.length > 60 ? `${name.slice(0, 60)}…` : name
  return (
    <Button aria-label={`${texts.edit}: ${shortName}`} autoFocus={edit.hasBegun} onPress={() => edit.begin(fields)}>
      {texts.edit}
    </Button>
  )
}
