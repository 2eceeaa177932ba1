import type { Attribute, RecordBody } from '@kith/client'
import { useNavigate } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import { client } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { useWrite } from '../app/write.ts'
import { faultTexts } from '../entity/edit-form.tsx'
import { FieldEditor, PlaceholderCheckbox } from '../entity/field-editor.tsx'
import {
  attributeField,
  bodyOf,
  type Draft,
  type DraftFault,
  draftOf,
  parseDraft,
  profileField,
} from '../entity/fields.ts'
import { messages as entityMessages } from '../entity/messages.ts'
import { Dialog } from '../ui/dialog.tsx'
import { Form } from '../ui/form.tsx'
import { messages } from './messages.ts'

type NewRecordDialogProps = { stackKey: string; attributes: readonly Attribute[]; onClose: () => void }
type Given = { body: RecordBody; makesTargets: boolean }

/** Creates a record, and then shows it. */
export function NewRecordDialog({ stackKey, attributes, onClose }: NewRecordDialogProps) {
  const texts = useMessages(messages)
  const entityTexts = useMessages(entityMessages)
  const navigate = useNavigate()
  const [drafts, setDrafts] = useState<ReadonlyMap<string, Draft>>(new Map())
  const [makesTargets, setMakesTargets] = useState(false)
  const [faults, setFaults] = useState<ReadonlyMap<string, DraftFault>>()
  const create = useWrite(
    ({ body, makesTargets }: Given, idempotencyKey) => {
      const options = { idempotencyKey, ...(!makesTargets && { references: 'strict' as const }) }
      return client.stack(stackKey).create(body as never, options)
    },
    {
      refresh: [['records', stackKey]],
      onSuccess: ({ record_id }) =>
        navigate({ to: '/records/$stackKey/$recordId', params: { stackKey, recordId: record_id } }),
    },
  )
  const fields = [
    profileField('external_id', texts.identifier, 'text', { help: texts.identifierHelp }),
    ...attributes.map(attribute => attributeField(attribute, null)),
  ]
  const draft = (field: (typeof fields)[number]) => drafts.get(field.path) ?? draftOf(field, null)
  const submit = () => {
    const parsed = fields.map(field => ({ field, ...parseDraft(field, draft(field)) }))
    const found = new Map(parsed.flatMap(({ field, fault }) => (fault ? [[field.path, fault] as const] : [])))
    setFaults(found)
    const given = parsed.filter(({ value }) => value !== null).map(({ field, value }) => [field, value] as const)
    const body = { attribute_values: {}, ...bodyOf(new Map(given)) }
    if (found.size === 0) create.mutate({ body, makesTargets })
  }
  const shownFaults = useMemo(() => faults && faultTexts(faults, entityTexts), [faults, entityTexts])
  return (
    <Dialog title={texts.newRecord} isOpen onClose={onClose} size="wide">
      <Form
        onSubmit={submit}
        write={create}
        {...(shownFaults && { faults: shownFaults })}
        submit={texts.create}
        onCancel={onClose}
      >
        {fields.map((field, index) => (
          <FieldEditor
            key={field.path}
            field={field}
            draft={draft(field)}
            onChange={draft => setDrafts(new Map(drafts).set(field.path, draft))}
            autoFocus={index === 0}
          />
        ))}
        <PlaceholderCheckbox fields={fields} isSelected={makesTargets} onChange={setMakesTargets} />
      </Form>
    </Dialog>
  )
}
