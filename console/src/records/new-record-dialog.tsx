import type { Attribute, RecordBody } from '@kith/client'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { client } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { useSendOnce } from '../app/send-once.ts'
import { FieldEditor, PlaceholderCheckbox } from '../entity/field-editor.tsx'
import { attributeField, bodyOf, type Draft, draftOf, parseDraft, profileField } from '../entity/fields.ts'
import { useFieldErrors } from '../entity/use-field-errors.ts'
import { Button } from '../ui/button.tsx'
import { Actions, Dialog } from '../ui/dialog.tsx'
import { Problem } from '../ui/notice.tsx'
import { messages } from './messages.ts'
import styles from './records.module.css'

type NewRecordDialogProps = { stackKey: string; attributes: readonly Attribute[]; onClose: () => void }

/** Stores a new record, and then shows it. */
function useCreate(stackKey: string) {
  const navigate = useNavigate()
  const queryClient = useQueryClient()
  const sendOnce = useSendOnce()
  return useMutation({
    mutationFn: (given: { body: RecordBody; makesTargets: boolean }) =>
      sendOnce(given, idempotencyKey => {
        const options = { idempotencyKey, ...(!given.makesTargets && { references: 'strict' as const }) }
        return client.stack(stackKey).create(given.body as never, options)
      }),
    onSuccess: async ({ record_id }) => {
      await queryClient.invalidateQueries({ queryKey: ['records', stackKey] })
      await navigate({ to: '/records/$stackKey/$recordId', params: { stackKey, recordId: record_id } })
    },
  })
}

/** Creates a record. */
export function NewRecordDialog({ stackKey, attributes, onClose }: NewRecordDialogProps) {
  const texts = useMessages(messages)
  const [drafts, setDrafts] = useState<ReadonlyMap<string, Draft>>(new Map())
  const [makesTargets, setMakesTargets] = useState(false)
  const [hasTried, setTried] = useState(false)
  const create = useCreate(stackKey)
  const fields = [
    profileField('external_id', texts.identifier, 'text', { help: texts.identifierHelp }),
    ...attributes.map(attribute => attributeField(attribute, null)),
  ].map(field => {
    const draft = drafts.get(field.path) ?? draftOf(field, null)
    return { field, draft, ...parseDraft(field, draft) }
  })
  const faults = new Map(fields.flatMap(({ field, fault }) => (fault ? [[field.path, fault] as const] : [])))
  const allFields = fields.map(({ field }) => field)
  const { errorOf, hasOthers } = useFieldErrors(allFields, hasTried ? faults : new Map(), create.error)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    setTried(true)
    const given = fields.filter(({ value }) => value !== null)
    const body = { attribute_values: {}, ...bodyOf(new Map(given.map(({ field, value }) => [field, value]))) }
    if (faults.size === 0) create.mutate({ body, makesTargets })
  }
  return (
    <Dialog title={texts.newRecord} isOpen onClose={onClose} size="wide">
      <form noValidate className={styles.form!} onSubmit={submit}>
        {fields.map(({ field, draft }, index) => (
          <FieldEditor
            key={field.path}
            field={field}
            draft={draft}
            onChange={draft => setDrafts(new Map(drafts).set(field.path, draft))}
            error={errorOf(field)}
            autoFocus={index === 0}
          />
        ))}
        <PlaceholderCheckbox fields={allFields} isSelected={makesTargets} onChange={setMakesTargets} />
        {hasOthers && <Problem error={create.error} />}
        <Actions>
          <Button onPress={onClose}>{texts.cancel}</Button>
          <Button type="submit" look="primary" isPending={create.isPending}>
            {texts.create}
          </Button>
        </Actions>
      </form>
    </Dialog>
  )
}
