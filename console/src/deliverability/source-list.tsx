import type { DeliverabilitySource, DeliverabilitySourceBody } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { client, useWrite } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { Button } from '../ui/button.tsx'
import { CopyField } from '../ui/copy-field.tsx'
import { ConfirmDialog, DialogButton } from '../ui/dialog.tsx'
import { TextField, useDraft } from '../ui/field.tsx'
import { FormDialog } from '../ui/form.tsx'
import { Loaded } from '../ui/loaded.tsx'
import { EmptyState, Facts, Section } from '../ui/page.tsx'
import { Select } from '../ui/select.tsx'
import styles from './deliverability.module.css'
import { messages } from './messages.ts'
import { sourcesQuery } from './queries.ts'

/** The mail providers that send events of addresses: the time of the last event, and the URL for the events. */
export function SourceList() {
  const texts = useMessages(messages)
  const mayWrite = useScope('webhooks:write')
  const sources = useQuery({ ...sourcesQuery, refetchInterval: 10_000 })
  const addButton = mayWrite && (
    <DialogButton look="primary" dialog={close => <SourceForm onClose={close} />}>
      {texts.addSource}
    </DialogButton>
  )
  return (
    <Section title={texts.sources} actions={addButton}>
      <p>{texts.sourcesAdvice}</p>
      <Loaded query={sources} none={<EmptyState title={texts.noSources}>{texts.noSourcesAdvice}</EmptyState>}>
        {items => (
          <ul className="column gap-4" aria-label={texts.sources}>
            {items.map(source => (
              <Source key={source.key} source={source} />
            ))}
          </ul>
        )}
      </Loaded>
    </Section>
  )
}

function Source({ source: { key, provider, path, ...source } }: { source: DeliverabilitySource }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const mayWrite = useScope('webhooks:write')
  const [isRemoving, setRemoving] = useState(false)
  const close = () => setRemoving(false)
  const remove = useWrite(() => client.deliverability.removeSource(key), {
    refresh: [sourcesQuery.queryKey],
    onSuccess: close,
  })
  return (
    <li className={styles.source}>
      <div className={styles.sourceHead}>
        <h3>
          {key} · {texts.providers[provider]}
        </h3>
        {mayWrite && (
          <Button look="danger" aria-label={`${texts.removeSource}: ${key}`} onPress={() => setRemoving(true)}>
            {texts.removeSource}
          </Button>
        )}
      </div>
      <Facts
        facts={[
          [texts.lastEvent, source.last_event_at ? formats.exactTime(source.last_event_at) : texts.never],
          [texts.ignoredEvents, formats.number(source.ignored_events)],
          [
            texts.confirmed,
            provider === 'ses' && (source.confirmed_at ? formats.exactTime(source.confirmed_at) : texts.notYet),
          ],
        ]}
      />
      <CopyField label={texts.pasteAddress} text={location.origin + path} />
      <p className="muted">{texts.where[provider]}</p>
      {isRemoving && (
        <ConfirmDialog title={texts.removeTitle(key)} action={texts.removeAction} write={remove} onClose={close}>
          <p>{texts.removeAdvice(texts.providers[provider])}</p>
        </ConfirmDialog>
      )}
    </li>
  )
}

type Provider = DeliverabilitySource['provider']

/** The member of the body that kith needs to verify the requests of each provider. */
const secrets = { ses: 'topic_arn', sendgrid: 'public_key', mailgun: 'secret', postmark: 'secret' } as const

/** Adds a mail provider. The new source then shows the address for the provider's events. */
function SourceForm({ onClose }: { onClose: () => void }) {
  const texts = useMessages(messages)
  const { draft, change, field } = useDraft({ key: '', provider: 'ses' as Provider, secret: '' })
  const { key, provider, secret } = draft
  const add = useWrite((body: DeliverabilitySourceBody) => client.deliverability.addSource(body), {
    refresh: [sourcesQuery.queryKey],
    onSuccess: onClose,
  })
  const name = secrets[provider]
  const given = secret.trim()
  return (
    <FormDialog
      title={texts.addSource}
      onSubmit={() => add.mutate({ key: key.trim(), provider, ...(given && { [name]: given }) })}
      write={add}
      submit={texts.create}
      onClose={onClose}
    >
      <Select
        label={texts.provider}
        options={texts.providers}
        {...field('provider')}
        onChange={chosen => change({ provider: chosen, secret: '' })}
      />
      <TextField label={texts.key} help={texts.keyHelp} isRequired autoFocus {...field('key')} />
      <TextField
        key={provider}
        label={texts.secrets[provider]}
        help={texts.secretHelps[provider]}
        isRequired={provider !== 'postmark'}
        autoComplete="off"
        {...(provider === 'sendgrid' && { rows: 3 })}
        {...field('secret')}
        name={`/${name}`}
      />
    </FormDialog>
  )
}
