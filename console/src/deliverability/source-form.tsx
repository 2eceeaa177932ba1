import type { DeliverabilitySource, DeliverabilitySourceBody } from '@kith/client'
import { useState } from 'react'
import { client } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { useWrite } from '../app/write.ts'
import { TextField } from '../ui/field.tsx'
import { FormDialog } from '../ui/form-dialog.tsx'
import { Select } from '../ui/select.tsx'
import { messages } from './messages.ts'
import { sourcesQuery } from './queries.ts'

type Provider = DeliverabilitySource['provider']

/** The member of the body by which kith checks the requests of each provider. */
const secrets = { ses: 'topic_arn', sendgrid: 'public_key', mailgun: 'secret', postmark: 'secret' } as const
const providers = Object.keys(secrets) as Provider[]

/** Lets a mail provider send its events. The new source then shows the address to give to the provider. */
export function SourceForm({ onClose }: { onClose: () => void }) {
  const texts = useMessages(messages)
  const [key, setKey] = useState('')
  const [provider, setProvider] = useState<Provider>('ses')
  const [secret, setSecret] = useState('')
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
        name="/provider"
        options={providers.map(value => ({ value, label: texts.providers[value] }))}
        value={provider}
        onChange={chosen => {
          setProvider(chosen)
          setSecret('')
        }}
      />
      <TextField
        label={texts.key}
        help={texts.keyHelp}
        name="/key"
        isRequired
        autoFocus
        value={key}
        onChange={setKey}
      />
      <TextField
        key={provider}
        label={texts.secrets[provider]}
        help={texts.secretHelps[provider]}
        name={`/${name}`}
        isRequired={provider !== 'postmark'}
        autoComplete="off"
        {...(provider === 'sendgrid' && { rows: 3 })}
        value={secret}
        onChange={setSecret}
      />
    </FormDialog>
  )
}
