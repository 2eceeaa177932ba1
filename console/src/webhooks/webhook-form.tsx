import { eventSubjects, type Webhook, type WebhookBody, type WebhookPatch } from '@kith/client'
import type { Write } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { changedMembers } from '../entity/equal.ts'
import { Checkbox, FieldGroup, TextField, useDraft } from '../ui/field.tsx'
import { FormDialog } from '../ui/form.tsx'
import { Select } from '../ui/select.tsx'
import { messages } from './messages.ts'

type Draft = {
  url: string
  events: WebhookBody['events']
  stacks: string
  keys: string
  payload: 'full' | 'ids'
  links: boolean
  description: string
  /** A line for each header: its name, a colon and its value. */
  headers: string
}

const formOf = (webhook: Webhook | null): Draft => ({
  url: webhook?.url ?? '',
  events: webhook?.events ?? ['person.*'],
  stacks: webhook?.stacks?.join(', ') ?? '',
  keys: webhook?.keys?.join(', ') ?? '',
  payload: webhook?.payload ?? 'full',
  links: webhook?.links ?? false,
  description: webhook?.description ?? '',
  // The service returns no values. A line without a value keeps the stored one.
  headers: webhook?.headers.map(name => `${name}:`).join('\n') ?? '',
})

function listOf(text: string): string[] | null {
  const items = text.split(',').map(item => item.trim())
  const filled = items.filter(item => item !== '')
  return filled.length === 0 ? null : filled
}

/** The headers of the lines. A stored header keeps its value in a line without one, and is removed without a line. */
export function headersOf(text: string, stored: readonly string[]): Record<string, string | null> {
  const lines = text.split('\n').filter(line => line.trim() !== '')
  const written = lines.map(line => {
    const colon = line.indexOf(':')
    return colon === -1 ? [line.trim(), ''] : [line.slice(0, colon).trim(), line.slice(colon + 1).trim()]
  }) as [string, string][]
  const kept = new Set(written.map(([name]) => name.toLowerCase()))
  const removed = stored.filter(name => !kept.has(name)).map(name => [name, null] as const)
  const set = written.filter(([name, value]) => value !== '' || !stored.includes(name.toLowerCase()))
  return Object.fromEntries([...removed, ...set])
}

const bodyOf = (
  { url, events, stacks, keys, payload, links, description, headers }: Draft,
  webhook: Webhook | null,
) => ({
  url: url.trim(),
  events,
  stacks: listOf(stacks),
  keys: listOf(keys),
  payload,
  links: links && payload === 'full',
  description: description.trim() === '' ? null : description.trim(),
  headers: headersOf(headers, webhook?.headers ?? []),
})

type WebhookFormProps = {
  title: string
  webhook: Webhook | null
  action: string
  /** A new webhook has no null headers. */
  write: Write<WebhookBody & WebhookPatch>
  onClose: () => void
}

/** A dialog that creates or changes a webhook. The form keeps its values if the service refuses them. */
export function WebhookForm({ title, webhook, action, write, onClose }: WebhookFormProps) {
  const texts = useMessages(messages)
  const { draft: form, change, field } = useDraft(() => formOf(webhook))
  // Events that the checkboxes cannot show, such as person.created, stay as they are.
  const others = form.events.filter(event => !eventSubjects.some(group => event === `${group}.*`))
  const body = bodyOf(form, webhook)
  const given = webhook ? changedMembers(body, webhook) : body
  return (
    <FormDialog
      title={title}
      onSubmit={() => write.mutate(given as WebhookBody & WebhookPatch)}
      write={write}
      submit={action}
      onClose={onClose}
    >
      <TextField label={texts.url} help={texts.urlHelp} isRequired autoFocus {...field('url')} />
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
      <TextField label={texts.stacks} help={texts.stacksHelp} {...field('stacks')} />
      <TextField label={texts.keys} help={texts.keysHelp} {...field('keys')} />
      <Select
        label={texts.payload}
        options={{ full: texts.payloadFull, ids: texts.payloadIds }}
        {...field('payload')}
      />
      {form.payload === 'full' && (
        <Checkbox help={texts.linksHelp} {...field('links')}>
          {texts.links}
        </Checkbox>
      )}
      <TextField label={texts.description} {...field('description')} />
      <TextField label={texts.headers} help={texts.headersHelp} rows={3} {...field('headers')} />
    </FormDialog>
  )
}
