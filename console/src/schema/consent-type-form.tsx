import type { ConsentType, ConsentTypeBody } from '@kith/client'
import { useState } from 'react'
import { client } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { messages as entityMessages } from '../entity/messages.ts'
import { useDefinitionWrite } from '../entity/schema.ts'
import { Checkbox, FieldGroup, TextField } from '../ui/field.tsx'
import { Form } from '../ui/form.tsx'
import { Select } from '../ui/select.tsx'
import { messages } from './messages.ts'
import styles from './schema.module.css'

type Channel = ConsentType['channels'][number]
type ConsentTypeFormProps = {
  /** Undefined: the form creates a type. */
  type: ConsentType | undefined
  onClose: () => void
  onSaved: (type: ConsentType) => void
}

const channelNames = ['email', 'sms'] as const
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
  const save = useDefinitionWrite(
    ({ key, ...body }: ConsentTypeBody, idempotencyKey) =>
      type
        ? client.schema.consentTypes.patch(type.id, body)
        : client.schema.consentTypes.create({ key, ...body }, { idempotencyKey }),
    onSaved,
  )
  const mandatory = unanswered === 'mandatory'
  const body = {
    key: key.trim(),
    name: name.trim() || (type?.key ?? key.trim()),
    description: description.trim() || null,
    channels,
    mandatory,
    ...(!mandatory && { default_state: unanswered === 'granted' }),
  }
  return (
    <Form onSubmit={() => save.mutate(body)} write={save} submit={type ? texts.save : texts.create} onCancel={onClose}>
      {!type && (
        <TextField label={texts.key} help={texts.keyHelp} name="/key" isRequired value={key} onChange={setKey} />
      )}
      <TextField label={texts.name} name="/name" value={name} onChange={setName} />
      <TextField label={texts.description} name="/description" rows={2} value={description} onChange={setDescription} />
      <ChannelFields channels={channels} onChange={setChannels} />
      <Select<WithoutAnswer>
        label={texts.withoutAnswer}
        options={[
          { value: 'refused', label: texts.refused, help: texts.refusedHelp },
          { value: 'granted', label: texts.granted, help: texts.grantedHelp },
          { value: 'mandatory', label: texts.mandatory, help: texts.mandatoryHelp },
        ]}
        value={unanswered}
        onChange={setUnanswered}
        name={mandatory ? '/mandatory' : '/default_state'}
      />
    </Form>
  )
}

type ChannelFieldsProps = { channels: Channel[]; onChange: (channels: Channel[]) => void }

function ChannelFields({ channels, onChange }: ChannelFieldsProps) {
  const texts = useMessages(messages)
  const names = useMessages(entityMessages).channels
  const change = (channel: Channel['channel'], next: Partial<Channel>) =>
    onChange(channels.map(entry => (entry.channel === channel ? { ...entry, ...next } : entry)))
  return (
    <FieldGroup look="frame" legend={texts.channels} name="/channels">
      {channelNames.map(channel => {
        const index = channels.findIndex(other => other.channel === channel)
        const entry = channels[index]
        return (
          <div key={channel}>
            <Checkbox
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
            </Checkbox>
            {entry && (
              <div className={styles.indented}>
                <Checkbox
                  name={`/channels/${index}/double_opt_in`}
                  isSelected={entry.double_opt_in}
                  onChange={double_opt_in => change(channel, { double_opt_in })}
                  help={texts.doubleOptInHelp}
                >
                  {texts.doubleOptInOn(names[channel])}
                </Checkbox>
                <Checkbox
                  name={`/channels/${index}/is_default`}
                  isSelected={entry.is_default}
                  onChange={is_default => change(channel, { is_default })}
                  help={texts.channelDefaultHelp}
                >
                  {texts.channelDefaultOf(names[channel])}
                </Checkbox>
              </div>
            )}
          </div>
        )
      })}
    </FieldGroup>
  )
}
