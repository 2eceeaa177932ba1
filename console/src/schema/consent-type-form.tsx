import type { ConsentType, ConsentTypeBody } from '@kith/client'
import { useState } from 'react'
import { client } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { changedMembers, isEqual } from '../entity/equal.ts'
import { messages as entityMessages } from '../entity/messages.ts'
import { useDefinitionWrite } from '../entity/schema.ts'
import { Checkbox, FieldGroup, type FieldProps, fieldsOf, TextField, useDraft } from '../ui/field.tsx'
import { Form } from '../ui/form.tsx'
import { Select } from '../ui/select.tsx'
import { unansweredOf } from './consent-types-tab.tsx'
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
const newChannel: Channel = { channel: 'email', is_default: false, double_opt_in: false }
/** Creates or changes a purpose that people are asked for. */
export function ConsentTypeForm({ type, onClose, onSaved }: ConsentTypeFormProps) {
  const texts = useMessages(messages)
  const [initial] = useState({
    key: '',
    name: type?.name ?? '',
    description: type?.description ?? '',
    channels: type?.channels ?? [newChannel],
    unanswered: type ? unansweredOf(type) : 'refused',
  })
  const { draft, field } = useDraft(initial)
  const save = useDefinitionWrite(
    ({ key, ...body }: ConsentTypeBody, idempotencyKey) =>
      type
        ? client.schema.consentTypes.patch(type.id, changedMembers(body, type))
        : client.schema.consentTypes.create({ key, ...body }, { idempotencyKey }),
    onSaved,
  )
  const mandatory = draft.unanswered === 'mandatory'
  const key = draft.key.trim()
  const body = {
    key,
    name: draft.name.trim() || (type?.key ?? key),
    description: draft.description.trim() || null,
    channels: draft.channels,
    mandatory,
    ...(!mandatory && { default_state: draft.unanswered === 'granted' }),
  }
  return (
    <Form
      onSubmit={() => save.mutate(body)}
      write={save}
      submit={type ? texts.save : texts.create}
      isUnsaved={!isEqual(draft, initial)}
      onCancel={onClose}
    >
      {!type && <TextField label={texts.key} help={texts.keyHelp} isRequired {...field('key')} />}
      <TextField label={texts.name} {...field('name')} />
      <TextField label={texts.description} rows={2} {...field('description')} />
      <ChannelFields {...field('channels')} />
      <Select
        label={texts.withoutAnswer}
        options={[
          { value: 'refused', label: texts.refused, help: texts.untilAnswerHelp },
          { value: 'granted', label: texts.granted, help: texts.untilAnswerHelp },
          { value: 'mandatory', label: texts.mandatory, help: texts.mandatoryHelp },
        ]}
        {...field('unanswered')}
        name={mandatory ? '/mandatory' : '/default_state'}
      />
    </Form>
  )
}

function ChannelFields({ name, value: channels, onChange }: FieldProps<Channel[]>) {
  const texts = useMessages(messages)
  const names = useMessages(entityMessages).channels
  return (
    <FieldGroup look="frame" legend={texts.channels} name={name}>
      {channelNames.map(channel => {
        const index = channels.findIndex(other => other.channel === channel)
        const entry = channels[index]
        const change = (next: Partial<Channel>) => onChange(channels.with(index, { ...entry!, ...next }))
        const field = fieldsOf(entry ?? newChannel, change, `${name}/${index}`)
        const toggle = () => onChange(entry ? channels.toSpliced(index, 1) : [...channels, { ...newChannel, channel }])
        return (
          <div key={channel}>
            <Checkbox isSelected={entry !== undefined} onChange={toggle}>
              {names[channel]}
            </Checkbox>
            {entry && (
              <div className={styles.indented}>
                <Checkbox help={texts.doubleOptInHelp} {...field('double_opt_in')}>
                  {texts.doubleOptInOn(names[channel])}
                </Checkbox>
                <Checkbox help={texts.channelDefaultHelp} {...field('is_default')}>
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
