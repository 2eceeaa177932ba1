import { eventSubjects, type NewWebhook, type Webhook } from '@kith/client'
import { useState } from 'react'
import { useMessages } from '../app/language.tsx'
import type { Write } from '../app/write.ts'
import { Dialog } from '../ui/dialog.tsx'
import { Checkbox, FieldGroup, TextField } from '../ui/field.tsx'
import { Form } from '../ui/form.tsx'
import { Select } from '../ui/select.tsx'
import { messages } from './messages.ts'

type Draft = {
  url: string
  events: NewWebhook['events']
  stacks: string
  keys: string
  payload: 'full' | 'ids'
  description: string
}

const formOf = (webhook: Webhook | null): Draft => ({
  url: webhook?.url ?? '',
  events: webhook?.events ?? ['person.*'],
  stacks: webhook?.stacks?.join(', ') ?? '',
  keys: webhook?.keys?.join(', ') ?? '',
  payload: webhook?.payload ?? 'full',
  description: webhook?.description ?? '',
})

function listOf(text: string): string[] | null {
  const items = text.split(',').map(item => item.trim())
  const filled = items.filter(item => item !== '')
  return filled.length === 0 ? null : filled
}

const bodyOf = ({ url, events, stacks, keys, payload, description }: Draft): NewWebhook => ({
  url: url.trim(),
  events,
  stacks: listOf(stacks),
  keys: listOf(keys),
  payload,
  description: description.trim() === '' ? null : description.trim(),
})

type WebhookFormProps = {
  title: string
  webhook: Webhook | null
  action: string
  write: Write<NewWebhook>
  onClose: () => void
}

/** A dialog that makes a webhook, or changes one. What was filled in stays if the service refuses it. */
export function WebhookForm({ title, webhook, action, write, onClose }: WebhookFormProps) {
  const texts = useMessages(messages)
  const [form, setForm] = useState(() => formOf(webhook))
  const change = (changed: Partial<Draft>) => setForm({ ...form, ...changed })
  // Events that the checkboxes cannot show, such as person.created, stay as they are.
  const others = form.events.filter(event => !eventSubjects.some(group => event === `${group}.*`))
  const text = (name: 'url' | 'stacks' | 'keys' | 'description', help?: string) => (
    <TextField
      label={texts[name]}
      help={help}
      name={`/${name}`}
      isRequired={name === 'url'}
      autoFocus={name === 'url'}
      value={form[name]}
      onChange={value => change({ [name]: value })}
    />
  )
  return (
    <Dialog title={title} isOpen onClose={onClose}>
      <Form onSubmit={() => write.mutate(bodyOf(form))} write={write} submit={action} onCancel={onClose}>
        {text('url', texts.urlHelp)}
        <FieldGroup legend={texts.events} look="grid" name="/events">
          {eventSubjects.map(group => {
            const name = `${group}.*` as const
            const toggle = (isSelected: boolean) =>
              change({ events: isSelected ? [...form.events, name] : form.events.filter(event => event !== name) })
            return (
              <Checkbox key={group} isSelected={form.events.includes(name)} onChange={toggle}>
                <code>{name}</code>
              </Checkbox>
            )
          })}
          {others.length > 0 && <code>{others.join(', ')}</code>}
        </FieldGroup>
        {text('stacks', texts.stacksHelp)}
        {text('keys', texts.keysHelp)}
        <Select<'full' | 'ids'>
          label={texts.payload}
          name="/payload"
          options={[
            { value: 'full', label: texts.payloadFull },
            { value: 'ids', label: texts.payloadIds },
          ]}
          value={form.payload}
          onChange={payload => change({ payload })}
        />
        {text('description')}
      </Form>
    </Dialog>
  )
}
