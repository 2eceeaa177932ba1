import type { Attribute, RecordBody } from '@kith/client'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { client } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { isRelationship } from '../entity/schema.ts'
import { Button } from '../ui/button.tsx'
import { Actions, Dialog } from '../ui/dialog.tsx'
import { Checkbox, TextField } from '../ui/field.tsx'
import { Problem } from '../ui/notice.tsx'
import { messages } from './messages.ts'
import styles from './records.module.css'
import { valueErrors } from './value-errors.ts'
import { useFaultText, ValueField } from './value-field.tsx'
import { formOf, valueOfText } from './value-text.ts'

type NewRecordDialogProps = { stackKey: string; attributes: readonly Attribute[]; onClose: () => void }

/** Stores a new record, and then shows it. */
function useCreate(stackKey: string) {
  const navigate = useNavigate()
  const queryClient = useQueryClient()
  return useMutation({
    mutationFn: ({ body, makesTargets }: { body: RecordBody; makesTargets: boolean }) =>
      client.stack(stackKey).create(body as never, makesTargets ? {} : { references: 'strict' }),
    onSuccess: async ({ record_id }) => {
      await queryClient.invalidateQueries({ queryKey: ['records', stackKey] })
      await navigate({ to: '/records/$stackKey/$recordId', params: { stackKey, recordId: record_id } })
    },
  })
}

/** Creates a record. */
export function NewRecordDialog({ stackKey, attributes, onClose }: NewRecordDialogProps) {
  const texts = useMessages(messages)
  const faultText = useFaultText()
  const [externalId, setExternalId] = useState('')
  const [typed, setTyped] = useState<Record<string, string>>({})
  const [makesTargets, setMakesTargets] = useState(false)
  const [hasTried, setTried] = useState(false)
  const parsed = attributes.map(
    attribute => [attribute.key, valueOfText(formOf(attribute, null), attribute, typed[attribute.key] ?? '')] as const,
  )
  const faults = new Map(
    parsed.flatMap(([key, result]) => ('fault' in result ? [[key, faultText(result.fault)] as const] : [])),
  )
  const create = useCreate(stackKey)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    setTried(true)
    const values = parsed.flatMap(([key, result]) =>
      'value' in result && result.value !== null ? [[key, result.value]] : [],
    )
    const body = { external_id: externalId.trim() || null, attribute_values: Object.fromEntries(values) }
    if (faults.size === 0) create.mutate({ body, makesTargets })
  }
  const { own, others } = valueErrors(create.error)
  return (
    <Dialog title={texts.newRecord} isOpen onClose={onClose} size="wide">
      <form noValidate className={styles.form!} onSubmit={submit}>
        <TextField
          label={texts.identifier}
          help={texts.identifierHelp}
          autoFocus
          value={externalId}
          onChange={setExternalId}
          error={own.external_id}
        />
        {attributes.map(attribute => (
          <ValueField
            key={attribute.key}
            label={attribute.required ? texts.requiredName(attribute.name) : attribute.name}
            attribute={attribute}
            form={formOf(attribute, null)}
            text={typed[attribute.key] ?? ''}
            onChange={text => setTyped({ ...typed, [attribute.key]: text })}
            error={(hasTried ? faults.get(attribute.key) : undefined) ?? own[attribute.key]}
          />
        ))}
        {attributes.some(isRelationship) && (
          <Checkbox isSelected={makesTargets} onChange={setMakesTargets}>
            {texts.makeTargets}
          </Checkbox>
        )}
        {create.error && others && <Problem error={create.error} />}
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
