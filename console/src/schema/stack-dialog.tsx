import type { Stack } from '@kith/client'
import { useState } from 'react'
import { client } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { useDefinitions, useDefinitionWrite } from '../entity/schema.ts'
import { TextField } from '../ui/field.tsx'
import { FormDialog } from '../ui/form.tsx'
import { Select } from '../ui/select.tsx'
import { type AboutPeople, AboutPeopleFields } from './about-people-fields.tsx'
import { messages } from './messages.ts'

type StackDialogProps = { stack: Stack | undefined; onClose: () => void; onSaved: (stack: Stack) => void }

type StackDraft = { key: string; name: string; kind: Stack['kind']; days: string; label: string; about: AboutPeople }

function writeStack(
  stack: Stack | undefined,
  { key, name, kind, days, label, about }: StackDraft,
  idempotencyKey: string,
): Promise<Stack> {
  const retention_days = kind === 'item' || days === '' ? null : Number(days)
  if (stack)
    return client.schema.stacks.patch(stack.key, {
      ...{ name: name || stack.key, retention_days, label: label || null },
      ...about,
    })
  const optional = {
    ...(name && { name }),
    ...(retention_days !== null && { retention_days }),
    ...(label && { label }),
  }
  return client.schema.stacks.create({ key, kind, ...optional }, { idempotencyKey })
}

/** Creates a stack, or changes what holds for its records. Key and kind never change, and no stack is deleted. */
export function StackDialog({ stack, onClose, onSaved }: StackDialogProps) {
  const texts = useMessages(messages)
  const [key, setKey] = useState('')
  const [name, setName] = useState(stack?.name ?? '')
  const [kind, setKind] = useState<Stack['kind']>(stack?.kind ?? 'item')
  const [days, setDays] = useState(stack?.retention_days ? String(stack.retention_days) : '')
  const [label, setLabel] = useState(stack?.label ?? '')
  const [about, setAbout] = useState<AboutPeople>({
    summary: stack?.summary ?? null,
    erased_with: stack?.erased_with ?? null,
  })
  const { definitions } = useDefinitions()
  const save = useDefinitionWrite(
    (draft: StackDraft, idempotencyKey) => writeStack(stack, draft, idempotencyKey),
    onSaved,
  )
  const draft = { key: key.trim(), name: name.trim(), kind, days: days.trim(), label: label.trim(), about }
  return (
    <FormDialog
      title={stack ? texts.editStack : texts.newStack}
      onSubmit={() => save.mutate(draft)}
      write={save}
      submit={stack ? texts.save : texts.create}
      onClose={onClose}
    >
      {!stack && (
        <TextField
          label={texts.key}
          help={texts.keyHelp}
          name="/key"
          isRequired
          autoFocus
          value={key}
          onChange={setKey}
        />
      )}
      <TextField label={texts.name} name="/name" value={name} onChange={setName} />
      <TextField
        label={texts.recordLabel}
        help={texts.recordLabelHelp}
        name="/label"
        value={label}
        onChange={setLabel}
      />
      {!stack && (
        <Select<Stack['kind']>
          label={texts.kind}
          name="/kind"
          options={[
            { value: 'item', label: texts.kinds.item, help: texts.itemHelp },
            { value: 'event', label: texts.kinds.event, help: texts.eventHelp },
          ]}
          value={kind}
          onChange={setKind}
        />
      )}
      {kind === 'event' && (
        <TextField
          label={texts.retention}
          help={texts.retentionHelp}
          name="/retention_days"
          inputMode="numeric"
          value={days}
          onChange={setDays}
        />
      )}
      {stack && (
        <AboutPeopleFields
          attributes={definitions.attributes.filter(({ owner, state }) => owner === stack.key && state === 'active')}
          value={about}
          onChange={change => setAbout({ ...about, ...change })}
        />
      )}
    </FormDialog>
  )
}
