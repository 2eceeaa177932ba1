import type { Stack } from '@kith/client'
import { type FormEvent, useState } from 'react'
import { client } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { Button } from '../ui/button.tsx'
import { Actions, Dialog } from '../ui/dialog.tsx'
import { Select, TextField } from '../ui/field.tsx'
import { Problem } from '../ui/notice.tsx'
import { fieldErrors, isShownAtFields, useDefinitionWrite } from './definitions.ts'
import { messages } from './messages.ts'
import styles from './schema.module.css'

type StackDialogProps = { stack: Stack | undefined; onClose: () => void; onSaved: (stack: Stack) => void }

const fields = ['key', 'name', 'kind', 'retention_days']

type StackDraft = { key: string; name: string; kind: Stack['kind']; days: string }

function writeStack(
  stack: Stack | undefined,
  { key, name, kind, days }: StackDraft,
  idempotencyKey: string,
): Promise<Stack> {
  const retention_days = kind === 'item' || days === '' ? null : Number(days)
  if (stack) return client.schema.stacks.patch(stack.key, { name: name || stack.key, retention_days })
  const optional = { ...(name && { name }), ...(retention_days !== null && { retention_days }) }
  return client.schema.stacks.create({ key, kind, ...optional }, { idempotencyKey })
}

/** Creates a stack, or changes the name and the retention of one. Key and kind never change, and no stack is deleted. */
export function StackDialog({ stack, onClose, onSaved }: StackDialogProps) {
  const texts = useMessages(messages)
  const [key, setKey] = useState('')
  const [name, setName] = useState(stack?.name ?? '')
  const [kind, setKind] = useState<Stack['kind']>(stack?.kind ?? 'item')
  const [days, setDays] = useState(stack?.retention_days ? String(stack.retention_days) : '')
  const save = useDefinitionWrite((draft: StackDraft, idempotencyKey) => writeStack(stack, draft, idempotencyKey))
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const draft = { key: key.trim(), name: name.trim(), kind, days: days.trim() }
    save.mutate(draft, { onSuccess: onSaved })
  }
  const errors = fieldErrors(save.error)
  return (
    <Dialog title={stack ? texts.editStack : texts.newStack} isOpen onClose={onClose}>
      <form noValidate className={styles.form!} onSubmit={submit}>
        {!stack && (
          <TextField
            label={texts.key}
            help={texts.keyHelp}
            isRequired
            autoFocus
            value={key}
            onChange={setKey}
            error={errors.key}
          />
        )}
        <TextField label={texts.name} value={name} onChange={setName} error={errors.name} />
        {!stack && (
          <Select<Stack['kind']>
            label={texts.kind}
            options={[
              { value: 'item', label: texts.kinds.item, help: texts.itemHelp },
              { value: 'event', label: texts.kinds.event, help: texts.eventHelp },
            ]}
            value={kind}
            onChange={setKind}
            error={errors.kind}
          />
        )}
        {kind === 'event' && (
          <TextField
            label={texts.retention}
            help={texts.retentionHelp}
            inputMode="numeric"
            value={days}
            onChange={setDays}
            error={errors.retention_days}
          />
        )}
        {save.error && !isShownAtFields(save.error, fields) && <Problem error={save.error} />}
        <Actions>
          <Button onPress={onClose}>{texts.cancel}</Button>
          <Button type="submit" look="primary" isPending={save.isPending}>
            {stack ? texts.save : texts.create}
          </Button>
        </Actions>
      </form>
    </Dialog>
  )
}
