import { eventSubjects, isKithError, type NewWebhook, type Webhook } from '@kith/client'
import { type FormEvent, useState } from 'react'
import { useMessages } from '../app/language.tsx'
import { Button } from '../ui/button.tsx'
import { Actions, Dialog } from '../ui/dialog.tsx'
import { Checkbox, Select, TextField } from '../ui/field.tsx'
import { Problem } from '../ui/notice.tsx'
import { messages } from './messages.ts'
import styles from './webhooks.module.css'

type Form = {
  url: string
  events: NewWebhook['events']
  stacks: string
  keys: string
  payload: 'full' | 'ids'
  description: string
}

const formOf = (webhook: Webhook | null): Form => ({
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

const bodyOf = ({ url, events, stacks, keys, payload, description }: Form): NewWebhook => ({
  url: url.trim(),
  events,
  stacks: listOf(stacks),
  keys: listOf(keys),
  payload,
  description: description.trim() === '' ? null : description.trim(),
})

/** A dialog that makes a webhook, or changes one. What was filled in stays if the service refuses it. */
export function WebhookForm({
  title,
  webhook,
  action,
  onSubmit,
  onClose,
}: {
  title: string
  webhook: Webhook | null
  action: string
  onSubmit: (body: NewWebhook) => Promise<void>
  onClose: () => void
}) {
  const texts = useMessages(messages)
  const [form, setForm] = useState(() => formOf(webhook))
  const [error, setError] = useState<unknown>()
  const [isPending, setPending] = useState(false)
  const change = (changed: Partial<Form>) => setForm({ ...form, ...changed })
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    if (isPending) return
    setPending(true)
    setError(undefined)
    await onSubmit(bodyOf(form)).catch(setError)
    setPending(false)
  }
  const errorAt = (path: string) =>
    isKithError(error) ? error.details.find(detail => detail.path.startsWith(path))?.message : undefined
  // Events that the checkboxes cannot show, such as person.created, stay as they are.
  const others = form.events.filter(event => !eventSubjects.some(group => event === `${group}.*`))
  return (
    <Dialog title={title} isOpen onClose={onClose}>
      <form className={styles.form!} onSubmit={submit}>
        <TextField
          label={texts.url}
          help={texts.urlHelp}
          type="url"
          isRequired
          autoFocus
          value={form.url}
          onChange={url => change({ url })}
          error={errorAt('/url')}
        />
        <fieldset className={styles.events!}>
          <legend>{texts.events}</legend>
          {eventSubjects.map(group => {
            const name = `${group}.*` as const
            return (
              <Checkbox
                key={group}
                isSelected={form.events.includes(name)}
                onChange={isSelected =>
                  change({
                    events: isSelected ? [...form.events, name] : form.events.filter(event => event !== name),
                  })
                }
              >
                <code>{name}</code>
              </Checkbox>
            )
          })}
          {others.length > 0 && <code>{others.join(', ')}</code>}
        </fieldset>
        <TextField
          label={texts.stacks}
          help={texts.stacksHelp}
          value={form.stacks}
          onChange={stacks => change({ stacks })}
          error={errorAt('/stacks')}
        />
        <TextField
          label={texts.keys}
          help={texts.keysHelp}
          value={form.keys}
          onChange={keys => change({ keys })}
          error={errorAt('/keys')}
        />
        <Select<'full' | 'ids'>
          label={texts.payload}
          options={[
            { value: 'full', label: texts.payloadFull },
            { value: 'ids', label: texts.payloadIds },
          ]}
          value={form.payload}
          onChange={payload => change({ payload })}
        />
        <TextField
          label={texts.description}
          value={form.description}
          onChange={description => change({ description })}
          error={errorAt('/description')}
        />
        {error !== undefined && <Problem error={error} />}
        <Actions>
          <Button onPress={onClose}>{texts.cancel}</Button>
          <Button type="submit" look="primary">
            {action}
          </Button>
        </Actions>
      </form>
    </Dialog>
  )
}
