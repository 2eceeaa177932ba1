import { type ConsentType, channelNames, type NewConsentType } from '@kith/client'
import { type FormEvent, useState } from 'react'
import { client } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { messages as entityMessages } from '../entity/messages.ts'
import { Button } from '../ui/button.tsx'
import { Actions } from '../ui/dialog.tsx'
import { Select, TextField } from '../ui/field.tsx'
import { Problem } from '../ui/notice.tsx'
import { Flag } from './attribute-form.tsx'
import { fieldErrors, isShownAtFields, useDefinitionWrite } from './definitions.ts'
import { messages } from './messages.ts'
import styles from './schema.module.css'

type Channel = ConsentType['channels'][number]
type ConsentTypeFormProps = {
  /** Undefined: the form creates a type. */
  type: ConsentType | undefined
  onClose: () => void
  onSaved: (type: ConsentType) => void
}

const fields = ['key', 'name', 'description', 'channels', 'mandatory', 'default_state']
/** The state of somebody who has not answered. */
type WithoutAnswer = 'granted' | 'refused' | 'mandatory'

/** Creates or changes a purpose that people are asked for. */
export function ConsentTypeForm({ type, onClose, onSaved }: ConsentTypeFormProps) {
  const texts = useMessages(messages)
  const [key, setKey] = useState('')
  const [name, setName] = useState(type?.name ?? '')
  const [description, setDescription] = useState(type?.description ?? '')
  const [channels, setChannels] = useState<Channel[]>(
    type?.channels ?? [{ channel: 'email', is_default: false, double_opt_in: false }],
  )
  const [unanswered, setUnanswered] = useState<WithoutAnswer>(
    type?.mandatory ? 'mandatory' : type?.default_state ? 'granted' : 'refused',
  )
  const save = useDefinitionWrite(({ key, ...body }: NewConsentType, idempotencyKey) =>
    type
      ? client.schema.consentTypes.patch(type.id, body)
      : client.schema.consentTypes.create({ key, ...body }, { idempotencyKey }),
  )
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const mandatory = unanswered === 'mandatory'
    const body = {
      key: key.trim(),
      name: name.trim() || (type?.key ?? key.trim()),
      description: description.trim() || null,
      channels,
      mandatory,
      ...(!mandatory && { default_state: unanswered === 'granted' }),
    }
    save.mutate(body, { onSuccess: onSaved })
  }
  const errors = fieldErrors(save.error)
  return (
    <form noValidate className={styles.form!} onSubmit={submit}>
      {!type && (
        <TextField label={texts.key} help={texts.keyHelp} isRequired value={key} onChange={setKey} error={errors.key} />
      )}
      <TextField label={texts.name} value={name} onChange={setName} error={errors.name} />
      <TextField
        label={texts.description}
        rows={2}
        value={description}
        onChange={setDescription}
        error={errors.description}
      />
      <ChannelFields channels={channels} onChange={setChannels} error={errors.channels} />
      <Select<WithoutAnswer>
        label={texts.withoutAnswer}
        options={[
          { value: 'refused', label: texts.refused, help: texts.refusedHelp },
          { value: 'granted', label: texts.granted, help: texts.grantedHelp },
          { value: 'mandatory', label: texts.mandatory, help: texts.mandatoryHelp },
        ]}
        value={unanswered}
        onChange={setUnanswered}
        error={errors.mandatory ?? errors.default_state}
      />
      {save.error && !isShownAtFields(save.error, fields) && <Problem error={save.error} />}
      <Actions>
        <Button onPress={onClose}>{texts.cancel}</Button>
        <Button type="submit" look="primary" isPending={save.isPending}>
          {type ? texts.save : texts.create}
        </Button>
      </Actions>
    </form>
  )
}

type ChannelFieldsProps = { channels: Channel[]; onChange: (channels: Channel[]) => void; error: string | undefined }

function ChannelFields({ channels, onChange, error }: ChannelFieldsProps) {
  const texts = useMessages(messages)
  const names = useMessages(entityMessages).channels
  const change = (channel: Channel['channel'], next: Partial<Channel>) =>
    onChange(channels.map(entry => (entry.channel === channel ? { ...entry, ...next } : entry)))
  return (
    <fieldset className={styles.fields!}>
      <legend>{texts.channels}</legend>
      {channelNames.map(channel => {
        const entry = channels.find(other => other.channel === channel)
        return (
          <div key={channel} className={styles.channel!}>
            <Flag
              isSelected={entry !== undefined}
              onChange={isSelected =>
                onChange(
                  isSelected
                    ? [...channels, { channel, is_default: false, double_opt_in: false }]
                    : channels.filter(other => other.channel !== channel),
                )
              }
            >
              {names[channel]}
            </Flag>
            {entry && (
              <div className={styles.indented!}>
                <Flag
                  isSelected={entry.double_opt_in}
                  onChange={double_opt_in => change(channel, { double_opt_in })}
                  help={texts.doubleOptInHelp}
                >
                  {texts.doubleOptInOn(names[channel])}
                </Flag>
                <Flag
                  isSelected={entry.is_default}
                  onChange={is_default => change(channel, { is_default })}
                  help={texts.channelDefaultHelp}
                >
                  {texts.channelDefaultOf(names[channel])}
                </Flag>
              </div>
            )}
          </div>
        )
      })}
      {error && (
        <p className={styles.error!} role="alert">
          {error}
        </p>
      )}
    </fieldset>
  )
}
